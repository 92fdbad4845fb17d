//! Somebody sends what is no telemetry. That request is refused with the code that the OTLP specification names, the
//! counters say so, and nothing else notices.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, GrpcCall, Http1Connection, HttpResponse, SinkProcess,
    curl::frame,
    grpc_to, http,
    otlp::{bomb, gzip, spans, spans_json},
    python,
};

/// The default limits: what an HTTP body and a gRPC message may have.
const HTTP_LIMIT: usize = 20 << 20;
const GRPC_LIMIT: usize = 4 << 20;
/// What may be allocated for each byte that is charged: a body is copied into a larger allocation while it grows.
/// `crates/collector/tests/bounded_memory` shows that no receiver takes more.
const ALLOCATED_PER_CHARGED: usize = 2;
/// What a connection may hold beyond that: its window and its buffers. Each of the three bombs has one.
const CONNECTION_BYTES: usize = 4 << 20;
const BOMB_MIB: usize = 1024;

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";
const INVALID_ARGUMENT: u32 = 3;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;
const INTERNAL: u32 = 13;

struct Place {
    sink: SinkProcess,
    collector: CollectorProcess,
}

impl Place {
    fn new() -> Self {
        let sink = SinkProcess::start();
        let collector =
            CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))).start();
        Self { sink, collector }
    }

    fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> HttpResponse {
        Http1Connection::connect(self.collector.http()).request("POST", "/v1/traces", headers, body)
    }

    fn grpc(&self) -> GrpcCall {
        GrpcCall::traces(self.collector.grpc())
    }

    fn refused(&self, transport: &str) -> u64 {
        let label = format!("transport=\"{transport}\"");
        self.collector.metric("kubewake_receiver_refused_requests", &[&label]) as u64
    }

    /// What is good goes through as if nothing had been.
    fn goes_on(self) {
        self.goes_on_after(&[]);
    }

    /// The same, where spans of these names went before.
    fn goes_on_after(mut self, earlier: &[&str]) {
        assert!(self.collector.is_running());
        assert_eq!(self.post(&[("content-type", PROTOBUF)], &spans(&["over http"])).status, 200);
        assert_eq!(self.grpc().send(&spans(&["over grpc"])).code, 0);
        let mut expected = [earlier, &["over grpc", "over http"]].concat();
        expected.sort_unstable();
        self.sink.wait_for_items(expected.len() as u64);
        assert_eq!(self.sink.span_names(), expected);
        assert_eq!(self.collector.metric("otelcol_receiver_accepted_spans", &[]), expected.len() as f64);
    }
}

