use bytes::Bytes;
use kubewake_otlp::Signal;
use kubewake_runtime::lock::Mutex;

use super::*;
use crate::core::{Charge, Origin, Part};

/// Records the output.
#[derive(Default)]
struct Memory {
    log: Mutex<String>,
    records: Mutex<String>,
}

impl DebugOutput for Memory {
    fn log_line(&self, text: &str) {
        self.write_text(&format!("{text}\n")).expect("shown");
    }

    fn write_text(&self, text: &str) -> io::Result<()> {
        self.log.lock().push_str(text);
        Ok(())
    }

    fn write_records(&self, lines: &[u8]) -> io::Result<()> {
        self.records.lock().push_str(&String::from_utf8_lossy(lines));
        Ok(())
    }
}

/// A batch of requests in OTLP JSON.
fn batch(signal: Signal, requests: &[&str]) -> Batch {
    let mut batch = Batch::empty(signal);
    for request in requests {
        let bytes: Bytes = kubewake_otlp::json::decode(signal, request.as_bytes()).expect("OTLP JSON").into();
        let items = kubewake_otlp::scan(signal, &bytes).expect("well formed").items;
        batch.push(Part::new(bytes, items, Arc::new(Origin::default()), Arc::new(Charge::exempt())));
    }
    batch
}

async fn shown(verbosity: DebugVerbosity, batch: &Batch) -> (String, String) {
    let memory = Arc::new(Memory::default());
    let settings = DebugExporter { verbosity, ..DebugExporter::default() };
    let built = build_with_output(&settings, memory.clone()).expect("builds");
    built.exporter.send(batch).await.expect("shown");
    let take = |text: &Mutex<String>| text.lock().clone();
    (take(&memory.log), take(&memory.records))
}

async fn log(verbosity: DebugVerbosity, batch: &Batch) -> String {
    shown(verbosity, batch).await.0
}

const SPANS: &str = r#"{"resourceSpans": [{
    "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
    "schemaUrl": "https://example.com/r",
    "scopeSpans": [{
        "scope": {"name": "lib", "version": "2.0", "attributes": [{"key": "a", "value": {"boolValue": true}}]},
        "schemaUrl": "https://example.com/s",
        "spans": [{
            "traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "1112131415161718",
            "parentSpanId": "2122232425262728", "traceState": "k=v", "name": "GET /cart", "kind": 2,
            "startTimeUnixNano": "1581452772000000321", "endTimeUnixNano": "1581452773500000000",
            "attributes": [
                {"key": "n", "value": {"intValue": "-7"}},
                {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"doubleValue": 1.5}]}}}
            ],
            "droppedAttributesCount": 1,
            "events": [{"timeUnixNano": "1581452772500000000", "name": "retry", "attributes": [
                {"key": "raw", "value": {"bytesValue": "AAEC"}}]}],
            "links": [{"traceId": "0102030405060708090a0b0c0d0e0f11", "spanId": "3132333435363738"}],
            "status": {"code": 2, "message": "late"}
        }, {"name": "bare"}]
    }]
}]}"#;

const LOGS: &str = r#"{"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {}, "logRecords": [{
    "timeUnixNano": "1581452773000000789", "severityNumber": 10, "severityText": "INFO", "eventName": "my.event",
    "body": {"kvlistValue": {"values": [
        {"key": "b", "value": {"stringValue": "two"}}, {"key": "a", "value": {"kvlistValue": {"values": []}}}]}},
    "attributes": [{"key": "none", "value": {}}, {"key": "half", "value": {"doubleValue": 0.5}}], "flags": 1
}]}]}]}"#;

