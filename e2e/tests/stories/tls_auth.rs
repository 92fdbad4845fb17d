//! Senders and backends that must prove who they are.

use std::path::Path;

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, GrpcCall, HttpBackend, HttpResponse, SinkProcess, TestAuthority,
    backend::accepted_reply, collector::CollectorBuilder, curl, grpc_to, http_to, otlp::spans, python, wait_until,
};

/// An `otlp` receiver both of whose protocols have these settings.
fn receiver(settings: &str) -> String {
    let one = format!(r#"{{endpoint: "127.0.0.1:0", {settings}}}"#);
    format!("{{protocols: {{grpc: {one}, http: {one}}}}}")
}

const SERVER: &str = r#"cert_file: "${env:DIR}/server.pem", key_file: "${env:DIR}/server.key""#;

/// Writes the files of a server, of one of its clients, and of a stranger.
fn with_files(builder: CollectorBuilder, ours: &TestAuthority, theirs: &TestAuthority) -> CollectorBuilder {
    let server = ours.sign("server");
    let client = ours.sign("client");
    let stranger = theirs.sign("stranger");
    builder
        .file("ca.pem", ours.pem())
        .file("other-ca.pem", theirs.pem())
        .file("server.pem", server.cert)
        .file("server.key", server.key)
        .file("client.pem", client.cert)
        .file("client.key", client.key)
        .file("stranger.pem", stranger.cert)
        .file("stranger.key", stranger.key)
}

fn post(collector: &CollectorProcess, args: &[&str]) -> Result<HttpResponse, String> {
    let url = format!("https://{}/v1/traces", collector.http());
    let mut all = vec!["-H", "content-type: application/json", "-d", "{}", &url];
    all.extend(args);
    curl(all, b"")
}

fn call(collector: &CollectorProcess, args: &[&str]) -> Result<HttpResponse, String> {
    let base = format!("https://{}", collector.grpc());
    let call = GrpcCall::call(base, "opentelemetry.proto.collector.trace.v1.TraceService/Export");
    args.iter().fold(call, |call, arg| call.arg(*arg)).try_send_body(&[0; 5])
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn both_protocols_speak_tls() {
    let ours = TestAuthority::new("ours");
    let theirs = TestAuthority::new("theirs");
    let config = ConfigBuilder::exporting_to("nop", "").receiver("otlp", receiver(&format!("tls: {{{SERVER}}}")));
    let collector = with_files(CollectorProcess::with_config(config), &ours, &theirs).start();
    let ca = file(collector.folder(), "ca.pem");
    let other = file(collector.folder(), "other-ca.pem");
    for send in [post, call] {
        assert_eq!(send(&collector, &["--cacert", &ca]).unwrap().status, 200);
        assert!(send(&collector, &["--cacert", &other]).is_err(), "the wrong authority");
        assert!(send(&collector, &["--cacert", &ca, "--tls-max", "1.1"]).is_err(), "too old");
    }
}

#[test]
fn a_sender_must_have_a_certificate_that_we_know() {
    let ours = TestAuthority::new("ours");
    let theirs = TestAuthority::new("theirs");
    let tls = format!(r#"tls: {{{SERVER}, client_ca_file: "${{env:DIR}}/ca.pem"}}"#);
    let collector = with_files(
        CollectorProcess::with_config(ConfigBuilder::exporting_to("nop", "").receiver("otlp", receiver(&tls))),
        &ours,
        &theirs,
    )
    .start();
    let at = |name: &str| file(collector.folder(), name);
    let ca = at("ca.pem");
    for send in [post, call] {
        let known = ["--cacert", &ca, "--cert", &at("client.pem"), "--key", &at("client.key")];
        assert_eq!(send(&collector, &known).unwrap().status, 200);
        assert!(send(&collector, &["--cacert", &ca]).is_err(), "no certificate");
        let unknown = ["--cacert", &ca, "--cert", &at("stranger.pem"), "--key", &at("stranger.key")];
        assert!(send(&collector, &unknown).is_err(), "a stranger's certificate");
    }
}

#[test]
fn collectors_trust_each_other_by_certificates() {
    let ours = TestAuthority::new("ours");
    let theirs = TestAuthority::new("theirs");
    let sink = SinkProcess::start();
    let tls = format!(r#"tls: {{{SERVER}, client_ca_file: "${{env:DIR}}/ca.pem"}}"#);
    let config = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address())).receiver("otlp", receiver(&tls));
    let server = with_files(CollectorProcess::with_config(config), &ours, &theirs).start();
    let at = |name: &str| file(server.folder(), name);
    let identity =
        format!("ca_file: {}, cert_file: {}, key_file: {}", at("ca.pem"), at("client.pem"), at("client.key"));
    let stranger =
        format!("ca_file: {}, cert_file: {}, key_file: {}", at("ca.pem"), at("stranger.pem"), at("stranger.key"));
    let retry = "retry_on_failure: {initial_interval: 50ms, max_interval: 100ms}";
    let exporter = |endpoint: String, tls: &str| format!("{{endpoint: \"{endpoint}\", tls: {{{tls}}}, {retry}}}");
    let config = ConfigBuilder::new()
        .exporter("otlp", exporter(server.grpc().to_string(), &identity))
        .exporter("otlphttp", exporter(format!("https://{}", server.http()), &identity))
        .exporter("otlp/wrong_ca", exporter(server.grpc().to_string(), &format!("ca_file: {}", at("other-ca.pem"))))
        .exporter("otlphttp/stranger", exporter(format!("https://{}", server.http()), &stranger))
        .pipeline("traces/grpc", "", "otlp")
        .pipeline("traces/http", "", "otlphttp")
        .pipeline("traces/wrong_ca", "", "otlp/wrong_ca")
        .pipeline("traces/stranger", "", "otlphttp/stranger");
    let client = CollectorProcess::with_config(config).start();
    let answer = GrpcCall::traces(client.grpc()).send(&spans(&["secured"]));
    assert_eq!(answer.code, 0);
    sink.wait_for_items(2);
    let failing = |pipeline: &str| client.status()["pipelines"][pipeline]["failures"].as_u64() > Some(1);
    wait_until("the other pipelines fail", || failing("traces/wrong_ca") && failing("traces/stranger"));
    assert_eq!(sink.span_names(), ["secured", "secured"]);
}

/// What senders with these headers are answered, over HTTP and over gRPC.
fn answers(collector: &CollectorProcess, headers: &[&str]) -> Vec<(u16, u32)> {
    let url = format!("http://{}/v1/traces", collector.http());
    let status = |header: &&str| {
        let header = header.replacen('=', ": ", 1);
        curl(["-H", "content-type: application/json", "-H", &header, "-d", "{}", &url], b"").unwrap().status
    };
    let calls = python::call_traces(collector.grpc(), headers, b"").into_iter().map(|answer| answer.code);
    headers.iter().map(status).zip(calls).collect()
}

const UNAUTHENTICATED: u32 = 16;

#[test]
fn a_receiver_asks_for_a_bearer_token() {
    let config = ConfigBuilder::exporting_to("nop", "")
        .extension("bearertokenauth", r#"{filename: "${env:DIR}/token"}"#)
        .receiver("otlp", receiver("auth: {authenticator: bearertokenauth}"));
    let collector = CollectorProcess::with_config(config).file("token", "first\n").start();
    let tokens = ["authorization=Bearer first", "authorization=Bearer second", "authorization=first", "x-other=first"];
    let yes = (200, 0);
    let no = (401, UNAUTHENTICATED);
    assert_eq!(answers(&collector, &tokens), [yes, no, no, no]);
    std::fs::write(collector.folder().join("token"), "second\n").unwrap();
    wait_until("the new token counts", || answers(&collector, &tokens) == [no, yes, no, no]);
    assert!(!collector.logs().contains("second"), "{}", collector.logs());
}

#[test]
fn a_receiver_asks_for_a_name_and_a_password() {
    let config = ConfigBuilder::exporting_to("nop", "")
        .extension("basicauth", r#"{htpasswd: {inline: "ada:lovelace"}}"#)
        .receiver("otlp", receiver("auth: {authenticator: basicauth}"));
    let collector = CollectorProcess::with_config(config).start();
    // ada:lovelace, ada:byron, and what is none at all.
    let headers =
        ["Basic YWRhOmxvdmVsYWNl", "Basic YWRhOmJ5cm9u", "Basic x", "x"].map(|value| format!("authorization={value}"));
    let yes = (200, 0);
    let no = (401, UNAUTHENTICATED);
    assert_eq!(answers(&collector, &headers.each_ref().map(String::as_str)), [yes, no, no, no]);
}

#[test]
fn exporters_show_their_credentials() {
    let backend = HttpBackend::start(|_| accepted_reply());
    let config = ConfigBuilder::new()
        .extension("bearertokenauth", r#"{filename: "${env:DIR}/token"}"#)
        .extension("basicauth", "{client_auth: {username: ada, password: lovelace}}")
        .exporter("otlphttp/bearer", http_to(backend.address()).with_setting("auth: {authenticator: bearertokenauth}"))
        .exporter("otlphttp/basic", http_to(backend.address()).with_setting("auth: {authenticator: basicauth}"))
        .pipeline("traces", "", "otlphttp/bearer, otlphttp/basic");
    let collector = CollectorProcess::with_config(config).file("token", "first").start();
    let shown =
        || backend.requests().iter().map(|request| request.header("authorization").to_owned()).collect::<Vec<_>>();
    let send = || assert_eq!(GrpcCall::traces(collector.grpc()).send(&spans(&["x"])).code, 0);
    send();
    wait_until("both pipelines have sent requests", || shown().len() == 2);
    assert!(shown().contains(&"Bearer first".to_owned()) && shown().contains(&"Basic YWRhOmxvdmVsYWNl".to_owned()));
    std::fs::write(collector.folder().join("token"), "second").unwrap();
    wait_until("the new token is sent", || {
        send();
        shown().contains(&"Bearer second".to_owned())
    });
}

#[test]
fn a_collector_logs_in_at_another() {
    let sink = SinkProcess::start();
    let config = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))
        .extension("bearertokenauth", "{token: open sesame}")
        .receiver("otlp", receiver("auth: {authenticator: bearertokenauth}"));
    let server = CollectorProcess::with_config(config).start();
    let config = ConfigBuilder::new()
        .extension("bearertokenauth/good", "{token: open sesame}")
        .extension("bearertokenauth/bad", "{token: open barley}")
        .exporter("otlp/good", grpc_to(server.grpc()).with_setting("auth: {authenticator: bearertokenauth/good}"))
        .exporter("otlp/bad", grpc_to(server.grpc()).with_setting("auth: {authenticator: bearertokenauth/bad}"))
        .pipeline("traces/good", "", "otlp/good")
        .pipeline("traces/bad", "", "otlp/bad");
    let client = CollectorProcess::with_config(config).start();
    assert_eq!(GrpcCall::traces(client.grpc()).send(&spans(&["x"])).code, 0);
    sink.wait_for_items(1);
    wait_until("the pipeline with wrong credentials fails", || {
        client.status()["pipelines"]["traces/bad"]["last_error"] == "authentication"
    });
    let bad = &client.status()["pipelines"]["traces/bad"];
    assert_eq!((&bad["diagnosis"], &bad["last_error_code"]), (&"BackendRefuses".into(), &"grpc:16".into()), "{bad}");
    assert_eq!(sink.items(), 1);
}

#[test]
fn a_token_is_fetched_and_used_until_it_expires() {
    let issuer = HttpBackend::start(|_| {
        let token = br#"{"access_token":"fresh","token_type":"Bearer","expires_in":3600}"#;
        (200, vec![("content-type", "application/json".to_owned())], token.to_vec())
    });
    let backend = HttpBackend::start(|_| accepted_reply());
    let oauth = format!(
        r#"{{client_id: shop, client_secret: hunter2, token_url: "http://{}/token", scopes: [write]}}"#,
        issuer.address()
    );
    let config = ConfigBuilder::exporting_to(
        "otlphttp",
        http_to(backend.address()).with_setting("auth: {authenticator: oauth2client}"),
    )
    .extension("oauth2client", oauth)
    .debug_logs();
    let collector = CollectorProcess::with_config(config).start();
    for _ in 0..3 {
        assert_eq!(GrpcCall::traces(collector.grpc()).send(&spans(&["x"])).code, 0);
    }
    wait_until("all three requests arrive", || backend.requests().len() == 3);
    assert!(backend.requests().iter().all(|request| request.header("authorization") == "Bearer fresh"));
    let asked = issuer.requests();
    assert_eq!(asked.len(), 1, "one token is enough");
    assert!(asked[0].contains("grant_type=client_credentials") && asked[0].contains("scope=write"), "{asked:?}");
    assert!(!collector.logs().contains("hunter2") && !collector.logs().contains("fresh"), "{}", collector.logs());
}
