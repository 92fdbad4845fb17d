//! Records to OTLP.

use std::collections::HashMap;

use kubewake_otlp::wire::{self, put_bytes, put_double, put_fixed32, put_fixed64, put_uint};

use crate::{
    entry::LogEntry,
    value::{LogMap, LogValue},
};

/// Field numbers of the messages of OTLP.
mod numbers {
    pub(super) const RESOURCE_LOGS: u32 = 1;
    pub(super) const RESOURCE: u32 = 1;
    pub(super) const SCOPE_LOGS: u32 = 2;
    pub(super) const RESOURCE_ATTRIBUTES: u32 = 1;
    pub(super) const SCOPE: u32 = 1;
    pub(super) const SCOPE_NAME: u32 = 1;
    pub(super) const LOG_RECORDS: u32 = 2;
    pub(super) const TIME: u32 = 1;
    pub(super) const SEVERITY_NUMBER: u32 = 2;
    pub(super) const SEVERITY_TEXT: u32 = 3;
    pub(super) const BODY: u32 = 5;
    pub(super) const ATTRIBUTES: u32 = 6;
    pub(super) const FLAGS: u32 = 8;
    pub(super) const TRACE_ID: u32 = 9;
    pub(super) const SPAN_ID: u32 = 10;
    pub(super) const OBSERVED_TIME: u32 = 11;
    pub(super) const KEY: u32 = 1;
    pub(super) const VALUE: u32 = 2;
    pub(super) const STRING_VALUE: u32 = 1;
    pub(super) const BOOL_VALUE: u32 = 2;
    pub(super) const INT_VALUE: u32 = 3;
    pub(super) const DOUBLE_VALUE: u32 = 4;
    pub(super) const ARRAY_VALUE: u32 = 5;
    pub(super) const MAP_VALUE: u32 = 6;
    pub(super) const BYTES_VALUE: u32 = 7;
    pub(super) const VALUES: u32 = 1;
}

/// The `ExportLogsServiceRequest` with these records. Records with the same resource are together, and those of them
/// with the same scope; their order stays.
pub fn encode_request(entries: &[LogEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    for (_, group) in grouped(entries.iter(), |entry| encode_resource(&entry.resource)) {
        let Some(first) = group.first() else { continue };
        let resource_logs = wire::open(&mut out, numbers::RESOURCE_LOGS);
        if !first.resource.is_empty() {
            put_bytes(&mut out, numbers::RESOURCE, &encode_resource(&first.resource));
        }
        for (name, scope) in grouped(group.into_iter(), |entry| entry.scope_name.clone()) {
            let scope_logs = wire::open(&mut out, numbers::SCOPE_LOGS);
            if !name.is_empty() {
                let start = wire::open(&mut out, numbers::SCOPE);
                put_bytes(&mut out, numbers::SCOPE_NAME, &name);
                wire::close(&mut out, start);
            }
            for entry in scope {
                let record = wire::open(&mut out, numbers::LOG_RECORDS);
                put_record(&mut out, entry);
                wire::close(&mut out, record);
            }
            wire::close(&mut out, scope_logs);
        }
        wire::close(&mut out, resource_logs);
    }
    out
}

/// Records by a key, in the order in which keys appear first.
fn grouped<'a>(
    entries: impl Iterator<Item = &'a LogEntry>,
    key: impl Fn(&LogEntry) -> Vec<u8>,
) -> Vec<(Vec<u8>, Vec<&'a LogEntry>)> {
    let mut groups: Vec<(Vec<u8>, Vec<&LogEntry>)> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    for entry in entries {
        let key = key(entry);
        // Records that follow each other mostly have the same.
        if let Some((_, group)) = groups.last_mut().filter(|(last, _)| *last == key) {
            group.push(entry);
            continue;
        }
        let place = *places.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, group)) => group.push(entry),
            None => groups.push((key, vec![entry])),
        }
    }
    groups
}