const METRICS: &str = r#"{"resourceMetrics": [{"resource": {}, "scopeMetrics": [{"scope": {"name": "m"}, "metrics": [
    {"name": "g", "unit": "1", "gauge": {"dataPoints": [
        {"asInt": "5", "attributes": [{"key": "x", "value": {"stringValue": "y"}}, {"key": "z", "value": {"intValue": "1"}}]},
        {"asDouble": 0.25}]}},
    {"name": "s", "sum": {"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{"asDouble": 1.5, "exemplars": [
        {"asInt": "3", "traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "1112131415161718",
         "filteredAttributes": [{"key": "f", "value": {"stringValue": "v"}}]}]}]}},
    {"name": "h", "histogram": {"aggregationTemporality": 1, "dataPoints": [
        {"count": "3", "sum": 4.5, "min": 1, "max": 2, "explicitBounds": [1.5], "bucketCounts": ["1", "2"]}]}},
    {"name": "e", "exponentialHistogram": {"aggregationTemporality": 1, "dataPoints": [
        {"count": "4", "scale": 0, "zeroCount": "1", "zeroThreshold": 0.5,
         "positive": {"offset": 1, "bucketCounts": ["2"]}, "negative": {"bucketCounts": ["1", "0"]}}]}},
    {"name": "q", "summary": {"dataPoints": [
        {"count": "2", "sum": 3, "quantileValues": [{"quantile": 0.5, "value": 1.25}]}]}},
    {"name": "empty"}
]}]}]}"#;

#[tokio::test]
async fn basic_is_one_line_for_a_batch() {
    let spans = batch(Signal::Traces, &[SPANS, SPANS]);
    assert_eq!(log(DebugVerbosity::Basic, &spans).await, "Traces {\"resource spans\": 2, \"spans\": 4}\n");
    let logs = batch(Signal::Logs, &[LOGS]);
    assert_eq!(log(DebugVerbosity::Basic, &logs).await, "Logs {\"resource logs\": 1, \"log records\": 1}\n");
    let metrics = batch(Signal::Metrics, &[METRICS]);
    let line = "Metrics {\"resource metrics\": 1, \"metrics\": 6, \"data points\": 6}\n";
    assert_eq!(log(DebugVerbosity::Basic, &metrics).await, line);
}

#[tokio::test]
async fn normal_is_one_line_for_a_record() {
    let text = log(DebugVerbosity::Normal, &batch(Signal::Traces, &[SPANS])).await;
    let golden = r#"Traces {"resource spans": 1, "spans": 2}
ResourceTraces #0 [https://example.com/r] service.name=shop
ScopeTraces #0 lib@2.0 [https://example.com/s] a=true
GET /cart 0102030405060708090a0b0c0d0e0f10 1112131415161718 n=-7 list=["x",1.5]
bare  
"#;
    assert_eq!(text, golden);
    let text = log(DebugVerbosity::Normal, &batch(Signal::Logs, &[LOGS])).await;
    let golden = r#"Logs {"resource logs": 1, "log records": 1}
ResourceLog #0
ScopeLog #0
{"a":{},"b":"two"} none= half=0.5
"#;
    assert_eq!(text, golden);
}

#[tokio::test]
async fn normal_shows_each_point_of_a_metric() {
    let text = log(DebugVerbosity::Normal, &batch(Signal::Metrics, &[METRICS])).await;
    let golden = r#"Metrics {"resource metrics": 1, "metrics": 6, "data points": 6}
ResourceMetrics #0
ScopeMetrics #0 m
g{x=y,z=1} 5
g{} 0.25
s{} 1.5
h{} count=3 sum=4.5 min=1 max=2 le1.5=1 2
e{} count=4 le1=1 le2=0 le2=2 zero_count0.5=1
q{} count=2 sum=3.000000 q0.5=1.25
"#;
    assert_eq!(text, golden);
}

#[tokio::test]
async fn detailed_shows_every_field_of_a_span() {
    let text = log(DebugVerbosity::Detailed, &batch(Signal::Traces, &[SPANS])).await;
    let golden = r#"Traces {"resource spans": 1, "spans": 2}
ResourceSpans #0
Resource SchemaURL: https://example.com/r
Resource attributes:
     -> service.name: Str(shop)
ScopeSpans #0
ScopeSpans SchemaURL: https://example.com/s
InstrumentationScope lib 2.0
InstrumentationScope attributes:
     -> a: Bool(true)
Span #0
    Trace ID       : 0102030405060708090a0b0c0d0e0f10
    Parent ID      : 2122232425262728
    ID             : 1112131415161718
    Name           : GET /cart
    Kind           : Server
    TraceState     : k=v
    Start time     : 2020-02-11 20:26:12.000000321 +0000 UTC
    End time       : 2020-02-11 20:26:13.5 +0000 UTC
    Status code    : Error
    Status message : late
    DroppedAttributesCount: 1
    DroppedEventsCount: 0
    DroppedLinksCount: 0
Attributes:
     -> n: Int(-7)
     -> list: Slice(["x",1.5])
Events:
SpanEvent #0
     -> Name: retry
     -> Timestamp: 2020-02-11 20:26:12.5 +0000 UTC
     -> DroppedAttributesCount: 0
     -> Attributes::
          -> raw: Bytes(AAEC)
Links:
SpanLink #0
     -> Trace ID: 0102030405060708090a0b0c0d0e0f11
     -> ID: 3132333435363738
     -> TraceState: 
     -> DroppedAttributesCount: 0
Span #1
    Trace ID       : 
    Parent ID      : 
    ID             : 
    Name           : bare
    Kind           : Unspecified
    Start time     : 1970-01-01 00:00:00 +0000 UTC
    End time       : 1970-01-01 00:00:00 +0000 UTC
    Status code    : Unset
    Status message : 
    DroppedAttributesCount: 0
    DroppedEventsCount: 0
    DroppedLinksCount: 0
"#;
    assert_eq!(text, golden);
}

