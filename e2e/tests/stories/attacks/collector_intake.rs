//! Senders that announce what they do not send, stop in the middle of it, or guess passwords.

use std::{io::Write, net::TcpStream, thread};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, Http1Connection, Http2Connection, HttpResponse, LoadGenerator,
    http2::grpc_prefix,
    otlp::{gzip, spans, spans_json},
    wait_until,
};

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const OPEN_CENSUS_EXPORT: &str = "/opencensus.proto.agent.trace.v1.TraceService/Export";

/// Lengths that fill a budget to its last bytes, if what is announced is reserved.
const FALLING: [usize; 8] = [4 << 20, 1 << 20, 256 << 10, 64 << 10, 16 << 10, 4 << 10, 1 << 10, 256];
const MAX_CALLS_PER_CONNECTION: usize = 900;

fn limited() -> ConfigBuilder {
    let limiter = "{check_interval: 1s, limit_mib: 64, spike_limit_mib: 12}";
    ConfigBuilder::new().exporter("nop", "").processor("memory_limiter", limiter).pipeline(
        "traces",
        "memory_limiter",
        "nop",
    )
}

/// Begins calls of these lengths, each with the prefix of its message and `sent` bytes of it.
fn announce(collector: &CollectorProcess, path: &str, lengths: &[usize], sent: usize) -> Vec<Http2Connection> {
    let address = if path == EXPORT { collector.grpc() } else { collector.listener("opencensus/grpc") };
    let connections = lengths.chunks(MAX_CALLS_PER_CONNECTION).map(|lengths| {
        let mut connection = Http2Connection::connect(address);
        for length in lengths {
            let stream = connection.begin_call(path);
            let message = [&grpc_prefix(*length)[..], &vec![0; sent.min(length / 2)]].concat();
            connection.send_data(stream, &message);
        }
        connection.flush();
        connection
    });
    connections.collect()
}

/// Begins requests whose headers name these lengths.
fn announce_over_http(collector: &CollectorProcess, lengths: &[usize]) -> Vec<TcpStream> {
    let begin = |length: &usize| {
        let mut connection = TcpStream::connect(collector.http()).unwrap();
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n\
             content-length: {length}\r\n\r\n"
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection
    };
    lengths.iter().map(begin).collect()
}

/// So many of the first length, and fewer of each that follows.
fn falling(first: usize, then: usize) -> Vec<usize> {
    let rest = FALLING[1..].iter().flat_map(|length| vec![*length; then]);
    vec![FALLING[0]; first].into_iter().chain(rest).collect()
}

/// Sends small and large requests over both protocols, all of which must be taken the first time.
fn assert_others_are_taken(collector: &mut CollectorProcess, sizes: &[&str]) {
    for (protocol, target) in [("grpc", collector.grpc()), ("http", collector.http())] {
        for spans in sizes {
            let args = ["--requests", "20", "--spans", spans, "--connections", "2", "--in-flight", "1"];
            let report = LoadGenerator::run(protocol, target, &args);
            assert_eq!(report.items("acknowledged"), 20 * spans.parse::<u64>().unwrap(), "{protocol}: {report:?}");
        }
    }
    assert!(collector.is_running());
}

/// Requests of about 3 KB, which are one frame, and of 300 KB, which are not.
const SMALL_AND_LARGE: [&str; 2] = ["10", "1000"];

#[test]
fn announced_messages_over_grpc_leave_memory_to_others() {
    let mut collector = CollectorProcess::with_config(limited()).start();
    let _calls = announce(&collector, EXPORT, &falling(100, 100), 0);
    assert_others_are_taken(&mut collector, &SMALL_AND_LARGE);
}

#[test]
fn announced_messages_without_limiter_leave_memory_to_others() {
    let mut collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("nop", "")).start();
    // A quarter of the machine's memory, and more.
    let _calls = announce(&collector, EXPORT, &falling(6000, 200), 0);
    assert_others_are_taken(&mut collector, &SMALL_AND_LARGE);
}

#[test]
fn announced_bodies_over_http_leave_memory_to_others() {
    let mut collector = CollectorProcess::with_config(limited()).start();
    let _requests = announce_over_http(&collector, &falling(30, 20));
    assert_others_are_taken(&mut collector, &SMALL_AND_LARGE);
}

