//! Spans, of which there are the most: what every SDK writes in the same place is read there in one step.

use super::error::Fault;
use super::{Record, Traits, is_zero_span_id, is_zero_trace_id, next_field, shape};
use crate::numbers::span;
use crate::wire::{I64, LEN, VARINT, tag};

const TRACE_ID: u8 = tag(span::TRACE_ID, LEN);
const SPAN_ID: u8 = tag(span::SPAN_ID, LEN);
const PARENT: u8 = tag(span::PARENT_SPAN_ID, LEN);
const NAME: u8 = tag(span::NAME, LEN);
const KIND: u8 = tag(span::KIND, VARINT);
const START: u8 = tag(span::START, I64);
const END: u8 = tag(span::END, I64);
const ATTRIBUTE: u8 = tag(span::ATTRIBUTES, LEN);

#[inline]
pub(super) fn scan_span<'a>(bytes: &'a [u8], traits: &mut Traits) -> Result<Record<'a>, Fault> {
    let mut record = Record { trace_id: &[], items: 1, zero_ids: false };
    let mut rest = behind_times(behind_name(behind_parent(ids_in_front(bytes, &mut record), &mut record)));
    if record.trace_id.is_empty() {
        traits.not_plain();
    }
    loop {
        rest = behind_attributes(rest, traits);
        if rest.is_empty() {
            return Ok(record);
        }
        let start = rest;
        let (number, content) = next_field(&mut rest, &shape::SPAN)?;
        match number {
            span::TRACE_ID => {
                traits.not_plain();
                record.zero_ids |= is_zero_trace_id(content, start)?;
                record.trace_id = content;
            }
            span::TRACE_STATE => {
                traits.not_plain();
                rest = behind_times(behind_name(behind_parent(rest, &mut record)));
            }
            span::ATTRIBUTES => traits.attribute(content),
            span::SPAN_ID | span::PARENT_SPAN_ID => record.zero_ids |= is_zero_span_id(content, start)?,
            _ => {}
        }
    }
}

/// Reads the trace id and the span id if they stand first, and says what is behind them.
#[inline(always)]
fn ids_in_front<'a>(bytes: &'a [u8], record: &mut Record<'a>) -> &'a [u8] {
    if let Some((ids, behind)) = bytes.split_first_chunk::<28>()
        && let [TRACE_ID, 16, trace_id @ .., SPAN_ID, 8, a, b, c, d, e, f, g, h] = ids
    {
        record.zero_ids =
            u128::from_ne_bytes(*trace_id) == 0 || u64::from_ne_bytes([*a, *b, *c, *d, *e, *f, *g, *h]) == 0;
        record.trace_id = trace_id;
        return behind;
    }
    bytes
}

/// What is behind the id of the parent, if it stands here.
#[inline(always)]
fn behind_parent<'a>(rest: &'a [u8], record: &mut Record<'a>) -> &'a [u8] {
    match rest.split_first_chunk::<10>() {
        Some(([PARENT, 8, id @ ..], behind)) => {
            record.zero_ids |= u64::from_ne_bytes(*id) == 0;
            behind
        }
        _ => rest,
    }
}

/// What is behind the name, if a short one stands here.
#[inline(always)]
fn behind_name(rest: &[u8]) -> &[u8] {
    match rest {
        [NAME, size @ ..0x80, tail @ ..] => tail.get(usize::from(*size)..).unwrap_or(rest),
        _ => rest,
    }
}

/// What is behind the kind and the times, if they stand here side by side.
#[inline(always)]
fn behind_times(rest: &[u8]) -> &[u8] {
    match rest.split_first_chunk::<20>() {
        Some(([KIND, ..0x80, START, _, _, _, _, _, _, _, _, END, ..], behind)) => behind,
        _ => rest,
    }
}

/// What is behind the attributes that stand here side by side: they are most of a span.
///
/// The tag, a length of one byte, the tag of the key and the length of the key are looked at in one word. What is shorter may be
/// followed by something that looks like a key: [`Traits`] may take it for one.
#[inline(always)]
fn behind_attributes<'a>(mut rest: &'a [u8], traits: &mut Traits) -> &'a [u8] {
    const HEAD: u32 = u32::from_le_bytes([ATTRIBUTE, 0, Traits::KEY, 0]);
    const KNOWN: u32 = u32::from_le_bytes([0xff, 0x80, 0xff, 0]);
    // A copy, which stays in a register.
    let mut seen = *traits;
    while let Some(head) = rest.first_chunk()
        && let head = u32::from_le_bytes(*head)
        && head & KNOWN == HEAD
        && let Some(behind) = rest.get(2 + (head >> 8 & 0x7f) as usize..)
    {
        seen.key((head >> 24) as u8);
        rest = behind;
    }
    *traits = seen;
    rest
}
