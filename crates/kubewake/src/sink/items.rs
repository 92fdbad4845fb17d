//! The items in a request, found without decoding it.
//!
//! The sink judges the collector, so it reads the wire by its own few lines and not by the collector's.

use kubewake_otlp::Signal;

use crate::load::decode::{Fields, Value};

/// What the sink wants to know of an item. Absent fields are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Item<'a> {
    pub trace_id: &'a [u8],
    pub span_id: &'a [u8],
    /// When it began, in nanoseconds of Unix time.
    pub time: u64,
}

/// Which fields of a record hold what.
#[derive(Clone, Copy)]
struct Layout {
    trace_id: u64,
    span_id: u64,
    time: u64,
}

const SPAN: Layout = Layout { trace_id: 1, span_id: 2, time: 7 };
const LOG_RECORD: Layout = Layout { trace_id: 9, span_id: 10, time: 1 };
const EXEMPLAR: Layout = Layout { trace_id: 5, span_id: 4, time: 2 };
/// In a metric, the field of each kind of data, and in the points of that kind the field of their exemplars.
const METRIC_DATA: [(u64, u64); 5] = [(5, 5), (7, 5), (9, 8), (10, 11), (11, 0)];

/// Shows every item of a request.
pub(super) fn each<'a>(signal: Signal, request: &'a [u8], mut show: impl FnMut(Item<'a>)) {
    // In all three requests: field 1 the resources, in them 2 the scopes, in them 2 the records or metrics.
    for resource in messages(request, 1) {
        for record in messages(resource, 2).flat_map(|scope| messages(scope, 2)) {
            match signal {
                Signal::Traces => show(SPAN.read(record)),
                Signal::Logs => show(LOG_RECORD.read(record)),
                Signal::Metrics => each_point(record, &mut show),
            }
        }
    }
}

fn each_point<'a>(metric: &'a [u8], show: &mut impl FnMut(Item<'a>)) {
    for (data, exemplars) in METRIC_DATA {
        for point in messages(metric, data).flat_map(|data| messages(data, 1)) {
            let exemplar = messages(point, exemplars).next();
            show(exemplar.map(|exemplar| EXEMPLAR.read(exemplar)).unwrap_or_default());
        }
    }
}

fn messages(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    Fields(message).filter(move |(field, _)| *field == number).filter_map(|(_, value)| value.bytes())
}

impl Layout {
    fn read(self, record: &[u8]) -> Item<'_> {
        let mut item = Item::default();
        for (field, value) in Fields(record) {
            match value {
                Value::Bytes(id) if field == self.trace_id => item.trace_id = id,
                Value::Bytes(id) if field == self.span_id => item.span_id = id,
                Value::Fixed(time) if field == self.time => {
                    item.time = time.try_into().map_or(0, u64::from_le_bytes);
                }
                _ => continue,
            }
            // Most of a record is attributes, which come after the ids and the time.
            if !item.trace_id.is_empty() && !item.span_id.is_empty() && item.time != 0 {
                break;
            }
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{
        encode::Values,
        ids::{Seed, span_id},
        shape::Shape,
        template::{Format, Template},
    };

    /// What the generator sends is sound, and each of its items is found with its own ids.
    #[test]
    fn every_item_of_the_generator_is_found() {
        for signal in Signal::ALL {
            let shape = Shape { signal, items: 7, traces: 3, attributes: 12, error_share: 0.5 };
            let values =
                Values { seed: Seed::new(42), first_trace: 300, first_item: 700, now: 1_700_000_000_000_000_000 };
            let template = Template::new(&shape, 3, Format { grpc: false, gzip: false });
            let request = template.fill(&values).unwrap();
            assert_eq!(kubewake_otlp::scan(signal, &request).unwrap().items, 7, "{signal}");

            let mut found = Vec::new();
            each(signal, &request, |item| found.push((item.trace_id.to_vec(), item.span_id.to_vec(), item.time)));
            let expected = [0, 0, 0, 1, 1, 2, 2].into_iter().zip(700..).map(|(trace, number)| {
                (values.seed.trace_id(300 + trace).to_vec(), span_id(number).to_vec(), values.now)
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "{signal}");
        }
    }
}
