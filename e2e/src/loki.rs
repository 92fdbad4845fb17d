//! A stand-in for Grafana Loki that keeps what is pushed to it.

use std::sync::{Arc, Mutex, MutexGuard};

use kubewake_otlp::wire::WireFields;

use crate::{
    HttpBackend,
    backend::{HttpReply, ReceivedRequest},
};

/// A line with its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLine {
    /// The tenant in `X-Scope-OrgID`; empty without one.
    pub tenant: String,
    /// `{a="b"}`
    pub labels: String,
    /// In nanoseconds since 1970.
    pub time: u64,
    pub text: String,
    pub metadata: Vec<(String, String)>,
}

impl StoredLine {
    /// The value of an entry of the structured metadata; empty if it is absent.
    pub fn metadata(&self, name: &str) -> &str {
        self.metadata.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// A server of Loki's push API. A line with the time and text of another one in its stream is stored once.
pub struct LokiBackend {
    backend: HttpBackend,
    lines: Arc<Mutex<Vec<StoredLine>>>,
}

/// What the server does with a request of a tenant.
pub enum LokiAnswer {
    Store,
    /// It stores nothing, and answers with this status and message.
    Refuse(u16, &'static str),
    /// It stores the request, and answers with this status and message.
    StoreAndSay(u16, &'static str),
}

impl LokiBackend {
    /// Starts a server that stores everything.
    pub fn start() -> Self {
        Self::start_with(|_| LokiAnswer::Store)
    }

    /// Starts a server that gets the tenant of each request.
    pub fn start_with(answer: impl Fn(&str) -> LokiAnswer + Send + Sync + 'static) -> Self {
        let lines = Arc::<Mutex<Vec<StoredLine>>>::default();
        let stored = lines.clone();
        let backend = HttpBackend::start(move |request| {
            let tenant = request.header("x-scope-orgid").to_owned();
            match answer(&tenant) {
                LokiAnswer::Refuse(status, message) => reply(status, message),
                LokiAnswer::StoreAndSay(status, message) => {
                    push(request, &tenant, &mut stored.lock().unwrap());
                    reply(status, message)
                }
                LokiAnswer::Store => {
                    push(request, &tenant, &mut stored.lock().unwrap());
                    reply(204, "")
                }
            }
        });
        Self { backend, lines }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.backend.address())
    }

    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.backend.requests()
    }

    pub fn lines(&self) -> MutexGuard<'_, Vec<StoredLine>> {
        self.lines.lock().unwrap()
    }

    /// The texts of all lines of a tenant.
    pub fn texts(&self, tenant: &str) -> Vec<String> {
        self.lines().iter().filter(|line| line.tenant == tenant).map(|line| line.text.clone()).collect()
    }
}

fn reply(status: u16, message: &str) -> HttpReply {
    (status, vec![("content-type", "text/plain".to_owned())], message.as_bytes().to_vec())
}

/// Stores the lines of a request. One that is not in the protocol fails the test when it waits for its lines.
fn push(request: &ReceivedRequest, tenant: &str, lines: &mut Vec<StoredLine>) {
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/loki/api/v1/push"));
    assert_eq!(request.header("content-type"), "application/x-protobuf");
    let plain = snap::raw::Decoder::new().decompress_vec(&request.body).unwrap();
    for stream in messages(&plain, 1) {
        let labels = text(stream, 1);
        for entry in messages(stream, 2) {
            let timestamp = messages(entry, 1).next().unwrap();
            let metadata = messages(entry, 3).map(|pair| (text(pair, 1), text(pair, 2))).collect();
            let time = number(timestamp, 1) * 1_000_000_000 + number(timestamp, 2);
            let line =
                StoredLine { tenant: tenant.to_owned(), labels: labels.clone(), time, text: text(entry, 2), metadata };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
}

fn messages(message: &[u8], number: u32) -> impl Iterator<Item = &[u8]> {
    WireFields::new(message).filter(move |field| field.is_len(number)).map(|field| field.value)
}

fn text(message: &[u8], number: u32) -> String {
    let bytes = messages(message, number).last().unwrap_or_default();
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn number(message: &[u8], number: u32) -> u64 {
    WireFields::new(message).last_of(number).and_then(|field| field.as_varint()).unwrap_or_default()
}
