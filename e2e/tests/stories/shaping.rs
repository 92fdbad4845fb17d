//! Somebody shapes what programs send: less of it, with other attributes, and nothing that must not leave.

use std::collections::BTreeMap;

use kubewake_e2e::{CollectorProcess, ConfigBuilder, SinkProcess, grpc_to, python, wait_until};
use kubewake_otlp::Signal;
use serde_json::{Value, json};

const FILTER: &str = "{error_mode: ignore, \
    spans: {exclude: {match_type: regexp, span_names: ['^step '], services: ['^shop']}}, \
    logs: {include: {match_type: strict, severity_number: {min: ERROR}}}, \
    metrics: {exclude: {match_type: strict, metric_names: [exponential, open]}}}";

const ATTRIBUTES: &str = "{actions: [\
    {key: environment, value: test, action: insert}, \
    {key: text, action: delete}, \
    {key: large, from_attribute: small, action: update}, \
    {key: 'true', action: hash}, \
    {key: least, from_attribute: small, action: rename}, \
    {key: zero, converted_type: string, action: convert}, \
    {pattern: '^(flags|ratios)$', action: delete}]}";

const RESOURCE: &str = "{attributes: [\
    {key: cluster, value: here, action: upsert}, \
    {key: 'service.name', pattern: '^(?P<product>[a-z]+) ', action: extract}, \
    {key: zones, action: delete}]}";

const REDACTION: &str = "{allow_all_keys: true, blocked_values: ['card|[^ ]*\\.py', 'apples'], blocked_key_patterns: [stacktrace], summary: info}";

fn config(sink: &SinkProcess) -> ConfigBuilder {
    let processors = "filter, attributes, resource, redaction";
    let config = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))
        .processor("filter", FILTER)
        .processor("attributes", ATTRIBUTES)
        .processor("resource", RESOURCE)
        .processor("redaction", REDACTION);
    Signal::ALL.iter().fold(config, |config, signal| config.pipeline(signal.name(), processors, "otlp"))
}

/// The resources, and the spans, log records or metrics that arrived.
fn arrived(sink: &SinkProcess, signal: Signal) -> (Vec<Value>, Vec<Value>) {
    let (entries, scopes, records) = match signal {
        Signal::Traces => ("resourceSpans", "scopeSpans", "spans"),
        Signal::Logs => ("resourceLogs", "scopeLogs", "logRecords"),
        Signal::Metrics => ("resourceMetrics", "scopeMetrics", "metrics"),
    };
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let entries: Vec<Value> = sink.received(signal).iter().flat_map(|request| list(request, entries)).collect();
    let scopes = entries.iter().flat_map(|entry| list(entry, scopes));
    let records = scopes.flat_map(|scope| list(&scope, records)).collect();
    (entries.iter().map(|entry| entry["resource"].clone()).collect(), records)
}

fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let pairs = of["attributes"].as_array().cloned().unwrap_or_default();
    pairs.into_iter().map(|pair| (pair["key"].as_str().unwrap().to_owned(), pair["value"].clone())).collect()
}

