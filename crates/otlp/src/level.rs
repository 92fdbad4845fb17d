//! The nesting that all signals share, as numbers.
//!
//! Level 0 is the request, 1 a resource entry, 2 a scope entry, 3 a span, log record or metric; for metrics 4 is the
//! data message and 5 a data point. The last level is the leaf: what is counted as an item.

use crate::Signal;
use crate::numbers::{data, metric, request, resource_entry, scope_entry};
use crate::wire::{Field, Fields, LEN};

pub(crate) const RECORD: usize = 3;

/// The level whose messages are the items.
pub(crate) const fn leaf(signal: Signal) -> usize {
    match signal {
        Signal::Traces | Signal::Logs => RECORD,
        Signal::Metrics => 5,
    }
}

/// Whether a field of a message at `level` is a message of the next level.
#[inline]
pub(crate) fn is_child(level: usize, field: &Field<'_>) -> bool {
    field.wire == LEN
        && match level {
            0 => field.number == request::RESOURCE_ENTRIES,
            1 => field.number == resource_entry::SCOPE_ENTRIES,
            2 => field.number == scope_entry::RECORDS,
            3 => is_data(field.number),
            _ => field.number == data::POINTS,
        }
}

/// Whether that field of a metric is one of its five kinds of data.
#[inline]
pub(crate) const fn is_data(number: u32) -> bool {
    use metric::{EXPONENTIAL_HISTOGRAM, GAUGE, HISTOGRAM, SUM, SUMMARY};
    matches!(number, GAUGE | SUM | HISTOGRAM | EXPONENTIAL_HISTOGRAM | SUMMARY)
}

/// How many items a message at `level` has. Once there are more than `enough` the count stops, and is any number above.
#[inline]
pub(crate) fn count_items(signal: Signal, level: usize, message: &[u8], enough: usize) -> usize {
    if level == leaf(signal) { 1 } else { count_below(signal, level, message, enough) }
}

fn count_below(signal: Signal, level: usize, message: &[u8], enough: usize) -> usize {
    let children = Fields::new(message).filter(|field| is_child(level, field));
    if level == RECORD {
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