#[tokio::test]
async fn detailed_shows_every_field_of_a_log_record() {
    let text = log(DebugVerbosity::Detailed, &batch(Signal::Logs, &[LOGS])).await;
    let golden = r#"Logs {"resource logs": 1, "log records": 1}
ResourceLog #0
Resource SchemaURL: 
ScopeLogs #0
ScopeLogs SchemaURL: 
InstrumentationScope  
LogRecord #0
ObservedTimestamp: 1970-01-01 00:00:00 +0000 UTC
Timestamp: 2020-02-11 20:26:13.000000789 +0000 UTC
SeverityText: INFO
SeverityNumber: Info2(10)
EventName: my.event
Body: Map({"a":{},"b":"two"})
Attributes:
     -> none: Empty()
     -> half: Double(0.5)
Trace ID: 
Span ID: 
Flags: 1
"#;
    assert_eq!(text, golden);
}

#[tokio::test]
async fn detailed_shows_every_kind_of_metric() {
    let text = log(DebugVerbosity::Detailed, &batch(Signal::Metrics, &[METRICS])).await;
    // Times are all zero here, and shown for spans.
    let text: Vec<&str> = text.lines().filter(|line| !line.contains("Timestamp: 1970")).skip(6).collect();
    let golden = r#"Metric #0
Descriptor:
     -> Name: g
     -> Description: 
     -> Unit: 1
     -> DataType: Gauge
NumberDataPoints #0
Data point attributes:
     -> x: Str(y)
     -> z: Int(1)
Value: 5
NumberDataPoints #1
Value: 0.250000
Metric #1
Descriptor:
     -> Name: s
     -> Description: 
     -> Unit: 
     -> DataType: Sum
     -> IsMonotonic: true
     -> AggregationTemporality: Cumulative
NumberDataPoints #0
Value: 1.500000
Exemplars:
Exemplar #0
     -> Trace ID: 0102030405060708090a0b0c0d0e0f10
     -> Span ID: 1112131415161718
     -> Value: 3
     -> FilteredAttributes:
          -> f: Str(v)
Metric #2
Descriptor:
     -> Name: h
     -> Description: 
     -> Unit: 
     -> DataType: Histogram
     -> AggregationTemporality: Delta
HistogramDataPoints #0
Count: 3
Sum: 4.500000
Min: 1.000000
Max: 2.000000
ExplicitBounds #0: 1.500000
Buckets #0, Count: 1
Buckets #1, Count: 2
Metric #3
Descriptor:
     -> Name: e
     -> Description: 
     -> Unit: 
     -> DataType: ExponentialHistogram
     -> AggregationTemporality: Delta
ExponentialHistogramDataPoints #0
Count: 4
Bucket [-4.000000, -2.000000), Count: 0
Bucket [-2.000000, -1.000000), Count: 1
Bucket [0, 0], Count: 1
Bucket (2.000000, 4.000000], Count: 2
Metric #4
Descriptor:
     -> Name: q
     -> Description: 
     -> Unit: 
     -> DataType: Summary
SummaryDataPoints #0
Count: 2
Sum: 3.000000
QuantileValue #0: Quantile 0.500000, Value 1.250000
Metric #5
Descriptor:
     -> Name: empty
     -> Description: 
     -> Unit: 
     -> DataType: Empty"#;
    assert_eq!(text.join("\n"), golden);
}

