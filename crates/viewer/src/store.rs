//! Traces in memory, within a limit in bytes.
//!
//! A trace is a list of immutable [`TraceChunk`]s, one for each request that brought spans of it: the bytes of
//! its spans as they were sent, a small [`ChunkEntry`] for each, and tables of the names, senders and objects
//! that the entries refer to. Names, senders and objects are interned across all chunks.
//!
//! *Guaranteed.* [`StoreFigures::bytes`], the sum of all memory of the store, never exceeds the limit. When
//! there is no room, the trace that has not grown for longest is evicted as a whole, and counted. A trace holds
//! at most [`StoreLimits::trace_spans`] spans and a quarter of the memory; further spans are refused and
//! counted in it, and a larger request never results in fewer spans. A span that is sent again with the same
//! bytes is stored once. Readers work on a [`StoreSnapshot`], which holds no lock. *Assumed.* Requests were
//! scanned, as the receiver does; others are harmless, and their invalid parts are left out. *Not done.* Memory
//! that live snapshots hold of evicted traces is not counted.

mod chunk;
mod chunk_cost;
mod disk;
mod grouped_spans;
mod interner;
mod store_inner;
mod store_writer;
mod trace;

#[cfg(test)]
mod tests;

use std::{collections::HashSet, sync::Arc};

use kubewake_runtime::lock::RwLock;
use tokio::sync::{broadcast, watch};

pub(crate) use self::grouped_spans::{MAX_NAME_BYTES, truncate};
use self::store_inner::StoreInner;
pub use self::{
    chunk::{ChunkEntry, LINK_MARK_KEY, SpanRef, SpanSubject, TelemetryOrigin, TraceChunk, attribute_mark},
    disk::{DiskError, SegmentStore},
    grouped_spans::GroupedSpans,
    store_writer::StoreWriter,
    trace::{StoredTrace, TraceId, TraceIdError},
};

#[derive(Clone, Copy, Debug)]
pub struct StoreLimits {
    pub bytes: usize,
    pub trace_spans: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        // A page can still show a trace of this size; a larger one is a loop.
        Self { bytes: 256 << 20, trace_spans: 100_000 }
    }
}

/// Counters and current size of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFigures {
    pub traces: usize,
    pub spans: usize,
    pub bytes: usize,
    pub limit: usize,
    /// Evicted traces.
    pub dropped_traces: u64,
    pub dropped_spans: u64,
    /// Traces of which no span fits. One that is sent again is counted again only after hundreds of others.
    pub refused_traces: u64,
    /// Spans of refused traces, and spans beyond the limit of other traces.
    pub refused_spans: u64,
    /// Spans without a span id or a trace id.
    pub invalid_spans: u64,
    /// Spans received since the start.
    pub received_spans: u64,
    /// Start of the oldest trace in the store.
    pub oldest: Option<u64>,
}

/// New spans of one trace.
#[derive(Clone, Debug)]
pub struct ArrivedSpans {
    pub trace: TraceId,
    pub chunk: Arc<TraceChunk>,
    /// Number of spans that were stored before these, since the start.
    pub earlier_spans: u64,
}

/// The outcome of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedSpans {
    pub traces: Vec<TraceId>,
    pub spans: usize,
    /// Rejected spans, which would be rejected again.
    pub rejected: RejectedSpans,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectedSpans {
    /// Without a span id or a trace id.
    pub invalid: u64,
    /// Beyond the limit of their trace.
    pub surplus: u64,
}

impl RejectedSpans {
    pub fn spans(self) -> u64 {
        self.invalid + self.surplus
    }
}

impl std::ops::AddAssign for RejectedSpans {
    fn add_assign(&mut self, other: Self) {
        self.invalid += other.invalid;
        self.surplus += other.surplus;
    }
}

impl std::fmt::Display for RejectedSpans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reasons =
            [(self.invalid, "without a valid trace id or span id"), (self.surplus, "beyond the limit of one trace")];
        let mut between = "";
        for (spans, reason) in reasons.into_iter().filter(|(spans, _)| *spans > 0) {
            let noun = if spans == 1 { "span" } else { "spans" };
            write!(f, "{between}{spans} {noun} {reason}")?;
            between = "; ";
        }
        Ok(())
    }
}

/// How many events a slow subscriber may fall behind.
const MAX_TAIL_LAG: usize = 128;

#[derive(Debug)]
pub struct TraceStore {
    inner: RwLock<StoreInner>,
    changed: watch::Sender<u64>,
    tail: broadcast::Sender<ArrivedSpans>,
}

impl TraceStore {
    pub fn new(limits: StoreLimits) -> Self {
        Self {
            inner: RwLock::new(StoreInner::new(limits)),
            changed: watch::Sender::new(0),
            tail: broadcast::Sender::new(MAX_TAIL_LAG),
        }
    }

    /// Adds the spans of a request that arrived at `now`.
    pub fn add(&self, arrival: GroupedSpans, now: u64) -> AddedSpans {
        let (added, arrived, version) = {
            let mut inner = self.inner.write();
            inner.add(arrival, now)
        };
        self.changed.send_replace(version);
        for arrived in arrived {
            // An error means that there is no subscriber.
            if self.tail.send(arrived).is_err() {
                break;
            }
        }
        added
    }

    pub fn snapshot(&self) -> StoreSnapshot {
        self.with_state(StoreInner::snapshot)
    }

    /// The traces that changed after a version, and the current version.
    pub fn changed_since(&self, version: u64) -> StoreSnapshot {
        self.with_state(|inner| inner.changed_since(version))
    }

    pub fn trace(&self, id: TraceId) -> Option<Arc<StoredTrace>> {
        self.with_state(|inner| inner.trace(id))
    }

    /// The traces with these ids, as far as they are in the store.
    pub fn traces(&self, ids: &HashSet<TraceId>) -> Vec<Arc<StoredTrace>> {
        self.with_state(|inner| ids.iter().filter_map(|id| inner.trace(*id)).collect())
    }

    pub fn figures(&self) -> StoreFigures {
        self.with_state(StoreInner::figures)
    }

    /// Watches the version, which changes with every addition.
    pub fn watch_version(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn subscribe(&self) -> broadcast::Receiver<ArrivedSpans> {
        self.tail.subscribe()
    }

    fn with_state<T>(&self, look: impl FnOnce(&StoreInner) -> T) -> T {
        look(&self.inner.read())
    }
}

/// The traces at one moment.
#[derive(Clone, Debug)]
pub struct StoreSnapshot {
    /// In order of their last growth.
    pub traces: Vec<Arc<StoredTrace>>,
    pub version: u64,
    pub figures: StoreFigures,
}