fn named<'a>(records: &'a [Value], name: &str) -> &'a Value {
    records.iter().find(|record| record["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

fn names(records: &[Value], field: &str) -> Vec<String> {
    let mut names: Vec<_> = records.iter().map(|record| record[field].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn send(collector: &CollectorProcess) {
    python::run("send.py", &["grpc", &collector.grpc().to_string(), "none"]);
}

#[test]
fn what_python_sends_arrives_filtered_changed_and_redacted() {
    let sink = SinkProcess::start();
    let collector = CollectorProcess::with_config(config(&sink)).start();
    send(&collector);
    wait_until("all signals arrive", || Signal::ALL.iter().all(|signal| !sink.received(*signal).is_empty()));
    wait_until("all spans arrive", || arrived(&sink, Signal::Traces).1.len() >= 3);

    let (resources, spans) = arrived(&sink, Signal::Traces);
    assert_eq!(names(&spans, "name"), ["order", "pay", "till"]);
    spans_are_changed(&spans);
    resources.iter().for_each(resource_is_changed);

    let (resources, records) = arrived(&sink, Signal::Logs);
    let bodies: Vec<_> = records.iter().map(|record| record["body"]["stringValue"].as_str().unwrap()).collect();
    assert_eq!(bodies, ["out of ****", "stuck"]);
    assert_eq!(attributes(&records[0])["redaction.body.masked.count"], json!({"intValue": "1"}));
    assert!(attributes(&records[1])["exception.stacktrace"].to_string().contains("****"));
    resources.iter().for_each(resource_is_changed);

    let (_, metrics) = arrived(&sink, Signal::Metrics);
    assert_eq!(names(&metrics, "name"), ["latency", "orders", "temperature", "weight"]);
    let orders = attributes(&named(&metrics, "orders")["sum"]["dataPoints"][0]);
    assert_eq!(orders["environment"], json!({"stringValue": "test"}));
    assert!(!orders.contains_key("text"));

    for (name, filtered) in [("spans", 3.0), ("logs", 1.0), ("datapoints", 2.0)] {
        let name = format!("otelcol_processor_filter_{name}_filtered");
        assert_eq!(collector.metric(&name, &["filter=\"filter\""]), filtered, "{name}");
    }
    let items = |name: &str| collector.metric(name, &["processor=\"filter\"", "otel_signal=\"traces\""]);
    assert_eq!((items("otelcol_processor_incoming_items"), items("otelcol_processor_outgoing_items")), (6.0, 3.0));
}

fn spans_are_changed(spans: &[Value]) {
    let order = attributes(named(spans, "order"));
    for gone in ["text", "small", "flags", "ratios"] {
        assert!(!order.contains_key(gone), "{gone}");
    }
    assert_eq!(order["environment"], json!({"stringValue": "test"}));
    assert_eq!((&order["least"], &order["large"]), (&json!({"intValue": "-9223372036854775808"}), &order["least"]));
    assert_eq!(order["zero"], json!({"stringValue": "0"}));
    let hash = "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a";
    assert_eq!(order["true"], json!({"stringValue": hash}));
    let exception = attributes(&named(spans, "pay")["events"][0]);
    assert_eq!(exception["exception.message"], json!({"stringValue": "no such **** ✗"}));
    assert_eq!(exception["redaction.masked.count"], json!({"intValue": "2"}));
}

fn resource_is_changed(resource: &Value) {
    let resource = attributes(resource);
    assert_eq!(resource["cluster"], json!({"stringValue": "here"}));
    assert_eq!(resource["product"], json!({"stringValue": "shop"}));
    assert_eq!(resource["replicas"], json!({"intValue": "3"}));
    assert!(!resource.contains_key("zones"));
}

#[test]
fn other_rules_hold_from_the_reload_on_and_bad_ones_never() {
    let sink = SinkProcess::start();
    let collector = CollectorProcess::with_config(config(&sink)).start();
    send(&collector);
    wait_until("all spans arrive", || sink.span_names() == ["order", "pay", "till"]);
    let kinds = "{spans: {include: {match_type: strict, span_kinds: [SPAN_KIND_CLIENT], status_codes: [ERROR]}}}";
    collector.reload(config(&sink).processor("filter", kinds));
    send(&collector);
    wait_until("the new rules hold", || sink.span_names() == ["order", "pay", "pay", "till"]);
    let bad = "{spans: {include: {match_type: regexp, span_names: ['(']}}, traces: {span: ['name == \"x\"']}}";
    let refusal = collector.reload_refused(config(&sink).processor("filter", bad));
    assert!(refusal.contains("unclosed group") && refusal.contains("OTTL"), "{refusal}");
    send(&collector);
    wait_until("the old rules go on", || sink.span_names() == ["order", "pay", "pay", "pay", "till"]);
}
