//! A stand-in for Loki that is stricter than Loki: what it would refuse by any of its settings is refused.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, Method};
use prost::Message;

use crate::net::testing::{Backend, Reply, Seen, Speaks};

#[derive(Clone, PartialEq, Message)]
pub(super) struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) streams: Vec<Stream>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Stream {
    #[prost(string, tag = "1")]
    pub(super) labels: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Entry {
    #[prost(message, optional, tag = "1")]
    pub(super) timestamp: Option<Timestamp>,
    #[prost(string, tag = "2")]
    pub(super) line: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) structured_metadata: Vec<LabelPair>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// A stored line: its time in nanoseconds, its text and its metadata.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) time: u64,
    pub(super) text: String,
    pub(super) metadata: BTreeMap<String, String>,
}

/// What the server does with a request, beside its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Store,
    /// It stores nothing, and answers with this status.
    Answer(u16),
    /// It stores the request, and a proxy on the way loses the answer.
    LoseAnswer,
    /// The first stream of the request is over its limit. The others are stored.
    LimitFirstStream,
}

/// Its limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) request_bytes: usize,
    pub(super) line_bytes: usize,
    pub(super) metadata_bytes: usize,
    pub(super) metadata_entries: usize,
    pub(super) labels: usize,
    /// Lines before this time are too old.
    pub(super) oldest: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 4 << 20,
            line_bytes: 256_000,
            metadata_bytes: 64_000,
            metadata_entries: 128,
            labels: 15,
            oldest: 0,
        }
    }
}

/// Lines by tenant and labels.
type Store = BTreeMap<(String, String), Vec<Line>>;

#[derive(Clone)]
pub(super) struct StrictLoki {
    backend: Backend,
    store: Arc<Mutex<Store>>,
}

impl StrictLoki {
    /// Starts a server. `manner` gets the tenant and the number of earlier requests.
    pub(super) async fn start(limits: Limits, manner: impl Fn(&str, usize) -> Manner + Send + Sync + 'static) -> Self {
        let store = Arc::<Mutex<Store>>::default();
        let target = store.clone();
        let answer = move |seen: &Seen, before: usize| {
            let tenant = seen.header("x-scope-orgid").to_owned();
            let manner = manner(&tenant, before);
            if let Manner::Answer(status) = manner {
                return Reply::http(status, &[], "not now");
            }
            let (status, message) = match push(seen, &tenant, limits, manner, &mut target.lock().unwrap()) {
                Ok(()) => (204, String::new()),
                Err(refusal) => refusal,
            };
            match manner {
                Manner::LoseAnswer => Reply::http(502, &[], "bad gateway"),
                _ => Reply::http(status, &[("content-type", "text/plain; charset=utf-8")], message),
            }
        };
        Self { backend: Backend::start(Speaks::Http1, None, answer).await, store }
    }

    /// A server that stores everything within its limits.
    pub(super) async fn storing(limits: Limits) -> Self {
        Self::start(limits, |_, _| Manner::Store).await
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/loki/api/v1/push", self.backend.address)
    }

    pub(super) fn requests(&self) -> Vec<Seen> {
        self.backend.seen()
    }

    /// The only stream, with its tenant and labels.
    pub(super) fn only_stream(&self) -> ((String, String), Vec<Line>) {
        let store = self.store.lock().unwrap();
        assert_eq!(store.len(), 1, "{store:?}");
        store.iter().next().map(|(names, lines)| (names.clone(), lines.clone())).unwrap()
    }

    pub(super) fn stored(&self) -> Store {
        self.store.lock().unwrap().clone()
    }

    /// The texts of all lines of a tenant.
    pub(super) fn texts(&self, tenant: &str) -> Vec<String> {
        let store = self.store.lock().unwrap();
        let lines = store.iter().filter(|((of, _), _)| of == tenant).flat_map(|(_, lines)| lines);
        lines.map(|line| line.text.clone()).collect()
    }
}

type Refusal = (u16, String);

fn push(seen: &Seen, tenant: &str, limits: Limits, manner: Manner, store: &mut Store) -> Result<(), Refusal> {
    let refuse = |message: &str| Err((400, message.to_owned()));
    assert_eq!(seen.uri.path(), "/loki/api/v1/push");
    check_headers(&seen.headers, &seen.method);
    let Ok(plain) = snap::raw::Decoder::new().decompress_vec(&seen.body) else {
        return refuse("snappy: corrupt input");
    };
    if plain.len() > limits.request_bytes {
        return Err((413, "request body too large".into()));
    }
    let Ok(request) = PushRequest::decode(&plain[..]) else { return refuse("not a push request") };
    if request.streams.iter().all(|stream| stream.entries.is_empty()) {
        return Err((422, "error at least one valid stream is required for ingestion".into()));
    }
    let mut errors = Vec::new();
    let mut limited = None;
    for (number, stream) in request.streams.into_iter().enumerate() {
        assert!(!stream.entries.is_empty(), "a stream without lines");
        if let Some(error) = label_error(&stream.labels, limits) {
            errors.push(error);
            continue;
        }
        if manner == Manner::LimitFirstStream && number == 0 {
            let message =
                format!("Per stream rate limit exceeded while attempting to ingest for stream '{}'", stream.labels);
            limited = Some((429, message));
            continue;
        }
        let stored = store.entry((tenant.to_owned(), stream.labels.clone())).or_default();
        for entry in stream.entries {
            errors.extend(store_entry(entry, &stream.labels, limits, stored));
        }
    }
    match (limited, errors.as_slice()) {
        (Some(limited), _) => Err(limited),
        (None, []) => Ok(()),
        (None, [error]) => refuse(error),
        (None, errors) => refuse(&grouped(errors)),
    }
}

