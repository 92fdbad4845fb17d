//! Spans, of which there are the most: what every SDK writes in the same place is read there in one step.

use super::error::Fault;
use super::{Record, Traits, is_zero_span_id, is_zero_trace_id, next_field, shape};
use crate::numbers::span;
use crate::wire::{I64, LEN, VARINT};

const TRACE_ID: u8 = tag(span::TRACE_ID, LEN);
const SPAN_ID: u8 = tag(span::SPAN_ID, LEN);
const KIND: u8 = tag(span::KIND, VARINT);
const START: u8 = tag(span::START, I64);
const END: u8 = tag(span::END, I64);
const ATTRIBUTE: u8 = tag(span::ATTRIBUTES, LEN);

const fn tag(number: u32, wire: u8) -> u8 {
    (number << 3) as u8 | wire
}

#[inline]
pub(super) fn scan_span<'a>(bytes: &'a [u8], traits: &mut Traits) -> Result<Record<'a>, Fault> {
    let mut record = Record { trace_id: &[], items: 1, zero_ids: false };
    let mut rest = ids_in_front(bytes, &mut record);
    if record.trace_id.is_empty() {
        traits.not_plain();
    }
    while !rest.is_empty() {
        rest = behind_attributes(behind_kind_and_times(rest), traits);
        if rest.is_empty() {
            break;
        }
        let start = rest;
        let (number, content) = next_field(&mut rest, &shape::SPAN)?;
        match number {
            span::TRACE_ID => {
                traits.not_plain();
                record.zero_ids |= is_zero_trace_id(content, start)?;
                record.trace_id = content;
            }
            span::TRACE_STATE => traits.not_plain(),
            span::ATTRIBUTES => traits.attribute(content),
            span::SPAN_ID | span::PARENT_SPAN_ID => record.zero_ids |= is_zero_span_id(content, start)?,
            _ => {}
        }
    }
    Ok(record)
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

/// What is behind the kind and the times, if they stand here side by side.
#[inline(always)]
fn behind_kind_and_times(rest: &[u8]) -> &[u8] {
    match rest.split_first_chunk::<20>() {
        Some(([KIND, ..0x80, START, _, _, _, _, _, _, _, _, END, ..], behind)) => behind,
        _ => rest,
    }
}

/// What is behind the attributes that stand here side by side: they are most of a span.
#[inline(always)]
fn behind_attributes<'a>(mut rest: &'a [u8], traits: &mut Traits) -> &'a [u8] {
    // A copy, which stays in a register.
    let mut seen = *traits;
    while let [ATTRIBUTE, size @ ..0x80, tail @ ..] = rest
        && let Some((_, behind)) = tail.split_at_checked(usize::from(*size))
    {
        // All that is behind it, as that is there in any case and its end need not be known yet.
        seen.attribute(tail);
        rest = behind;
    }
    *traits = seen;
    rest
}