#[test]
fn announced_messages_of_opencensus_streams_leave_memory_to_others() {
    let config = limited().receiver("opencensus", r#"{endpoint: "127.0.0.1:0"}"#).pipeline_of(
        "traces",
        "otlp, opencensus",
        "memory_limiter",
        "nop",
    );
    let mut collector = CollectorProcess::with_config(config).start();
    let lengths = falling(30, 20);
    let _calls: Vec<_> =
        lengths.chunks(90).flat_map(|lengths| announce(&collector, OPEN_CENSUS_EXPORT, lengths, 0)).collect();
    assert_others_are_taken(&mut collector, &SMALL_AND_LARGE);
}

#[test]
fn messages_that_stop_midway_leave_memory_to_whole_ones_and_are_ended() {
    let mut collector = CollectorProcess::with_config(limited()).start();
    // Each has sent as much as makes the receiver reserve all of it.
    let _calls = announce(&collector, EXPORT, &[64 << 10; 1700], 4 << 10);
    assert_others_are_taken(&mut collector, &["10"]);
    let held = || collector.metric("kubewake_memory_used_bytes", &[]);
    wait_until("interrupted requests release their memory", || held() == 0.0);
    assert_others_are_taken(&mut collector, &SMALL_AND_LARGE);
}

/// An `otlp` receiver both of whose protocols ask for a login.
fn with_logins(config: ConfigBuilder) -> ConfigBuilder {
    let one = r#"{endpoint: "127.0.0.1:0", auth: {authenticator: basicauth}}"#;
    config
        .receiver("otlp", format!("{{protocols: {{grpc: {one}, http: {one}}}}}"))
        .extension("basicauth", r#"{htpasswd: {file: "${env:DIR}/htpasswd"}}"#)
}

/// `ada` and `bob`, both with the password `right`, as `htpasswd -B -C 6` writes it: builds for tests hash slowly.
const HTPASSWD: &str = "ada:$2b$06$e8k7XHBeWs/kBGj9UxJmF.f614ATxSnWAJgijni0egWZPtxO6Ea5q\n\
                        bob:$2b$06$e8k7XHBeWs/kBGj9UxJmF.f614ATxSnWAJgijni0egWZPtxO6Ea5q\n";

fn login(collector: &CollectorProcess, name: &str, password: &str) -> HttpResponse {
    let login = format!("Basic {}", STANDARD.encode(format!("{name}:{password}")));
    let headers = [("content-type", "application/x-protobuf"), ("authorization", &*login)];
    Http1Connection::connect(collector.http()).request("POST", "/v1/traces", &headers, &spans(&["one"]))
}

#[test]
fn guesses_for_one_name_do_not_hold_up_another_sender() {
    let collector = CollectorProcess::with_config(with_logins(ConfigBuilder::exporting_to("nop", "")))
        .file("htpasswd", HTPASSWD)
        .start();
    thread::scope(|scope| {
        let guesses: Vec<_> = (0..60)
            .map(|number| {
                let collector = &collector;
                scope.spawn(move || login(collector, "ada", &format!("guess {number}")))
            })
            .collect();
        // Most of the guesses wait by now, or were refused.
        wait_until("guesses wait", || {
            let refused = collector.metric("kubewake_receiver_refused_requests", &["reason=\"unauthenticated\""]);
            refused > 0.0
        });
        let answer = login(&collector, "bob", "right");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answers: Vec<_> = guesses.into_iter().map(|guess| guess.join().unwrap()).collect();
        for answer in &answers {
            assert!([401, 503].contains(&answer.status), "{}", answer.text());
            assert_eq!(answer.status == 503, !answer.header("retry-after").is_empty());
        }
    });
    assert_eq!(login(&collector, "ada", "right").status, 200);
    assert_eq!(login(&collector, "nobody", "right").status, 401);
}

#[test]
fn media_types_are_taken_in_any_case_and_encodings_in_lower_case() {
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("nop", "")).start();
    let body = spans(&["one"]);
    let json = spans_json(&["one"]);
    let post = |media: &str, encoding: &str, body: &[u8]| {
        let headers = [("content-type", media), ("content-encoding", encoding)];
        let headers = if encoding.is_empty() { &headers[..1] } else { &headers[..] };
        Http1Connection::connect(collector.http()).request("POST", "/v1/traces", headers, body).status
    };
    assert_eq!(post("Application/X-Protobuf; charset=utf-8", "", &body), 200);
    assert_eq!(post("APPLICATION/JSON;Charset=UTF-8", "", json.as_bytes()), 200);
    // As the OpenTelemetry Collector answers.
    assert_eq!(post("application/x-protobuf", "GZip", &gzip(&body)), 400);
    assert_eq!(post("application/x-protobuffer", "", &body), 415);
}
