//! Telemetry goes to a file or to the screen.

use std::fs;

use kubewake_e2e::{CollectorProcess, ConfigBuilder, http, otlp::spans, otlp::spans_json, wait_until};
use serde_json::Value;

#[test]
fn a_file_gets_otlp_json_lines() {
    let config = ConfigBuilder::exporting_to("file", r#"{path: "${env:DIR}/spans.json", flush_interval: 10ms}"#);
    let mut collector = CollectorProcess::with_config(config).start();
    for name in ["one", "two"] {
        http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&[name, "✓"]));
    }
    let lines = || fs::read_to_string(collector.folder().join("spans.json")).unwrap_or_default();
    wait_until("both requests are written", || lines().lines().count() == 2);
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
fn a_file_that_cannot_be_written_is_for_the_sender_to_know() {
    let config = ConfigBuilder::exporting_to("file", "{path: /dev/full, flush_interval: 10ms}");
    let mut collector = CollectorProcess::with_config(config).start();
    let post = || http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["x"])).status;
    // What is still on its way to the file may be taken; nothing is once it is known that there is no room.
    wait_until("the request is refused with a retryable status", || post() == 503);
    assert_eq!(collector.status()["pipelines"]["traces"]["last_error"], "local");
    assert!(collector.is_running());
}

#[test]
fn a_path_that_cannot_be_opened_is_named_at_the_start() {
    let output = CollectorProcess::with_config(ConfigBuilder::exporting_to(
        "file",
        r#"{path: "${env:DIR}/nowhere/spans.json"}"#,
    ))
    .run();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.lines().count() == 1 && said.contains("nowhere/spans.json"), "{said}");
}

#[test]
fn debug_prints_one_json_object_for_each_span() {
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("debug", "{verbosity: json}")).start();
    http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["one", "two"]));
    let lines = || -> Vec<Value> {
        let printed = collector.stdout();
        printed.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    wait_until("both spans are printed", || lines().len() == 2);
    for (line, name) in lines().iter().zip(["one", "two"]) {
        assert_eq!(line["name"], name);
        assert_eq!(line["traceId"], "5b8efff798038103d269b633813fc60c");
        assert_eq!(line["resource"]["attributes"][0]["value"]["stringValue"], "shop");
    }
}

#[test]
fn debug_prints_names_and_attributes_for_people() {
    let collector =
        CollectorProcess::with_config(ConfigBuilder::exporting_to("debug", "{verbosity: detailed}")).start();
    http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["one"]));
    wait_until("the span is printed", || {
        let said = collector.stdout() + &collector.logs();
        ["Name           : one", "service.name: Str(shop)", "5b8efff798038103d269b633813fc60c"]
            .iter()
            .all(|part| said.contains(part))
    });
}