fn encode_resource(attributes: &LogMap) -> Vec<u8> {
    let mut out = Vec::new();
    put_attributes(&mut out, numbers::RESOURCE_ATTRIBUTES, attributes);
    out
}

fn put_record(out: &mut Vec<u8>, entry: &LogEntry) {
    if entry.timestamp != 0 {
        put_fixed64(out, numbers::TIME, entry.timestamp);
    }
    put_fixed64(out, numbers::OBSERVED_TIME, entry.observed);
    if entry.severity_number != 0 {
        put_uint(out, numbers::SEVERITY_NUMBER, entry.severity_number.into());
    }
    if !entry.severity_text.is_empty() {
        put_bytes(out, numbers::SEVERITY_TEXT, &entry.severity_text);
    }
    if entry.body != LogValue::Null {
        put_value(out, numbers::BODY, &entry.body);
    }
    put_attributes(out, numbers::ATTRIBUTES, &entry.attributes);
    if let Some(flags) = entry.trace_flags.filter(|flags| *flags != 0) {
        put_fixed32(out, numbers::FLAGS, flags.into());
    }
    // An id of zeros means that there is none.
    if let Some(id) = entry.trace_id.filter(|id| *id != [0; 16]) {
        put_bytes(out, numbers::TRACE_ID, &id);
    }
    if let Some(id) = entry.span_id.filter(|id| *id != [0; 8]) {
        put_bytes(out, numbers::SPAN_ID, &id);
    }
}

fn put_attributes(out: &mut Vec<u8>, number: u32, attributes: &LogMap) {
    for (key, value) in attributes {
        let start = wire::open(out, number);
        put_bytes(out, numbers::KEY, key.as_bytes());
        put_value(out, numbers::VALUE, value);
        wire::close(out, start);
    }
}