#[tokio::test]
async fn json_is_one_object_a_line_on_standard_output() {
    let (log, records) = shown(DebugVerbosity::Json, &batch(Signal::Traces, &[SPANS, SPANS])).await;
    assert_eq!(log, "");
    let lines: Vec<serde_json::Value> = records.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["traceId"], "0102030405060708090a0b0c0d0e0f10");
    assert_eq!(lines[0]["startTimeUnixNano"], "1581452772000000321");
    assert_eq!(lines[0]["resource"]["attributes"][0]["value"]["stringValue"], "shop");
    assert_eq!(lines[0]["scope"]["name"], "lib");
    assert_eq!(lines[1]["name"], "bare");
    assert!(records.ends_with("}\n"));
}

#[tokio::test]
async fn a_record_without_fields_is_an_object_too() {
    let empty = r#"{"resourceLogs": [{"scopeLogs": [{"logRecords": [{}]}]}]}"#;
    let (_, records) = shown(DebugVerbosity::Json, &batch(Signal::Logs, &[empty])).await;
    assert_eq!(records, "{\"resource\":{},\"scope\":{}}\n");
}

#[tokio::test(start_paused = true)]
async fn only_sampled_batches_are_shown() {
    let memory = Arc::new(Memory::default());
    let settings = DebugExporter { sampling_initial: 1, sampling_thereafter: 0, ..DebugExporter::default() };
    let built = build_with_output(&settings, memory.clone()).expect("builds");
    let batch = batch(Signal::Logs, &[LOGS]);
    for _ in 0..3 {
        built.exporter.send(&batch).await.expect("taken");
    }
    assert_eq!(memory.log.lock().lines().count(), 1);
}

#[tokio::test]
async fn a_stream_that_is_closed_is_a_local_failure_that_may_pass() {
    struct Closed;
    impl DebugOutput for Closed {
        fn log_line(&self, _: &str) {}
        fn write_text(&self, _: &str) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn write_records(&self, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    let settings = DebugExporter { verbosity: DebugVerbosity::Json, ..DebugExporter::default() };
    let built = build_with_output(&settings, Arc::new(Closed)).expect("builds");
    let error = built.exporter.send(&batch(Signal::Logs, &[LOGS])).await.expect_err("fails");
    assert_eq!((error.class, error.retryable), (ErrorClass::Local, true));
}

#[tokio::test]
async fn a_panic_is_no_failure_that_may_pass() {
    struct Broken;
    impl DebugOutput for Broken {
        fn log_line(&self, _: &str) {}
        fn write_text(&self, _: &str) -> io::Result<()> {
            panic!("of the output")
        }
        fn write_records(&self, _: &[u8]) -> io::Result<()> {
            panic!("of the output")
        }
    }
    let settings = DebugExporter { verbosity: DebugVerbosity::Json, ..DebugExporter::default() };
    let built = build_with_output(&settings, Arc::new(Broken)).expect("builds");
    let error = built.exporter.send(&batch(Signal::Logs, &[LOGS])).await.expect_err("fails");
    assert!(!error.retryable && error.code.blames_data(), "{error:?}");
}

#[tokio::test]
async fn a_value_of_any_depth_does_no_harm() {
    // An `AnyValue` that holds a list that holds an `AnyValue` …, as deep as a few hundred kilobytes allow.
    fn inside(field: u8, content: Vec<u8>) -> Vec<u8> {
        let mut out = vec![field << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            out.push(length as u8 & 0x7f | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend(content);
        out
    }
    let value = (0..5_000).fold(Vec::new(), |value, _| inside(5, inside(1, value)));
    let record = inside(2, inside(5, value));
    let bytes = Bytes::from(inside(1, inside(2, record)));
    let items = kubewake_otlp::scan(Signal::Logs, &bytes).expect("well formed").items;
    let part = Part::new(bytes, items, Arc::default(), Arc::new(Charge::exempt()));
    let deep = Batch::single(Signal::Logs, part);
    for verbosity in [DebugVerbosity::Normal, DebugVerbosity::Detailed] {
        assert!(log(verbosity, &deep).await.contains("[[[["));
    }
    let built = build(&DebugExporter { verbosity: DebugVerbosity::Json, ..DebugExporter::default() }).expect("builds");
    let error = built.exporter.send(&deep).await.expect_err("too deep for JSON");
    assert!(!error.retryable && error.code.blames_data(), "{error}");
}
