//! Input that is well formed, and unreasonable.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, SinkProcess, grpc_to, http, http_to,
    otlp::{field, spans},
    wait_until,
};

/// A span with an attribute that is a list in a list in a list.
fn deep(levels: usize) -> Vec<u8> {
    let value = (0..levels).fold(field(1, b"bottom"), |inner, _| field(5, &field(1, &inner)));
    let attribute = field(9, &[field(1, b"deep"), field(2, &value)].concat());
    let span = [field(1, &[7; 16]), field(2, &[7; 8]), field(5, b"deep"), attribute].concat();
    field(1, &field(2, &field(2, &span)))
}

/// More than any stack has room for, if every level took a part of it.
const LEVELS: usize = 20_000;

#[test]
fn values_of_any_depth_break_nothing() {
    let sink = SinkProcess::start();
    let config = ConfigBuilder::new()
        .exporter("debug/json", "{verbosity: json}")
        .exporter("debug/detailed", "{verbosity: detailed}")
        .exporter("debug/normal", "{verbosity: normal}")
        .exporter("file", r#"{path: "${env:DIR}/out.json", flush_interval: 10ms}"#)
        .exporter("otlphttp", http_to(sink.address()).with_setting("encoding: json"))
        .exporter("otlp", grpc_to(sink.address()))
        .pipeline("traces/json", "", "debug/json")
        .pipeline("traces/detailed", "", "debug/detailed")
        .pipeline("traces/normal", "", "debug/normal")
        .pipeline("traces/file", "", "file")
        .pipeline("traces/otlphttp", "", "otlphttp")
        .pipeline("traces/otlp", "", "otlp");
    let mut collector = CollectorProcess::with_config(config).start();
    let post = |body: &[u8]| http::post(collector.http(), "/v1/traces", "application/x-protobuf", body).status;
    // Taken as it is, or refused: what counts is that it is answered.
    assert!([200, 400].contains(&post(&deep(LEVELS))));
    assert_eq!(post(&spans(&["shallow"])), 200);
    let settled = |pipeline: &serde_json::Value| {
        let dropped: u64 = pipeline["dropped"].as_object().unwrap().values().filter_map(|count| count.as_u64()).sum();
        dropped + pipeline["delivered"].as_u64().unwrap() == 2
    };
    wait_until("every pipeline has processed the request", || {
        collector.status()["pipelines"].as_object().unwrap().values().all(settled)
    });
    let written = std::fs::read_to_string(collector.folder().join("out.json")).unwrap();
    assert!(written.contains("shallow"), "{written}");
    assert!(collector.is_running());
}

#[test]
fn json_of_any_depth_breaks_nothing() {
    let mut collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("nop", "")).start();
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"{"resourceSpans":["#, "]}")] {
        let body = format!("{}1{}", open.repeat(LEVELS), close.repeat(LEVELS));
        let status = http::post(collector.http(), "/v1/traces", "application/json", body.as_bytes()).status;
        // What nobody knows may be skipped.
        assert!([200, 400].contains(&status), "{status}");
    }
    assert!(collector.is_running());
}

#[test]
fn text_that_is_not_utf8_goes_through() {
    let sink = SinkProcess::start();
    let config = ConfigBuilder::new()
        .exporter("debug", "{verbosity: json}")
        .exporter("otlp", grpc_to(sink.address()))
        .exporter("otlphttp", http_to(sink.address()).with_setting("encoding: json"))
        .pipeline("traces/debug", "", "debug")
        .pipeline("traces/otlp", "", "otlp")
        .pipeline("traces/otlphttp", "", "otlphttp");
    let collector = CollectorProcess::with_config(config).start();
    let mut body = spans(&["nameless"]);
    let at = body.windows(4).position(|window| window == b"name").unwrap();
    body[at..at + 4].copy_from_slice(&[0xff, 0xc0, 0x80, 0xfe]);
    assert_eq!(http::post(collector.http(), "/v1/traces", "application/x-protobuf", &body).status, 200);
    sink.wait_for_items(2);
    wait_until("the debug exporter prints the span", || collector.stdout().contains("less\""));
}
