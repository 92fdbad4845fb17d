//! Somebody writes a document: what is wrong with it is said at once, completely, and without its secrets.

use std::{net::TcpListener, process::Output};

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, HttpBackend, free_address, grpc_to, http, http_to, otlp::spans, wait_until,
};

const SECRET: &str = "hunter2";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_good_document_is_accepted_in_silence() {
    let output = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(free_address()))).validate();
    assert!(output.status.success());
    assert_eq!(text(&output), "");
}

const BAD: &str = r#"receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}, htpp: {}}}
  jaeger: {}
processors:
  batch: {timeout: 5 parsecs}
exporters:
  otlphttp:
    endpoint: "http://user:hunter2@127.0.0.1:99999"
    headers: {authorization: "Bearer hunter2", x-api-key: [hunter2]}
    compresion: gzip
  otlp: {endpoint: "user:hunter2@backend:1:2"}
extensions:
  basicauth: {client_auth: {username: me, password: hunter2, pasword: hunter2}}
  bearertokenauth: {token: hunter2, tokens: hunter2}
service:
  pipelines:
    traces: {receivers: [otlp], processors: [bath], exporters: [otlphttp, otlp]}
"#;

#[test]
fn every_error_is_listed_with_its_line() {
    let output = CollectorProcess::with_config(BAD).validate();
    assert_eq!(output.status.code(), Some(1));
    let text = text(&output);
    for expected in [
        "2:55 receivers::otlp::protocols::htpp",
        "3:3 receivers::jaeger",
        "5:20 processors::batch::timeout",
        "8:15 exporters::otlphttp::endpoint",
        "9:48 exporters::otlphttp::headers::x-api-key",
        "10:5 exporters::otlphttp::compresion",
        "11:20 exporters::otlp::endpoint",
        "13:62 extensions::basicauth::client_auth::pasword",
        "14:45 extensions::bearertokenauth::tokens",
        "17:46 service::pipelines::traces::processors",
        "did you mean `http`?",
        "did you mean `batch`?",
        "10 errors",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
}

#[test]
fn warnings_are_listed_beside_errors_and_items_of_lists_by_their_names() {
    let sampler = "{decision_wait: soon, policies: [{name: slow, type: latency, latency: {threshold_ms: 5, upper_threshold_ms: 1}}]}";
    let config = ConfigBuilder::exporting_to("nop", "").processor("tail_sampling", sampler).pipeline(
        "traces",
        "tail_sampling",
        "nop",
    );
    let output = CollectorProcess::with_config(config).validate();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("no trace matches") && text.contains("policies::0 (slow)::latency"), "{text}");
    assert!(text.trim_end().ends_with("1 error; 1 warning"), "{text}");
}

#[test]
fn errors_do_not_print_secrets() {
    for output in [CollectorProcess::with_config(BAD).validate(), CollectorProcess::with_config(BAD).run()] {
        assert!(!text(&output).contains(SECRET), "{}", text(&output));
    }
}

#[test]
fn nothing_starts_from_a_bad_document() {
    let output = CollectorProcess::with_config(BAD).run();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("10 errors"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn a_document_that_is_not_there() {
    let nowhere = CollectorProcess::with_config("").config_at("/nowhere/collector.yaml".into()).run();
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere).contains("/nowhere/collector.yaml"), "{}", text(&nowhere));
}

#[test]
fn a_command_line_of_the_collector_is_understood() {
    let gates = ["--feature-gates=-some.gate"];
    let nowhere = CollectorProcess::with_config("").config_at("file:/nowhere/collector.yaml".into()).args(&gates).run();
    assert_eq!(nowhere.status.code(), Some(1));
    let said = text(&nowhere);
    assert!(said.contains("failed to read /nowhere/collector.yaml"), "{said}");
    assert!(said.contains("warning: `--feature-gates` has no effect"), "{said}");
    let elsewhere = CollectorProcess::with_config("").config_at("yaml:exporters::otlp::endpoint: s3cret".into()).run();
    assert_eq!(elsewhere.status.code(), Some(2));
    let said = text(&elsewhere);
    assert!(said.contains("`--config yaml:…` is not supported") && !said.contains("s3cret"), "{said}");
}

#[test]
fn a_busy_port_is_named_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let receiver = kubewake_e2e::config::otlp_at(address, "127.0.0.1:0");
    let health = format!(r#"{{endpoint: "{address}"}}"#);
    let busy = |config: ConfigBuilder| {
        let output = CollectorProcess::with_config(config).run();
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(&address.to_string()) && stderr.contains("in use"), "{stderr}");
    };
    busy(ConfigBuilder::exporting_to("nop", "").receiver("otlp", receiver));
    busy(ConfigBuilder::exporting_to("nop", "").extension("health_check", health));
}

#[test]
fn a_running_collector_does_not_log_secrets() {
    let sulking = HttpBackend::start(|_| (503, Vec::new(), b"not today".to_vec()));
    let refusing = HttpBackend::start(|_| (401, Vec::new(), Vec::new()));
    let headers = format!(r#"headers: {{x-api-key: {SECRET}}}"#);
    let auth = "auth: {authenticator: bearertokenauth}";
    let config = ConfigBuilder::new()
        .extension("bearertokenauth", format!("{{token: {SECRET}}}"))
        .exporter("otlphttp/sulking", http_to(sulking.address()).with_setting(&headers))
        .exporter("otlphttp/refusing", http_to(refusing.address()).with_setting(auth))
        .exporter("otlp/absent", grpc_to(free_address()).with_setting(&headers))
        .exporter("debug", "{verbosity: basic}")
        .pipeline("traces", "", "otlphttp/sulking, otlphttp/refusing, otlp/absent, debug")
        .debug_logs();
    let collector = CollectorProcess::with_config(&config).start();
    let body = spans(&["x"]);
    let headers = [("content-type", "application/x-protobuf"), ("authorization", "Bearer hunter2")];
    let answer =
        kubewake_e2e::Http1Connection::connect(collector.http()).request("POST", "/v1/traces", &headers, &body);
    assert_eq!(answer.status, 200);
    wait_until("all backends have requests", || {
        !refusing.requests().is_empty()
            && sulking.requests().len() > 2
            && collector.status()["pipelines"]["traces"]["exporters"]["otlp/absent"]["failures"].as_u64() > Some(2)
    });
    // Everybody's last words, and those about a document that is refused.
    collector.reload_refused(BAD);
    let seen = [collector.logs(), collector.stdout(), collector.status().to_string(), collector.metrics_page()];
    assert!(sulking.requests().iter().all(|request| request.header("x-api-key") == SECRET), "it is sent, though");
    assert_eq!(refusing.requests()[0].header("authorization"), "Bearer hunter2");
    for text in seen {
        assert!(!text.contains(SECRET), "{text}");
    }
    assert_eq!(http::get(collector.http(), "/").status, 404);
}
