//! A viewer, and what is sent to it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    address::free_address,
    http,
    process::{Process, kubewake},
    wait::eventually,
};

/// `kubewake viewer` on addresses of its own.
pub struct Viewer {
    process: Process,
    page: SocketAddr,
    http: SocketAddr,
    grpc: SocketAddr,
}

impl Viewer {
    /// Starts one with nothing in it.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with more arguments.
    pub fn start_with(args: &[&str]) -> Self {
        let [page, http, grpc] = [free_address(), free_address(), free_address()];
        let addresses = [("--listen", page), ("--otlp-http", http), ("--otlp", grpc)];
        let mut command = kubewake();
        command.arg("viewer").args(args);
        for (name, address) in addresses {
            command.arg(name).arg(address.to_string());
        }
        let mut process = Process::start(&mut command);
        process.ready();
        Self { process, page, http, grpc }
    }

    /// The whole address of a page.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.page)
    }

    /// Where OTLP over HTTP is received.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where OTLP over gRPC is received.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// What the server answers.
    pub fn get(&self, path: &str) -> http::Answer {
        http::get(self.page, path)
    }

    /// Sends a trace.
    pub fn send(&self, told: &Told) {
        for part in told.requests() {
            let answer = http::post(self.http, "/v1/traces", "application/json", part.to_string().as_bytes());
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }

    /// Sends a trace, and waits until it is there as a whole.
    pub fn take(&self, told: &Told) {
        self.send(told);
        let path = format!("/api/v1/traces/{}", told.id);
        eventually("the trace is in the store", || {
            let answer = self.get(&path);
            answer.status == 200 && answer.json()["spans"].as_array().map(Vec::len) == Some(told.spans.len())
        });
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A trace as a test tells it: spans in milliseconds from a moment that is a minute ago.
pub struct Told {
    id: String,
    begin: u128,
    spans: Vec<(String, Value)>,
}

/// A request holds so many spans at most, which is far below what any receiver takes.
const PER_REQUEST: usize = 2000;

impl Told {
    /// An empty one. Traces of other numbers have other ids, and those of higher ones begin later.
    pub fn new(number: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        Self {
            id: format!("{:032x}", 0xbeef_0000 + number),
            begin: now - 60_000_000_000 + u128::from(number) * 1_000_000_000,
            spans: Vec::new(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the span that comes after so many others.
    pub fn span_id(&self, others: usize) -> String {
        format!("{:08x}{:08x}", u32::from_str_radix(&self.id[24..], 16).unwrap(), others + 1)
    }

    /// Adds a span of a service, and gives its id.
    pub fn span(&mut self, service: &str, name: &str, parent: Option<&str>, start: f64, length: f64) -> String {
        let id = self.span_id(self.spans.len());
        let at = |millis: f64| (self.begin as i128 + (millis * 1e6) as i128).max(0).to_string();
        let span = json!({
            "traceId": self.id, "spanId": id, "parentSpanId": parent.unwrap_or_default(), "name": name, "kind": 1,
            "startTimeUnixNano": at(start), "endTimeUnixNano": at(start + length),
        });
        self.spans.push((service.to_owned(), span));
        id
    }

    /// Changes what the last span says: fields of OTLP JSON.
    pub fn with(&mut self, fields: Value) -> &mut Self {
        let (_, span) = self.spans.last_mut().expect("there is a span");
        for (key, value) in fields.as_object().unwrap() {
            span[key] = value.clone();
        }
        self
    }

    /// Gives the last span attributes.
    pub fn attributes(&mut self, pairs: &[(&str, &str)]) -> &mut Self {
        let pair = |(key, value): &(&str, &str)| json!({"key": key, "value": {"stringValue": value}});
        let attributes: Vec<Value> = pairs.iter().map(pair).collect();
        self.with(json!({"attributes": attributes}))
    }

    /// Says which object the last span is about, as the trail library does.
    pub fn object(&mut self, kind: &str, name: &str, generation: u64) -> &mut Self {
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let attributes = json!([
            text("k8s.object.kind", kind), text("k8s.object.name", name), text("k8s.namespace.name", "demo"),
            text("k8s.object.api_version", "demo.kubewake.io/v1alpha1"), text("k8s.object.uid", &format!("uid-{name}")),
            {"key": "k8s.object.generation", "value": {"intValue": generation.to_string()}},
        ]);
        self.with(json!({"attributes": attributes}))
    }

    /// Requests of OTLP with all of it.
    fn requests(&self) -> Vec<Value> {
        self.spans.chunks(PER_REQUEST).map(request).collect()
    }
}

fn request(spans: &[(String, Value)]) -> Value {
    let mut services: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    spans.iter().for_each(|(service, span)| services.entry(service).or_default().push(span));
    let resource = |(service, spans): (&str, Vec<&Value>)| {
        let name = json!({"key": "service.name", "value": {"stringValue": service}});
        json!({"resource": {"attributes": [name]}, "scopeSpans": [{"scope": {"name": "told"}, "spans": spans}]})
    };
    json!({"resourceSpans": services.into_iter().map(resource).collect::<Vec<_>>()})
}
