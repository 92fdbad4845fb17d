//! Programs with the OpenTelemetry SDK for Python send through the collector.

use kubewake_e2e::{CollectorProcess, ConfigBuilder, SinkProcess, grpc_to, http_to, python, wait_until};
use kubewake_otlp::Signal;

#[test]
fn over_grpc() {
    let sink = SinkProcess::start();
    arrives_equal(&sink, ConfigBuilder::exporting_to("otlp", grpc_to(sink.address())), "grpc", "none");
}

#[test]
fn over_grpc_with_gzip() {
    let sink = SinkProcess::start();
    arrives_equal(
        &sink,
        ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()).with_setting("compression: zstd")),
        "grpc",
        "gzip",
    );
}

#[test]
fn over_http() {
    let sink = SinkProcess::start();
    arrives_equal(
        &sink,
        ConfigBuilder::exporting_to("otlphttp", http_to(sink.address()).with_setting("compression: none")),
        "http",
        "none",
    );
}

#[test]
fn over_http_with_gzip() {
    let sink = SinkProcess::start();
    arrives_equal(&sink, ConfigBuilder::exporting_to("otlphttp", http_to(sink.address())), "http", "gzip");
}

#[test]
fn over_http_and_on_in_json() {
    let sink = SinkProcess::start();
    arrives_equal(
        &sink,
        ConfigBuilder::exporting_to("otlphttp", http_to(sink.address()).with_setting("encoding: json")),
        "http",
        "gzip",
    );
}

fn arrives_equal(sink: &SinkProcess, config: ConfigBuilder, protocol: &str, compression: &str) {
    let collector = CollectorProcess::with_config(config).start();
    let endpoint = match protocol {
        "grpc" => collector.grpc().to_string(),
        _ => format!("http://{}", collector.http()),
    };
    let sent = python::run("send.py", &[protocol, &endpoint, compression]);
    for signal in Signal::ALL {
        let sent = sent[signal.name()].as_array().unwrap();
        assert!(!sent.is_empty(), "no {signal} were sent");
        wait_until(&format!("all {signal} arrive"), || sink.received(signal).len() == sent.len());
        assert_eq!(&sink.received(signal), sent, "{signal}");
    }
}
