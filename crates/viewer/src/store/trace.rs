//! One trace.

use std::{fmt, str::FromStr, sync::Arc};

use super::{Chunk, SpanRef};

/// The id of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Why a text is no trace id.
#[derive(Debug, thiserror::Error)]
#[error("a trace id has up to 32 hexadecimal digits")]
pub struct TraceIdError;

impl FromStr for TraceId {
    type Err = TraceIdError;

    /// Shorter ones are filled up with zeroes, as those of older systems have 16 digits.
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

/// What is known of a trace. It changes by being replaced: whoever holds it sees it as it was.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Its id.
    pub id: TraceId,
    /// Its spans, as they came.
    pub chunks: Vec<Arc<Chunk>>,
    /// The version of the store in which it grew last.
    pub version: u64,
    /// When its first span came.
    pub received: u64,
    /// How many spans it has.
    pub spans: usize,
    /// How many of them are errors.
    pub errors: usize,
    /// Spans that were too many for it.
    pub cut: u64,
    /// What it takes, apart from what it shares with others.
    pub bytes: usize,
    /// What it shares with others, as if it did not.
    shared: usize,
    /// When the first span with a time began.
    first: Option<u64>,
    /// When the last one ended.
    last: u64,
}

impl Trace {
    /// One without spans.
    pub(super) fn new(id: TraceId, received: u64) -> Self {
        let bytes = std::mem::size_of::<Self>();
        Self {
            id,
            chunks: Vec::new(),
            version: 0,
            received,
            spans: 0,
            errors: 0,
            cut: 0,
            bytes,
            shared: 0,
            first: None,
            last: 0,
        }
    }

    pub(super) fn push(&mut self, chunk: Arc<Chunk>, bytes: usize, shared: usize) {
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

    /// What it would take alone.
    pub(super) fn weight(&self) -> usize {
        self.bytes + self.shared
    }

    /// When it began; when it came, if no span has a time.
    pub fn start(&self) -> u64 {
        self.first.unwrap_or(self.received)
    }

    /// From the begin of the first span to the end of the last one.
    pub fn duration(&self) -> u64 {
        self.first.map_or(0, |first| self.last.saturating_sub(first))
    }

    /// All its spans, as they came.
    pub fn spans(&self) -> impl Iterator<Item = SpanRef<'_>> {
        self.chunks.iter().flat_map(|chunk| chunk.spans())
    }
}
