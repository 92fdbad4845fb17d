//! Scans spans, the most frequent records: fields in the usual order of SDKs are read in one step.

use super::error::ScanFault;
use super::{ScannedRecord, SpanTraits, is_zero_span_id, is_zero_trace_id, next_field, shape};
use crate::field_numbers::span;
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
pub(super) fn scan_span<'a>(bytes: &'a [u8], traits: &mut SpanTraits) -> Result<ScannedRecord<'a>, ScanFault> {
    let mut record = ScannedRecord { trace_id: &[], items: 1, zero_ids: false };
    let mut rest = behind_times(behind_name(behind_parent(ids_in_front(bytes, &mut record), &mut record)));
    if record.trace_id.is_empty() {
        traits.mark_ids_not_plain();
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
                traits.mark_ids_not_plain();
                record.zero_ids |= is_zero_trace_id(content, start)?;
                record.trace_id = content;
            }
            span::TRACE_STATE => {
                traits.mark_ids_not_plain();
                rest = behind_times(behind_name(behind_parent(rest, &mut record)));
            }
            span::ATTRIBUTES => traits.note_attribute(content),
            span::SPAN_ID | span::PARENT_SPAN_ID => record.zero_ids |= is_zero_span_id(content, start)?,
            _ => {}
        }
    }
}

/// Reads leading trace and span ids; returns the bytes behind them.
#[inline(always)]
fn ids_in_front<'a>(bytes: &'a [u8], record: &mut ScannedRecord<'a>) -> &'a [u8] {
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

/// Skips the parent id, if it comes next.
#[inline(always)]
fn behind_parent<'a>(rest: &'a [u8], record: &mut ScannedRecord<'a>) -> &'a [u8] {
    match rest.split_first_chunk::<10>() {
        Some(([PARENT, 8, id @ ..], behind)) => {
            record.zero_ids |= u64::from_ne_bytes(*id) == 0;
            behind
        }
        _ => rest,
    }
}

/// Skips the name, if a short one comes next.
#[inline(always)]
fn behind_name(rest: &[u8]) -> &[u8] {
    match rest {
        [NAME, size @ ..0x80, tail @ ..] => tail.get(usize::from(*size)..).unwrap_or(rest),
        _ => rest,
    }
}

/// Skips kind and times, if they come next in the usual order.
#[inline(always)]
fn behind_times(rest: &[u8]) -> &[u8] {
    match rest.split_first_chunk::<20>() {
        Some(([KIND, ..0x80, START, _, _, _, _, _, _, _, _, END, ..], behind)) => behind,
        _ => rest,
    }
}

/// Skips consecutive attributes: they are most of a span.
///
/// The tag, a length of one byte, the tag of the key and the length of the key are checked in one word. A
/// shorter attribute may be followed by bytes that look like a key: [`SpanTraits`] may take them for one.
#[inline(always)]
fn behind_attributes<'a>(mut rest: &'a [u8], traits: &mut SpanTraits) -> &'a [u8] {
    const HEAD: u32 = u32::from_le_bytes([ATTRIBUTE, 0, SpanTraits::KEY, 0]);
    const KNOWN: u32 = u32::from_le_bytes([0xff, 0x80, 0xff, 0]);
    // A copy, which stays in a register.
    let mut seen = *traits;
    while let Some(head) = rest.first_chunk()
        && let head = u32::from_le_bytes(*head)
        && head & KNOWN == HEAD
        && let Some(behind) = rest.get(2 + (head >> 8 & 0x7f) as usize..)
    {
        seen.note_key_length((head >> 24) as u8);
        rest = behind;
    }
    *traits = seen;
    rest
}
