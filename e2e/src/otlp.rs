//! OTLP requests to send and to inspect.

use std::io::Write;

use flate2::{Compress, Compression, FlushCompress, write::GzEncoder};
use kubewake_otlp::{Signal, json, wire::put_bytes};
use serde_json::{Value, json};

/// A JSON request with a span for each name.
pub fn spans_json(names: &[&str]) -> String {
    let span = |(i, name): (usize, &&str)| {
        let id = format!("{:016x}", i + 1);
        format!(
            r#"{{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"{id}","name":"{name}","kind":2,
            "startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000"}}"#
        )
    };
    let spans: Vec<_> = names.iter().enumerate().map(span).collect();
    let resource = r#"{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]}"#;
    let spans = spans.join(",");
    format!(r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#)
}

pub fn spans(names: &[&str]) -> Vec<u8> {
    json::decode(Signal::Traces, spans_json(names).as_bytes()).expect("the text is OTLP in JSON")
}

/// A JSON request with a log record.
pub fn log_json(body: &str) -> String {
    format!(
        r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[
        {{"timeUnixNano":"1544712660300000000","severityNumber":9,"body":{{"stringValue":"{body}"}}}}]}}]}}]}}"#
    )
}

/// A JSON request with a log record for each line, a second apart, with these attributes of the resource and of the
/// records.
pub fn logs_json(resource: &[(&str, &str)], attributes: &[(&str, &str)], lines: &[&str]) -> String {
    let pairs = |pairs: &[(&str, &str)]| -> Vec<Value> {
        pairs.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
    };
    let record = |(number, line): (usize, &&str)| {
        let time = 1_544_712_660_000_000_000 + number as u64 * 1_000_000_000;
        json!({"timeUnixNano": time.to_string(), "body": {"stringValue": line}, "attributes": pairs(attributes)})
    };
    let records: Vec<Value> = lines.iter().enumerate().map(record).collect();
    let resource = json!({"attributes": pairs(resource)});
    json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}).to_string()
}

/// A JSON request with a counter.
pub fn metric_json(name: &str) -> String {
    format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"{name}","sum":{{"aggregationTemporality":2,
        "isMonotonic":true,"dataPoints":[{{"asInt":"42","timeUnixNano":"1544712660300000000"}}]}}}}]}}]}}]}}"#
    )
}

/// A protobuf field that holds these bytes.
pub fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 8);
    put_bytes(&mut out, number.into(), content);
    out
}

/// The attributes of all resources in JSON requests.
pub fn resource_attributes(requests: &[Value]) -> Vec<Value> {
    let entries = requests.iter().flat_map(|request| request["resourceSpans"].as_array().cloned().unwrap_or_default());
    entries.map(|entry| entry["resource"]["attributes"].clone()).collect()
}

/// The text of an attribute; empty if it is absent.
pub fn attribute<'a>(attributes: &'a Value, key: &str) -> &'a str {
    let pair = attributes.as_array().into_iter().flatten().find(|pair| pair["key"] == key);
    pair.and_then(|pair| pair["value"]["stringValue"].as_str()).unwrap_or_default()
}

/// The names of all spans in a JSON request.
pub fn span_names(request: &Value) -> Vec<String> {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let scopes = list(request, "resourceSpans").into_iter().flat_map(|resource| list(&resource, "scopeSpans"));
    let spans = scopes.flat_map(|scope| list(&scope, "spans"));
    spans.map(|span| span["name"].as_str().unwrap_or_default().to_owned()).collect()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A small gzip stream that decompresses to `mib` MiB of zeros.
///
/// A fully flushed block of deflate is independent of what precedes it, so that one can be repeated. The
/// checksum at the end is missing: a server must not get that far.
pub fn bomb(mib: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(64 << 10);
    let mut deflate = Compress::new(Compression::best(), false);
    deflate.compress_vec(&vec![0; 1 << 20], &mut block, FlushCompress::Full).unwrap();
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    [&header[..], &block.repeat(mib)].concat()
}