fn check_headers(headers: &HeaderMap, method: &Method) {
    assert_eq!(method, Method::POST);
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert!(!headers.contains_key("content-encoding"), "Snappy's block format is a part of the protocol");
}

/// Errors as Loki joins them.
fn grouped(errors: &[String]) -> String {
    let mut counts = BTreeMap::new();
    errors.iter().for_each(|error| *counts.entry(error).or_insert(0) += 1);
    counts.iter().map(|(error, count)| format!("{count} errors like: {error}")).collect::<Vec<_>>().join("; ")
}

fn store_entry(entry: Entry, labels: &str, limits: Limits, stored: &mut Vec<Line>) -> Option<String> {
    let timestamp = entry.timestamp.expect("an entry has a time");
    assert!((0..1_000_000_000).contains(&timestamp.nanos) && timestamp.seconds >= 0);
    let time = timestamp.seconds as u64 * 1_000_000_000 + timestamp.nanos as u64;
    let pairs = entry.structured_metadata;
    let metadata: BTreeMap<_, _> = pairs.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect();
    assert_eq!(metadata.len(), pairs.len(), "a name occurs twice: {pairs:?}");
    assert!(metadata.keys().all(|name| is_name(name)), "{metadata:?}");
    let taken = parse_labels(labels).unwrap_or_default();
    assert!(taken.iter().all(|(name, _)| !metadata.contains_key(name)), "{metadata:?} and {labels}");
    let size: usize = pairs.iter().map(|pair| pair.name.len() + pair.value.len()).sum();
    if entry.line.len() > limits.line_bytes {
        return Some(format!("Max entry size '{}' bytes exceeded for stream '{labels}'", limits.line_bytes));
    }
    if size > limits.metadata_bytes {
        return Some(format!("stream '{labels}' has structured metadata too large: '{size}' bytes"));
    }
    if pairs.len() > limits.metadata_entries {
        return Some(format!("stream '{labels}' has too many structured metadata labels: '{}'", pairs.len()));
    }
    if time < limits.oldest {
        return Some(format!("entry for stream '{labels}' has timestamp too old: x"));
    }
    let line = Line { time, text: entry.line, metadata };
    if stored.iter().any(|known| known.time == line.time && known.text == line.text) {
        return None;
    }
    if stored.last().is_some_and(|last| last.time > line.time) {
        return Some("entry with timestamp x ignored, reason: 'entry out of order', total ignored: 1 out of 1".into());
    }
    stored.push(line);
    None
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What is wrong with `{a="b", c="d"}`.
fn label_error(text: &str, limits: Limits) -> Option<String> {
    let Some(labels) = parse_labels(text) else { return Some(format!("Error parsing labels '{text}'")) };
    if labels.is_empty() {
        return Some("error at least one label pair is required per stream".into());
    }
    if labels.len() > limits.labels {
        return Some(format!("entry for stream '{text}' has {} label names; limit {}", labels.len(), limits.labels));
    }
    if labels.iter().any(|(_, value)| value.len() > 2048) {
        return Some(format!("stream '{text}' has label value too long"));
    }
    (!labels.is_sorted_by(|a, b| a.0 < b.0)).then(|| format!("stream '{text}' has duplicate label name"))
}

/// Names and values in the notation of Prometheus.
pub(super) fn parse_labels(text: &str) -> Option<Vec<(String, String)>> {
    let mut rest = text.strip_prefix('{')?.strip_suffix('}')?;
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (name, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = behind.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(characters.next().map(|(_, c)| c).filter(|c| matches!(c, '"' | '\\'))?),
                (_, c) if c.is_control() => return None,
                (_, c) => value.push(c),
            }
        };
        if !is_name(name) {
            return None;
        }
        labels.push((name.to_owned(), value));
        rest = behind.get(end + 1..)?;
        rest = match rest.strip_prefix(", ") {
            Some(next) if !next.is_empty() => next,
            None if rest.is_empty() => rest,
            _ => return None,
        };
    }
    Some(labels)
}