/// A span whose id has three bytes.
fn short_id() -> Vec<u8> {
    let whole = spans(&["short"]);
    let id = whole.windows(10).position(|bytes| bytes == [0x12, 8, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
    let mut cut = whole.clone();
    // A field of three bytes, and an unknown one for the rest.
    cut.splice(id..id + 10, [0x12, 3, 0, 0, 1, 0x7a, 3, 0, 0, 0]);
    cut
}

#[test]
fn malformed_bodies_over_http() {
    let place = Place::new();
    let cut = &spans(&["cut"])[..40];
    let cases: [(&str, &str, &str, &[u8]); 7] = [
        ("not protobuf", PROTOBUF, "", b"hello"),
        ("cut protobuf", PROTOBUF, "", cut),
        ("a short id", PROTOBUF, "", &short_id()),
        ("not JSON", JSON, "", b"{\"resourceSpans\": [{]}"),
        ("a field of another kind", JSON, "", br#"{"resourceSpans": {"a": 1}}"#),
        ("not gzip", PROTOBUF, "gzip", b"hello"),
        ("cut gzip", JSON, "gzip", &gzip(spans_json(&["cut"]).as_bytes())[..30]),
    ];
    for (i, (what, content_type, encoding, body)) in cases.iter().enumerate() {
        let answer = place.post(&[("content-type", content_type), ("content-encoding", encoding)], body);
        assert_eq!((answer.status, answer.header("content-type")), (400, *content_type), "{what}");
        match *content_type {
            JSON => assert_eq!(answer.json()["code"], INVALID_ARGUMENT, "{what}"),
            // The first field of a `google.rpc.Status` is its code.
            _ => assert_eq!(answer.body[..2], [0x08, INVALID_ARGUMENT as u8], "{what}"),
        }
        assert_eq!(place.refused("http"), i as u64 + 1, "{what} is counted");
    }
    place.goes_on();
}

#[test]
fn requests_that_are_not_otlp_over_http() {
    let place = Place::new();
    let body = spans(&["x"]);
    let ask = |method, path, headers: &[_]| {
        Http1Connection::connect(place.collector.http()).request(method, path, headers, &body).status
    };
    assert_eq!(ask("POST", "/v1/traces", &[("content-type", "text/plain")]), 415);
    assert_eq!(ask("POST", "/v1/traces", &[]), 415);
    assert_eq!(ask("POST", "/v1/traces", &[("content-type", PROTOBUF), ("content-encoding", "br")]), 400);
    assert_eq!(ask("GET", "/v1/traces", &[("content-type", PROTOBUF)]), 405);
    assert_eq!(ask("PUT", "/v1/traces", &[("content-type", PROTOBUF)]), 405);
    assert_eq!(ask("POST", "/v1/profits", &[("content-type", PROTOBUF)]), 404);
    assert_eq!(ask("POST", "/", &[("content-type", PROTOBUF)]), 404);
    assert_eq!(ask("POST", "/v1/traces", &[("x-large", &"x".repeat(1 << 20))]), 431);
    place.goes_on();
}

#[test]
fn oversized_bodies_over_http() {
    let place = Place::new();
    let large = vec![0; HTTP_LIMIT + 1];
    assert_eq!(place.post(&[("content-type", PROTOBUF)], &large).status, 413);
    assert_eq!(place.refused("http"), 1);
    // Without a length it shows only as it comes.
    let mut connection = Http1Connection::connect(place.collector.http());
    let head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n";
    connection.send(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes());
    for _ in 0..=(HTTP_LIMIT >> 20) {
        connection.send(&[b"100000\r\n", &large[..1 << 20], b"\r\n"].concat());
    }
    connection.send(b"0\r\n\r\n");
    assert_eq!(connection.read_response(false).status, 413);
    assert_eq!(place.refused("http"), 2);
    place.goes_on();
}

#[test]
fn compression_bombs_cost_no_memory() {
    let place = Place::new();
    let bomb = bomb(BOMB_MIB);
    // The collector as it is after an ordinary request of each kind.
    assert_eq!(place.post(&[("content-type", PROTOBUF)], &spans(&["before, over http"])).status, 200);
    assert_eq!(place.grpc().send(&spans(&["before, over grpc"])).code, 0);
    let before = place.collector.peak_mib();
    assert!(bomb.len() < GRPC_LIMIT, "it is small on the wire");
    for encoding in [PROTOBUF, JSON] {
        let answer = place.post(&[("content-type", encoding), ("content-encoding", "gzip")], &bomb);
        assert_eq!(answer.status, 413, "{encoding}");
    }
    let answer = place.grpc().send_gzip(&bomb);
    assert_eq!(answer.code, RESOURCE_EXHAUSTED, "{answer:?}");
    assert_eq!(answer.details, "", "a hint to try again would be wrong");
    // Each bomb is charged for what came, which is less than it may become, and for what it became until it was
    // too large. They came one after another; an allocator that keeps what they gave back for its next use
    // keeps that of each limit once.
    let charged = 2 * HTTP_LIMIT + GRPC_LIMIT + 3 * bomb.len();
    let allowed = (ALLOCATED_PER_CHARGED * charged + 3 * CONNECTION_BYTES) >> 20;
    let peak = place.collector.peak_mib();
    assert!(peak <= before + allowed as u64, "{peak} MiB, of which {before} were there before the bombs");
    assert_eq!((place.refused("http"), place.refused("grpc")), (2, 1));
    place.goes_on_after(&["before, over grpc", "before, over http"]);
}

#[test]
fn malformed_messages_over_grpc() {
    let place = Place::new();
    let good = spans(&["x"]);
    let cases: [(&str, u32, Vec<u8>); 5] = [
        ("not protobuf", INVALID_ARGUMENT, frame(0, b"hello")),
        ("cut protobuf", INVALID_ARGUMENT, frame(0, &good[..40])),
        ("a short id", INVALID_ARGUMENT, frame(0, &short_id())),
        ("shorter than its prefix says", INTERNAL, frame(0, &good)[..40].to_vec()),
        ("no message", INTERNAL, Vec::new()),
    ];
    for (i, (what, code, body)) in cases.iter().enumerate() {
        let answer = place.grpc().send_body(body);
        assert_eq!(answer.code, *code, "{what}: {answer:?}");
        assert_eq!(place.refused("grpc"), i as u64 + 1, "{what} is counted");
    }
    let answer = place.grpc().send_gzip(b"hello");
    assert_eq!(answer.code, INVALID_ARGUMENT, "{answer:?}");
    place.goes_on();
}

#[test]
fn oversized_messages_over_grpc() {
    let place = Place::new();
    let answer = &python::call_traces(place.collector.grpc(), &[], &vec![0; GRPC_LIMIT + 1])[0];
    assert_eq!((answer.code, &*answer.details), (RESOURCE_EXHAUSTED, ""), "{answer:?}");
    assert_eq!(place.refused("grpc"), 1);
    place.goes_on();
}

#[test]
fn calls_that_are_not_otlp_over_grpc() {
    let place = Place::new();
    let code = |method: &str| python::call(place.collector.grpc(), method, &[], &spans(&["x"]))[0].code;
    assert_eq!(code("opentelemetry.proto.collector.trace.v1.TraceService/Import"), UNIMPLEMENTED);
    assert_eq!(code("nobody.Knows/It"), UNIMPLEMENTED);
    let base = format!("http://{}", place.collector.grpc());
    let plain = kubewake_e2e::curl(["--http2-prior-knowledge", "-X", "POST", &base], b"").unwrap();
    assert_eq!(plain.status, 415);
    // Somebody took the port for one of HTTP/1.1.
    let _ = kubewake_e2e::curl(["-d", "x", &base], b"");
    place.goes_on();
}

#[test]
fn senders_that_vanish() {
    let place = Place::new();
    for sent in ["", "POST", "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"] {
        Http1Connection::connect(place.collector.http()).send(sent.as_bytes());
        Http1Connection::connect(place.collector.grpc()).send(sent.as_bytes());
    }
    let mut cut = Http1Connection::connect(place.collector.http());
    cut.send(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{");
    cut.shutdown_write();
    drop(cut);
    // Neither does one that is slow keep others from being served.
    let mut slow = Http1Connection::connect(place.collector.http());
    slow.send(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{");
    assert_eq!(http::post(place.collector.http(), "/v1/traces", JSON, b"{}").status, 200);
    slow.send(b"}");
    assert_eq!(slow.read_response(false).status, 200);
    place.goes_on();
}
