//! Finds the items in a request without decoding all of it.
//!
//! The sink verifies the collector, so it has a small reader of its own and does not use the collector's.

use kubewake_otlp::Signal;

use crate::load::decode::{WireFieldIter, WireValue};

/// The fields of an item that the sink uses. Absent fields are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TelemetryItem<'a> {
    pub trace_id: &'a [u8],
    pub span_id: &'a [u8],
    /// Start, in nanoseconds since 1970.
    pub time: u64,
}

/// The field numbers of a record.
#[derive(Clone, Copy)]
struct RecordLayout {
    trace_id: u64,
    span_id: u64,
    time: u64,
}

const SPAN_LAYOUT: RecordLayout = RecordLayout { trace_id: 1, span_id: 2, time: 7 };
const LOG_RECORD_LAYOUT: RecordLayout = RecordLayout { trace_id: 9, span_id: 10, time: 1 };
const EXEMPLAR_LAYOUT: RecordLayout = RecordLayout { trace_id: 5, span_id: 4, time: 2 };
/// The field of each kind of data in a metric, and the field of exemplars in its data points.
const METRIC_DATA_FIELDS: [(u64, u64); 5] = [(5, 5), (7, 5), (9, 8), (10, 11), (11, 0)];

/// Calls `show` for every item of a request.
pub(super) fn for_each_item<'a>(signal: Signal, request: &'a [u8], mut show: impl FnMut(TelemetryItem<'a>)) {
    // In all three signals: field 1 has the resources, their field 2 the scopes, and the scopes' field 2 the
    // records or metrics.
    for resource in messages(request, 1) {
        for record in messages(resource, 2).flat_map(|scope| messages(scope, 2)) {
            match signal {
                Signal::Traces => show(SPAN_LAYOUT.read(record)),
                Signal::Logs => show(LOG_RECORD_LAYOUT.read(record)),
                Signal::Metrics => for_each_exemplar(record, &mut show),
            }
        }
    }
}

fn for_each_exemplar<'a>(metric: &'a [u8], show: &mut impl FnMut(TelemetryItem<'a>)) {
    for (data, exemplars) in METRIC_DATA_FIELDS {
        for point in messages(metric, data).flat_map(|data| messages(data, 1)) {
            let exemplar = messages(point, exemplars).next();
            show(exemplar.map(|exemplar| EXEMPLAR_LAYOUT.read(exemplar)).unwrap_or_default());
        }
    }
}

fn messages(message: &[u8], number: u64) -> impl Iterator<Item = &[u8]> {
    WireFieldIter(message).filter(move |(field, _)| *field == number).filter_map(|(_, value)| value.bytes())
}

impl RecordLayout {
    fn read(self, record: &[u8]) -> TelemetryItem<'_> {
        let mut item = TelemetryItem::default();
        for (field, value) in WireFieldIter(record) {
            match value {
                WireValue::Bytes(id) if field == self.trace_id => item.trace_id = id,
                WireValue::Bytes(id) if field == self.span_id => item.span_id = id,
                WireValue::Fixed(time) if field == self.time => {
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
        encode::RequestValues,
        ids::{RunSeed, span_id},
        shape::RequestShape,
        template::{BodyFormat, RequestTemplate},
    };

    /// Generated requests are valid, and each item is found with its own ids.
    #[test]
    fn every_item_of_the_generator_is_found() {
        for signal in Signal::ALL {
            let shape = RequestShape { signal, items: 7, traces: 3, attributes: 12, error_share: 0.5 };
            let values = RequestValues {
                seed: RunSeed::new(42),
                first_trace: 300,
                first_item: 700,
                now: 1_700_000_000_000_000_000,
            };
            let template = RequestTemplate::new(&shape, 3, BodyFormat { grpc: false, gzip: false });
            let request = template.fill(&values).unwrap();
            assert_eq!(kubewake_otlp::scan(signal, &request).unwrap().items, 7, "{signal}");

            let mut found = Vec::new();
            for_each_item(signal, &request, |item| {
                found.push((item.trace_id.to_vec(), item.span_id.to_vec(), item.time))
            });
            let expected = [0, 0, 0, 1, 1, 2, 2].into_iter().zip(700..).map(|(trace, number)| {
                (values.seed.trace_id(300 + trace).to_vec(), span_id(number).to_vec(), values.now)
            });
            assert_eq!(found, expected.collect::<Vec<_>>(), "{signal}");
        }
    }
}
