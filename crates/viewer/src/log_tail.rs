//! Log records as they arrive, for readers who follow them. Nothing is stored.
//!
//! *Guaranteed*: without a reader nothing is kept and nothing is converted. A slow reader holds nobody up: it
//! misses records, which are counted. What waits for readers is bounded in bytes, whatever was sent.

use std::sync::Arc;

use kubewake_otlp::view::{AttributesView, LogRecord, Resource, lossy, resources};
use kubewake_runtime::lock::Mutex;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::{
    json::{AttributesJson, HexBytes, Nanos, TruncatedText, TruncatedValue},
    store::{MAX_NAME_BYTES, truncate},
};

/// The JSON of one chunk, beside its last record.
const MAX_CHUNK_BYTES: usize = 256 << 10;
/// Records in one chunk.
const MAX_CHUNK_RECORDS: usize = 1000;
/// Chunks that wait for the slowest reader.
const MAX_WAITING_CHUNKS: usize = 32;
/// The JSON of one record; the attributes of a larger one are left out.
const MAX_RECORD_BYTES: usize = 128 << 10;

/// Where a record comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LogSource {
    pub(crate) service: String,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) container: String,
}

impl LogSource {
    fn new(attributes: AttributesView<'_>) -> Self {
        let text = |key: &str| {
            let value = attributes.text(key).map(|text| lossy(text)).unwrap_or_default();
            truncate(&value, MAX_NAME_BYTES).to_owned()
        };
        Self {
            service: text("service.name"),
            namespace: text("k8s.namespace.name"),
            pod: text("k8s.pod.name"),
            container: text("k8s.container.name"),
        }
    }
}

/// The levels of `SeverityNumber`, in order; each has four numbers.
pub(crate) const SEVERITIES: [&str; 6] = ["trace", "debug", "info", "warn", "error", "fatal"];

/// A record as JSON, with what filters look at.
#[derive(Debug)]
pub(crate) struct TailRecord {
    pub(crate) source: Arc<LogSource>,
    /// The number of the level in [`SEVERITIES`], from 1; 0 if unspecified.
    pub(crate) level: usize,
    pub(crate) json: String,
}

/// Records that arrived together.
#[derive(Debug)]
pub(crate) struct LogChunk {
    /// The number of records before it.
    pub(crate) earlier: u64,
    pub(crate) records: Vec<TailRecord>,
}

#[derive(Debug)]
pub(crate) struct LogTail {
    sender: broadcast::Sender<Arc<LogChunk>>,
    /// The number of records so far. The lock keeps chunks in the order of their numbers.
    count: Mutex<u64>,
}

impl Default for LogTail {
    fn default() -> Self {
        Self { sender: broadcast::Sender::new(MAX_WAITING_CHUNKS), count: Mutex::default() }
    }
}

impl LogTail {
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<LogChunk>> {
        self.sender.subscribe()
    }

    /// Passes the records of a request that was scanned to all readers.
    pub(crate) fn publish(&self, request: &[u8]) {
        if self.sender.receiver_count() == 0 {
            return;
        }
        let mut chunk = Vec::new();
        let mut bytes = 0;
        for entry in resources(request) {
            let resource = entry.resource();
            let source = Arc::new(LogSource::new(resource.attributes()));
            for record in entry.scopes().flat_map(|scope| scope.log_records()) {
                let record = tail_record(&source, resource, record);
                bytes += record.json.len();
                chunk.push(record);
                if bytes >= MAX_CHUNK_BYTES || chunk.len() == MAX_CHUNK_RECORDS {
                    self.send(std::mem::take(&mut chunk));
                    bytes = 0;
                }
            }
        }
        if !chunk.is_empty() {
            self.send(chunk);
        }
    }

