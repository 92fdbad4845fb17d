//! A minimal HTTP client.

use std::{net::SocketAddr, time::Duration};

use kubewake_viewer::ViewerAddresses;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

/// An upper bound for everything here, on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
pub struct Client {
    page: SocketAddr,
    otlp: SocketAddr,
}

impl Client {
    pub fn new(addresses: ViewerAddresses) -> Self {
        Self { page: addresses.page, otlp: addresses.otlp_http.unwrap() }
    }

    pub async fn send(&self, request: &str) {
        let (status, answer) = self.otlp(request).await;
        assert_eq!(status, 200, "{answer}");
    }

    pub async fn otlp(&self, request: &str) -> (u16, Value) {
        let headers = [("Content-Type", "application/json")];
        parse(&exchange(self.otlp, "POST", "/v1/traces", &headers, request).await)
    }

    pub async fn otlp_logs(&self, request: &str) -> (u16, Value) {
        let headers = [("Content-Type", "application/json")];
        parse(&exchange(self.otlp, "POST", "/v1/logs", &headers, request).await)
    }

    /// Returns the body of a response that must be successful.
    pub async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask(path).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Returns status and body of any response.
    pub async fn ask(&self, path: &str) -> (u16, Value) {
        parse(&self.raw("GET", path, &[], "").await)
    }

    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        parse(&self.raw("POST", path, headers, body).await)
    }

    pub async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        exchange(self.page, method, path, headers, body).await
    }

    pub async fn events(&self, path: &str) -> Events {
        let mut stream = TcpStream::connect(self.page).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.page).as_bytes()).await.unwrap();
        Events { lines: BufReader::new(stream), name: String::new() }
    }
}

pub struct Events {
    lines: BufReader<TcpStream>,
    name: String,
}

impl Events {
    /// The next event: its name and its data.
    pub async fn next(&mut self) -> (String, Value) {
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, self.lines.read_line(&mut line)).await.expect("an event").unwrap();
            assert!(read > 0, "the stream ended");
            if let Some(name) = line.strip_prefix("event: ") {
                self.name = name.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (self.name.clone(), serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The next event of that name.
    pub async fn find(&mut self, name: &str) -> (String, Value) {
        loop {
            let event = self.next().await;
            if event.0 == name {
                return event;
            }
        }
    }
}

async fn exchange(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
    if !headers.iter().any(|(name, _)| *name == "Host") {
        head += &format!("Host: {to}\r\n");
    }
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn parse(answer: &str) -> (u16, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_default())
}

/// The trace of a Head whose creation failed.
pub fn sample() -> String {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let object = |kind: &str, name: &str| {
        let generation = json!({ "key": "k8s.object.generation", "value": { "intValue": "3" } });
        json!([
            text("k8s.object.kind", kind),
            text("k8s.object.name", name),
            text("k8s.namespace.name", "default"),
            text("k8s.object.uid", &format!("uid-{name}")),
            generation
        ])
    };
    let span = |id: u64, parent: u64, name: &str, kind: u8, from: u64, to: u64| {
        let at = |millis: u64| (1_763_297_000_000_000_000 + millis * 1_000_000).to_string();
        let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
        json!({ "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name,
            "kind": kind, "startTimeUnixNano": at(from), "endTimeUnixNano": at(to) })
    };
    let with = |mut span: Value, more: Value| {
        let more = more.as_object().unwrap().clone();
        span.as_object_mut().unwrap().extend(more);
        span
    };
    let run = with(
        span(2, 1, "reconcile Head", 5, 200, 1200),
        json!({ "attributes": object("Head", "sample"), "status": { "code": 2, "message": "no room" },
            "events": [{ "timeUnixNano": "1763297000300000000", "name": "retry" }],
            "links": [{ "traceId": "ffffffffffffffffffffffffffffffff", "spanId": "0000000000000009" }] }),
    );
    let apply = with(span(3, 2, "apply ChildA", 4, 300, 400), json!({ "attributes": object("ChildA", "a") }));
    let script = span(4, 3, "<script>alert(1)</script>", 1, 350, 360);
    let of = |service: &str, spans: Vec<Value>| json!({ "resource": { "attributes": [text("service.name", service)] }, "scopeSpans": [{ "scope": { "name": "lib" }, "spans": spans }] });
    let request = of("apiserver", vec![span(1, 0, "POST /heads", 2, 0, 150)]);
    json!({ "resourceSpans": [request, of("operator", vec![run, apply, script])] }).to_string()
}
