//! A viewer, and traces to send to it.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    address::free_address,
    http,
    process::{ChildProcess, kubewake},
    wait::wait_until,
};

/// `kubewake viewer` on free addresses.
pub struct ViewerProcess {
    process: ChildProcess,
    page: SocketAddr,
    http: SocketAddr,
    grpc: SocketAddr,
}

impl ViewerProcess {
    /// Starts one with an empty store.
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
        let mut process = ChildProcess::start(&mut command);
        process.wait_until_ready();
        Self { process, page, http, grpc }
    }

    /// The URL of a page.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.page)
    }

    /// Address of OTLP over HTTP.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Address of OTLP over gRPC.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    pub fn get(&self, path: &str) -> http::HttpResponse {
        http::get(self.page, path)
    }

    pub fn send(&self, told: &TraceBuilder) {
        for part in told.requests() {
            let answer = http::post(self.http, "/v1/traces", "application/json", part.to_string().as_bytes());
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    }

    /// Sends a trace, and waits until the viewer has all of it.
    pub fn send_and_wait(&self, told: &TraceBuilder) {
        self.send(told);
        let path = format!("/api/v1/traces/{}", told.id);
        wait_until("the trace is in the store", || {
            let answer = self.get(&path);
            answer.status == 200 && answer.json()["spans"].as_array().map(Vec::len) == Some(told.spans.len())
        });
    }

    pub fn process(&mut self) -> &mut ChildProcess {
        &mut self.process
    }
}

/// Builds a trace: times are in milliseconds from a moment that is a minute ago.
pub struct TraceBuilder {
    id: String,
    begin: u128,
    spans: Vec<(String, Value)>,
}

/// Spans in one request, well below the limit of any receiver.
const MAX_SPANS_PER_REQUEST: usize = 2000;

impl TraceBuilder {
    /// An empty trace. The number determines its id; higher numbers begin later.
    pub fn new(number: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        Self {
            id: format!("{:032x}", 0xbeef_0000 + number),
            begin: now - 60_000_000_000 + u128::from(number) * 1_000_000_000,
            spans: Vec::new(),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id of the span at this index.
    pub fn span_id(&self, others: usize) -> String {
        format!("{:08x}{:08x}", u32::from_str_radix(&self.id[24..], 16).unwrap(), others + 1)
    }

    /// Adds a span of a service, and returns its id.
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

    /// Sets fields of the last span, in OTLP JSON.
    pub fn with_fields(&mut self, fields: Value) -> &mut Self {
        let (_, span) = self.spans.last_mut().expect("there is a span");
        for (key, value) in fields.as_object().unwrap() {
            span[key] = value.clone();
        }
        self
    }

    /// Adds attributes to the last span.
    pub fn attributes(&mut self, pairs: &[(&str, &str)]) -> &mut Self {
        let pair = |(key, value): &(&str, &str)| json!({"key": key, "value": {"stringValue": value}});
        let attributes: Vec<Value> = pairs.iter().map(pair).collect();
        self.with_fields(json!({"attributes": attributes}))
    }

    /// Sets the object of the last span, as the trail library does.
    pub fn object(&mut self, kind: &str, name: &str, generation: u64) -> &mut Self {
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let attributes = json!([
            text("k8s.object.kind", kind), text("k8s.object.name", name), text("k8s.namespace.name", "demo"),
            text("k8s.object.api_version", "demo.kubewake.io/v1alpha1"), text("k8s.object.uid", &format!("uid-{name}")),
            {"key": "k8s.object.generation", "value": {"intValue": generation.to_string()}},
        ]);
        self.with_fields(json!({"attributes": attributes}))
    }

    /// The OTLP requests of the whole trace.
    fn requests(&self) -> Vec<Value> {
        self.spans.chunks(MAX_SPANS_PER_REQUEST).map(request).collect()
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
