//! A trace in the store.

use std::{fmt, str::FromStr, sync::Arc};

use super::{SpanRef, TraceChunk};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a trace id has up to 32 hexadecimal digits")]
pub struct TraceIdError;

impl FromStr for TraceId {
    type Err = TraceIdError;

    /// Shorter ids are padded with zeroes: older systems have 16 digits.
    fn from_str(text: &str) -> Result<Self, TraceIdError> {
        let is_hex = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten().ok_or(TraceIdError)?;
        Ok(Self(number.to_be_bytes()))
    }
}

impl serde::Serialize for TraceId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A trace in the store. A change replaces the value, so that readers see a consistent state.
#[derive(Clone, Debug)]
pub struct StoredTrace {
    pub id: TraceId,
    /// Its spans, in order of arrival.
    pub chunks: Vec<Arc<TraceChunk>>,
    /// The version of the store in which it last grew.
    pub version: u64,
    /// Time of arrival of its first span.
    pub received: u64,
    pub spans: usize,
    /// How many spans are errors.
    pub errors: usize,
    /// Spans beyond the limit.
    pub surplus_spans: u64,
    /// Its memory, without the values that it shares with others.
    pub bytes: usize,
    /// The memory of its interned values, as if it were their only user.
    shared: usize,
    /// Start of its first span that has a time.
    first: Option<u64>,
    /// End of its last span.
    last: u64,
}

impl StoredTrace {
    pub(super) fn new(id: TraceId, received: u64) -> Self {
        let bytes = std::mem::size_of::<Self>();
        Self {
            id,
            chunks: Vec::new(),
            version: 0,
            received,
            spans: 0,
            errors: 0,
            surplus_spans: 0,
            bytes,
            shared: 0,
            first: None,
            last: 0,
        }
    }

    pub(super) fn push(&mut self, chunk: Arc<TraceChunk>, bytes: usize, shared: usize) {
        self.spans += chunk.entries().len();
        self.bytes += bytes;
        self.shared += shared;
        for entry in chunk.entries() {
            self.errors += usize::from(entry.is_error());
            if entry.has_time() {
                self.first = Some(self.first.map_or(entry.start, |first| first.min(entry.start)));
                self.last = self.last.max(entry.end);
            }
        }
        self.chunks.push(chunk);
    }

    /// The memory that it would take alone.
    pub(super) fn standalone_bytes(&self) -> usize {
        self.bytes + self.shared
    }

    /// Its start; if no span has a time, that of its arrival.
    pub fn start(&self) -> u64 {
        self.first.unwrap_or(self.received)
    }

    /// From the start of its first span to the end of its last one.
    pub fn duration(&self) -> u64 {
        self.first.map_or(0, |first| self.last.saturating_sub(first))
    }

    /// All spans, in order of arrival.
    pub fn spans(&self) -> impl Iterator<Item = SpanRef<'_>> {
        self.chunks.iter().flat_map(|chunk| chunk.spans())
    }
}