    fn send(&self, records: Vec<TailRecord>) {
        let mut count = self.count.lock();
        let earlier = *count;
        *count += records.len() as u64;
        // The last reader may have gone.
        let _ = self.sender.send(Arc::new(LogChunk { earlier, records }));
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogRecordJson<'a> {
    /// The time of the event, or else the time at which it was observed.
    time: Nanos,
    severity: &'static str,
    severity_number: i32,
    severity_text: TruncatedText<'a>,
    #[serde(flatten)]
    source: &'a LogSource,
    body: TruncatedValue<'a>,
    trace_id: HexBytes<'a>,
    span_id: HexBytes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<AttributesJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<AttributesJson<'a>>,
    /// Whether the attributes are left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

fn tail_record(source: &Arc<LogSource>, resource: Resource<'_>, record: LogRecord<'_>) -> TailRecord {
    let level = severity_level(record.severity_number());
    let attributes = |all| Some(AttributesJson { all, untruncated: false });
    let mut shown = LogRecordJson {
        time: Nanos(if record.time() == 0 { record.observed_time() } else { record.time() }),
        severity: level.checked_sub(1).and_then(|level| SEVERITIES.get(level)).copied().unwrap_or_default(),
        severity_number: record.severity_number(),
        severity_text: TruncatedText(record.severity_text()),
        source,
        body: TruncatedValue { value: record.body(), size: record.raw_body().len() },
        trace_id: HexBytes(record.trace_id()),
        span_id: HexBytes(record.span_id()),
        attributes: attributes(record.attributes()),
        resource: attributes(resource.attributes()),
        cut: false,
    };
    let mut json = serde_json::to_string(&shown).unwrap_or_default();
    if json.len() > MAX_RECORD_BYTES {
        shown = LogRecordJson { attributes: None, resource: None, cut: true, ..shown };
        json = serde_json::to_string(&shown).unwrap_or_default();
    }
    TailRecord { source: Arc::clone(source), level, json }
}

/// The number of the level, from 1; 0 for numbers without a level.
fn severity_level(number: i32) -> usize {
    match number {
        1..=24 => usize::try_from((number - 1) / 4 + 1).unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use kubewake_otlp::wire::{close, open, put_bytes, put_fixed64, put_uint};

    use super::*;

    /// A request with one record that has this body.
    fn request(body: &[u8], severity: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let resource_logs = open(&mut out, 1);
        let resource = open(&mut out, 1);
        for (key, value) in [("k8s.namespace.name", "shop"), ("k8s.pod.name", "web"), ("k8s.container.name", "main")] {
            let pair = open(&mut out, 1);
            put_bytes(&mut out, 1, key.as_bytes());
            let inner = open(&mut out, 2);
            put_bytes(&mut out, 1, value.as_bytes());
            close(&mut out, inner);
            close(&mut out, pair);
        }
        close(&mut out, resource);
        let scope_logs = open(&mut out, 2);
        let record = open(&mut out, 2);
        put_fixed64(&mut out, 11, 7);
        put_uint(&mut out, 2, severity);
        let value = open(&mut out, 5);
        put_bytes(&mut out, 1, body);
        close(&mut out, value);
        close(&mut out, record);
        close(&mut out, scope_logs);
        close(&mut out, resource_logs);
        out
    }

    #[tokio::test]
    async fn reader_gets_records_with_their_source_and_level() {
        let tail = LogTail::default();
        tail.publish(&request(b"before", 9));
        let mut reader = tail.subscribe();
        tail.publish(&request(b"an order\xff", 17));
        let chunk = reader.recv().await.unwrap();
        assert_eq!((chunk.earlier, chunk.records.len()), (0, 1), "nobody read the first one");
        let [record] = chunk.records.as_slice() else { panic!("{chunk:?}") };
        assert_eq!(record.level, 5);
        let json: serde_json::Value = serde_json::from_str(&record.json).unwrap();
        let expected = serde_json::json!(["7", "error", "shop", "web", "main", "an order\u{fffd}"]);
        let shown = ["time", "severity", "namespace", "pod", "container", "body"].map(|field| json[field].clone());
        assert_eq!(serde_json::Value::from(shown.to_vec()), expected);
    }

    #[tokio::test]
    async fn reader_that_is_too_slow_misses_counted_records_and_memory_is_bounded() {
        let tail = LogTail::default();
        let mut reader = tail.subscribe();
        let large = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            tail.publish(&request(&large, 9));
        }
        let lagged = reader.recv().await.unwrap_err();
        assert!(matches!(lagged, broadcast::error::RecvError::Lagged(_)));
        let mut records = 0;
        let mut bytes = 0;
        while let Ok(chunk) = reader.try_recv() {
            records += chunk.records.len();
            bytes += chunk.records.iter().map(|record| record.json.len()).sum::<usize>();
        }
        assert!(records <= MAX_WAITING_CHUNKS && bytes <= MAX_WAITING_CHUNKS * (MAX_CHUNK_BYTES + MAX_RECORD_BYTES));
    }

    #[test]
    fn numbers_of_severities_have_levels() {
        let levels: Vec<usize> = [-1, 0, 1, 4, 5, 12, 13, 20, 21, 24, 25].into_iter().map(severity_level).collect();
        assert_eq!(levels, [0, 0, 1, 1, 2, 3, 4, 5, 6, 6, 0]);
    }
}
