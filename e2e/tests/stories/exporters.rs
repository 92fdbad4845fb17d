//! Telemetry goes to a file or to the screen.

use std::fs;

use kubewake_e2e::{Collector, Config, eventually, http, otlp::spans, otlp::spans_json};
use serde_json::Value;

#[test]
fn a_file_gets_otlp_json_lines() {
    let config = Config::to("file", r#"{path: "${env:DIR}/spans.json", flush_interval: 10ms}"#);
    let mut collector = Collector::with(config).start();
    for name in ["one", "two"] {
        http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&[name, "✓"]));
    }
    let lines = || fs::read_to_string(collector.folder().join("spans.json")).unwrap_or_default();
    eventually("both are written", || lines().lines().count() == 2);
    for (line, name) in lines().lines().zip(["one", "two"]) {
        let expected: Value = serde_json::from_str(&spans_json(&[name, "✓"])).unwrap();
        assert_eq!(serde_json::from_str::<Value>(line).unwrap(), expected);
    }
    http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["last"]));
    assert!(collector.stop().success());
    let lines = fs::read_to_string(collector.folder().join("spans.json")).unwrap();
    assert_eq!(lines.lines().count(), 3, "and the last one at the end");
}

#[test]
fn debug_prints_one_json_object_for_each_span() {
    let collector = Collector::with(Config::to("debug", "{verbosity: json}")).start();
    http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["one", "two"]));
    let lines = || -> Vec<Value> {
        let printed = collector.printed();
        printed.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    eventually("both are printed", || lines().len() == 2);
    for (line, name) in lines().iter().zip(["one", "two"]) {
        assert_eq!(line["name"], name);
        assert_eq!(line["traceId"], "5b8efff798038103d269b633813fc60c");
        assert_eq!(line["resource"]["attributes"][0]["value"]["stringValue"], "shop");
    }
}

#[test]
fn debug_prints_names_and_attributes_for_people() {
    let collector = Collector::with(Config::to("debug", "{verbosity: detailed}")).start();
    http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["one"]));
    eventually("it is printed", || {
        let said = collector.printed() + &collector.logs();
        ["Name           : one", "service.name: Str(shop)", "5b8efff798038103d269b633813fc60c"]
            .iter()
            .all(|part| said.contains(part))
    });
}
