//! The nesting of messages, which all signals share, as level numbers.
//!
//! Level 0 is the request, 1 a resource entry, 2 a scope entry, 3 a span, log record or metric; for metrics 4
//! is the data message and 5 a data point. The last level is the leaf, whose messages are counted as items.

use crate::Signal;
use crate::field_numbers::{data, metric, request, resource_entry, scope_entry};
use crate::wire::{LEN, WireField, WireFields};

pub(crate) const RECORD_LEVEL: usize = 3;

/// The level whose messages are the items.
pub(crate) const fn leaf(signal: Signal) -> usize {
    match signal {
        Signal::Traces | Signal::Logs => RECORD_LEVEL,
        Signal::Metrics => 5,
    }
}

/// Whether a field of a message at `level` is a message of the next level.
#[inline]
pub(crate) fn is_child(level: usize, field: &WireField<'_>) -> bool {
    field.wire == LEN
        && match level {
            0 => field.number == request::RESOURCE_ENTRIES,
            1 => field.number == resource_entry::SCOPE_ENTRIES,
            2 => field.number == scope_entry::RECORDS,
            3 => is_data(field.number),
            _ => field.number == data::POINTS,
        }
}

/// Whether a field of a metric is one of its five types of data.
#[inline]
pub(crate) const fn is_data(number: u32) -> bool {
    use metric::{EXPONENTIAL_HISTOGRAM, GAUGE, HISTOGRAM, SUM, SUMMARY};
    matches!(number, GAUGE | SUM | HISTOGRAM | EXPONENTIAL_HISTOGRAM | SUMMARY)
}

/// Number of items of a message at `level`. Stops counting above `enough`, with any larger number.
#[inline]
pub(crate) fn count_items(signal: Signal, level: usize, message: &[u8], enough: usize) -> usize {
    if level == leaf(signal) { 1 } else { count_below(signal, level, message, enough) }
}

fn count_below(signal: Signal, level: usize, message: &[u8], enough: usize) -> usize {
    let children = WireFields::new(message).filter(|field| is_child(level, field));
    if level == RECORD_LEVEL {
        // Of several data messages the last one counts.
        return children.last().map_or(0, |data| count_items(signal, level + 1, data.value, enough));
    }
    let mut items = 0;
    for child in children {
        items += count_items(signal, level + 1, child.value, enough.saturating_sub(items));
        if items > enough {
            break;
        }
    }
    items
}
