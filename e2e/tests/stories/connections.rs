//! Connections of senders: how old they may get, and which web pages may send.

use kubewake_e2e::{CollectorProcess, ConfigBuilder, Http1Connection, LoadGenerator, SinkProcess, grpc_to};

#[test]
fn a_sender_whose_connection_is_closed_for_its_age_loses_nothing() {
    let sink = SinkProcess::start();
    let keepalive = "keepalive: {server_parameters: {max_connection_age: 200ms, max_connection_age_grace: 5s}}";
    let receiver = format!(r#"{{protocols: {{grpc: {{endpoint: "127.0.0.1:0", {keepalive}}}}}}}"#);
    let config = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address())).receiver("otlp", receiver);
    let collector = CollectorProcess::with_config(config).start();
    // A request that meets the farewell is sent again without being asked to, as by every gRPC client: it was not
    // looked at.
    let args = ["--seconds", "2", "--rate", "5000", "--connections", "2"];
    let report = LoadGenerator::run("grpc", collector.grpc(), &args);
    assert!(report.json["connections"]["opened"].as_u64() > Some(4), "each connection is made anew: {report:?}");
    assert_eq!(report.items("acknowledged"), report.items("started"), "{report:?}");
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(sink.count("duplicates"), 0);
}

#[test]
fn a_web_page_of_an_allowed_origin_may_send() {
    let cors = r#"cors: {allowed_origins: ["https://*.example.com"], allowed_headers: [x-tenant], max_age: 600}"#;
    let receiver = format!(r#"{{protocols: {{http: {{endpoint: "127.0.0.1:0", {cors}}}}}}}"#);
    let collector =
        CollectorProcess::with_config(ConfigBuilder::exporting_to("nop", "").receiver("otlp", receiver)).start();
    let preflight = |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,x-tenant"),
        ];
        Http1Connection::connect(collector.http()).request("OPTIONS", "/v1/traces", &headers, b"")
    };
    let answer = preflight("https://shop.example.com");
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-origin"), "https://shop.example.com");
    assert_eq!(answer.header("access-control-allow-methods"), "POST");
    assert!(answer.header("access-control-allow-headers").to_lowercase().contains("x-tenant"), "{answer:?}");
    assert_eq!(answer.header("access-control-max-age"), "600");
    assert_eq!(preflight("https://evil.example.org").header("access-control-allow-origin"), "");

    let headers = [("content-type", "application/json"), ("origin", "https://shop.example.com")];
    let answer = Http1Connection::connect(collector.http()).request("POST", "/v1/traces", &headers, b"{}");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), "https://shop.example.com");
}