/// Writes an `AnyValue`. The depth of values is bounded where they are made.
fn put_value(out: &mut Vec<u8>, number: u32, value: &LogValue) {
    let start = wire::open(out, number);
    match value {
        LogValue::Null => {}
        LogValue::Bool(value) => wire::put_bool(out, numbers::BOOL_VALUE, *value),
        LogValue::Int(value) => put_uint(out, numbers::INT_VALUE, *value as u64),
        LogValue::Double(value) => put_double(out, numbers::DOUBLE_VALUE, *value),
        LogValue::Text(text) => put_bytes(out, numbers::STRING_VALUE, text),
        LogValue::Bytes(bytes) => put_bytes(out, numbers::BYTES_VALUE, bytes),
        LogValue::List(items) => {
            let list = wire::open(out, numbers::ARRAY_VALUE);
            for item in items {
                put_value(out, numbers::VALUES, item);
            }
            wire::close(out, list);
        }
        LogValue::Map(map) => {
            let list = wire::open(out, numbers::MAP_VALUE);
            put_attributes(out, numbers::VALUES, map);
            wire::close(out, list);
        }
    }
    wire::close(out, start);
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::{
        collector::logs::v1::ExportLogsServiceRequest,
        common::v1::{AnyValue, any_value::Value},
        logs::v1::LogRecord,
    };
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn decoded(entries: &[LogEntry]) -> ExportLogsServiceRequest {
        ExportLogsServiceRequest::decode(encode_request(entries).as_slice()).unwrap()
    }

    fn entry(resource: &str, scope: &str, body: &str) -> LogEntry {
        let mut entry = LogEntry::new(body.into());
        if !resource.is_empty() {
            entry.resource.insert("r".into(), resource.into());
        }
        entry.scope_name = scope.into();
        entry
    }

    #[test]
    fn records_are_grouped_by_resource_and_scope_in_their_order() {
        let entries =
            [entry("a", "", "1"), entry("b", "", "2"), entry("a", "s", "3"), entry("a", "", "4"), entry("", "", "5")];
        let request = decoded(&entries);
        let shown: Vec<Vec<(String, Vec<String>)>> = request
            .resource_logs
            .iter()
            .map(|resource| {
                let body = |record: &LogRecord| match record.body.as_ref().and_then(|body| body.value.clone()) {
                    Some(Value::StringValue(text)) => text,
                    other => panic!("{other:?}"),
                };
                let scope = |scope: &opentelemetry_proto::tonic::logs::v1::ScopeLogs| {
                    let name = scope.scope.as_ref().map(|scope| scope.name.clone()).unwrap_or_default();
                    (name, scope.log_records.iter().map(body).collect())
                };
                resource.scope_logs.iter().map(scope).collect()
            })
            .collect();
        let scope =
            |name: &str, bodies: &[&str]| (name.to_owned(), bodies.iter().map(|body| (*body).to_owned()).collect());
        let expected =
            [vec![scope("", &["1", "4"]), scope("s", &["3"])], vec![scope("", &["2"])], vec![scope("", &["5"])]];
        assert_eq!(shown, expected);
        assert!(request.resource_logs[2].resource.is_none());
    }

    #[test]
    fn all_fields_of_a_record_are_there() {
        let entry = LogEntry {
            timestamp: 1,
            observed: 2,
            severity_number: 17,
            severity_text: b"err".to_vec(),
            trace_id: Some([1; 16]),
            span_id: Some([0; 8]),
            trace_flags: Some(1),
            attributes: [("k".to_owned(), LogValue::Int(-1))].into(),
            ..LogEntry::default()
        };
        let record = decoded(&[entry]).resource_logs.remove(0).scope_logs.remove(0).log_records.remove(0);
        assert_eq!((record.time_unix_nano, record.observed_time_unix_nano, record.severity_number), (1, 2, 17));
        assert_eq!((record.severity_text.as_str(), record.flags), ("err", 1));
        assert_eq!((record.trace_id, record.span_id, record.body), (vec![1; 16], Vec::new(), None));
        assert_eq!(record.attributes[0].value.as_ref().unwrap().value, Some(Value::IntValue(-1)));
    }

    fn any_value() -> impl Strategy<Value = LogValue> {
        let leaf = prop_oneof![
            Just(LogValue::Null),
            any::<bool>().prop_map(LogValue::Bool),
            any::<i64>().prop_map(LogValue::Int),
            (-1e9..1e9).prop_map(LogValue::Double),
            ".{0,10}".prop_map(LogValue::from),
            prop::collection::vec(any::<u8>(), 0..10).prop_map(LogValue::Bytes),
        ];
        leaf.prop_recursive(4, 20, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(LogValue::List),
                prop::collection::btree_map(".{0,5}", inner, 0..4).prop_map(LogValue::Map),
            ]
        })
    }

    fn value_of(value: AnyValue) -> LogValue {
        match value.value {
            None => LogValue::Null,
            Some(Value::BoolValue(value)) => LogValue::Bool(value),
            Some(Value::IntValue(value)) => LogValue::Int(value),
            Some(Value::DoubleValue(value)) => LogValue::Double(value),
            Some(Value::StringValue(text)) => text.into(),
            Some(Value::BytesValue(bytes)) => LogValue::Bytes(bytes),
            Some(Value::ArrayValue(list)) => LogValue::List(list.values.into_iter().map(value_of).collect()),
            Some(Value::KvlistValue(list)) => LogValue::Map(
                list.values.into_iter().map(|pair| (pair.key, pair.value.map(value_of).unwrap_or_default())).collect(),
            ),
            Some(other) => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn any_value_is_the_same_for_another_reader(value in any_value()) {
            let entry = LogEntry { attributes: [("k".to_owned(), value.clone())].into(), ..LogEntry::default() };
            let mut record = decoded(&[entry]).resource_logs.remove(0).scope_logs.remove(0).log_records.remove(0);
            prop_assert_eq!(value_of(record.attributes.remove(0).value.unwrap()), value);
        }
    }
}
