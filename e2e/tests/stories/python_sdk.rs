//! Programs with the OpenTelemetry SDK for Python send through the collector.

use kubewake_e2e::{Collector, Config, Sink, eventually, grpc_to, http_to, python};
use kubewake_otlp::Signal;

#[test]
fn over_grpc() {
    let sink = Sink::start();
    arrives_equal(&sink, Config::to("otlp", grpc_to(sink.address())), "grpc", "none");
}

#[test]
fn over_grpc_with_gzip() {
    let sink = Sink::start();
    arrives_equal(&sink, Config::to("otlp", grpc_to(sink.address()).with("compression: zstd")), "grpc", "gzip");
}

#[test]
fn over_http() {
    let sink = Sink::start();
    arrives_equal(&sink, Config::to("otlphttp", http_to(sink.address()).with("compression: none")), "http", "none");
}

#[test]
fn over_http_with_gzip() {
    let sink = Sink::start();
    arrives_equal(&sink, Config::to("otlphttp", http_to(sink.address())), "http", "gzip");
}

#[test]
fn over_http_and_on_in_json() {
    let sink = Sink::start();
    arrives_equal(&sink, Config::to("otlphttp", http_to(sink.address()).with("encoding: json")), "http", "gzip");
}

fn arrives_equal(sink: &Sink, config: Config, protocol: &str, compression: &str) {
    let collector = Collector::with(config).start();
    let endpoint = match protocol {
        "grpc" => collector.grpc().to_string(),
        _ => format!("http://{}", collector.http()),
    };
    let sent = python::run("send.py", &[protocol, &endpoint, compression]);
    for signal in Signal::ALL {
        let sent = sent[signal.name()].as_array().unwrap();
        assert!(!sent.is_empty(), "no {signal} were sent");
        eventually(&format!("all {signal} arrive"), || sink.received(signal).len() == sent.len());
        assert_eq!(&sink.received(signal), sent, "{signal}");
    }
}
