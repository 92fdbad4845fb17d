//! Any records: what the stand-in stores is what a simple model says.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(AnyValue { value: None }),
        ".{0,12}".prop_map(|value| text(&value)),
        any::<i64>().prop_map(number),
        any::<bool>().prop_map(|value| AnyValue { value: Some(Value::BoolValue(value)) }),
        any::<f64>().prop_map(|value| AnyValue { value: Some(Value::DoubleValue(value)) }),
        proptest::collection::vec(any::<u8>(), 0..8)
            .prop_map(|value| AnyValue { value: Some(Value::BytesValue(value)) }),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let pairs = proptest::collection::vec((key(), inner.clone()), 0..3);
        prop_oneof![
            proptest::collection::vec(inner, 0..3).prop_map(list),
            pairs.prop_map(|pairs| map(pairs.iter().map(|(key, value)| (key.as_str(), value.clone())).collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_owned()), Just("k8s.namespace.name".to_owned()), ".{0,6}", "[a-c._]{1,3}"]
}

fn pairs() -> impl Strategy<Value = Vec<(String, AnyValue)>> {
    proptest::collection::vec((key(), value()), 0..5)
}

fn records() -> impl Strategy<Value = Vec<LogRecord>> {
    let one = (0_u64..6, proptest::option::of(value()), pairs(), proptest::collection::vec(any::<u8>(), 0..20));
    let record = one.prop_map(|(after, body, pairs, trace_id)| LogRecord {
        attributes: attributes(pairs.iter().map(|(key, value)| (key.as_str(), value.clone())).collect()),
        time_unix_nano: TIME + after,
        body,
        trace_id,
        ..LogRecord::default()
    });
    proptest::collection::vec(record, 0..6)
}

fn requests() -> impl Strategy<Value = Vec<ResourceLogs>> {
    let request = (pairs(), records()).prop_map(|(pairs, records)| {
        resource(pairs.iter().map(|(key, value)| (key.as_str(), value.clone())).collect(), records)
    });
    proptest::collection::vec(request, 1..4)
}

/// The lines, as text, by the namespace of their resource and in the order of their times.
fn expected(requests: &[ResourceLogs]) -> BTreeMap<Option<String>, Vec<u64>> {
    let mut lines = BTreeMap::<_, Vec<u64>>::new();
    for request in requests {
        let attributes = &request.resource.as_ref().unwrap().attributes;
        let first = attributes.iter().find(|pair| pair.key == "k8s.namespace.name");
        let namespace = match first.and_then(|pair| pair.value.as_ref()).and_then(|value| value.value.as_ref()) {
            Some(Value::StringValue(text)) => Some(text.replace(char::is_control, "_")),
            Some(Value::IntValue(number)) => Some(number.to_string()),
            Some(Value::BoolValue(value)) => Some(value.to_string()),
            _ => None,
        };
        let namespace = namespace.filter(|name| !name.is_empty());
        let times = request.scope_logs[0].log_records.iter().map(|record| record.time_unix_nano);
        lines.entry(namespace).or_default().extend(times);
    }
    lines.values_mut().for_each(|times| times.sort_unstable());
    lines.retain(|_, times| !times.is_empty());
    lines
}

fn namespace_label(labels: &str) -> Option<String> {
    let labels = strict_loki::parse_labels(labels).unwrap();
    labels.into_iter().find(|(name, _)| name == "ns").map(|(_, value)| value)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_line_is_stored_in_its_stream(requests in requests(), size in 200_u32..4000) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let loki = StrictLoki::storing(Limits::default()).await;
            let more = format!(", labels: {{ns: '%{{k8s.namespace.name}}', job: x}}, max_request_size: {size}");
            let mut requests = requests;
            // A line of its own for each record, as the stand-in stores equal ones once.
            let records = requests.iter_mut().flat_map(|request| &mut request.scope_logs[0].log_records);
            for (number, record) in records.enumerate() {
                if number % 2 == 0 || record.body.is_none() {
                    record.body = Some(text(&format!("line {number}")));
                }
                record.time_unix_nano += 10 * number as u64;
            }
            let all = expected(&requests);
            let success = exporter(&loki, &more).send(&batch(requests)).await.unwrap();
            assert_eq!(success.rejected.total(), 0, "{}", success.message);
            let stored: BTreeMap<Option<String>, Vec<u64>> = loki
                .stored()
                .into_iter()
                .map(|((_, labels), lines)| (namespace_label(&labels), lines.iter().map(|line| line.time).collect()))
                .collect();
            assert_eq!(stored, all);
        });
    }
}
