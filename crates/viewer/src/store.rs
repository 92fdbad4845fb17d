//! Traces in memory, within a limit in bytes.
//!
//! A trace is a list of [`Chunk`]s, one for each request that brought spans of it, and a chunk never changes: the bytes of its spans as they were sent, a small
//! [`Entry`] for each, and tables of the names, senders and objects that the entries point into. Names, senders and objects are kept once for all chunks.
//!
//! *Guaranteed.* [`Figures::bytes`], the sum of what all of this takes, is never above the limit. When there is no room, the trace that was quiet for longest
//! goes as a whole, and is counted. A trace holds at most [`Limits::trace_spans`] spans and a quarter of the memory; what comes beyond is refused and counted in
//! it, and of a larger request never fewer spans are kept. A span that is sent again with the same bytes is kept once. Whoever looks works on a [`Snapshot`], which holds no lock.
//! *Assumed.* Requests were scanned, as the receiver does; others do no harm, and what is not understood in them is left out.
//! *Not done.* What snapshots under way hold of traces that went meanwhile is not counted.

mod arrival;
mod chunk;
mod cost;
mod disk;
mod inner;
mod intern;
mod keeper;
mod trace;

#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock},
};

use tokio::sync::{broadcast, watch};

pub(crate) use self::arrival::{NAME, cut};
use self::inner::Inner;
pub use self::{
    arrival::Arrival,
    chunk::{Chunk, Entry, LINK, Object, Origin, SpanRef, mark},
    disk::{Disk, DiskError},
    keeper::Keeper,
    trace::{Trace, TraceId, TraceIdError},
};

/// What a store may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// All of it together.
    pub bytes: usize,
    /// Spans of one trace.
    pub trace_spans: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // A page can still show a trace of this size; one that is larger is a loop.
        Self { bytes: 256 << 20, trace_spans: 100_000 }
    }
}

/// What a store holds, and what it had to let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Traces that are here.
    pub traces: usize,
    /// Spans that are here.
    pub spans: usize,
    /// What they take.
    pub bytes: usize,
    /// What they may take.
    pub limit: usize,
    /// Traces that had to make room for others.
    pub dropped_traces: u64,
    /// Their spans.
    pub dropped_spans: u64,
    /// Traces of which nothing fits; one that comes again is counted again only after hundreds of others.
    pub refused_traces: u64,
    /// Their spans, and those that other traces had too many.
    pub refused_spans: u64,
    /// Spans without an id or without a trace.
    pub invalid_spans: u64,
    /// Spans that came since the start.
    pub received_spans: u64,
    /// When the oldest trace that is here began.
    pub oldest: Option<u64>,
}

/// Spans of one trace that have just come.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The trace.
    pub trace: TraceId,
    /// Its new spans.
    pub chunk: Arc<Chunk>,
    /// How many spans were kept before these, since the start.
    pub before: u64,
}

/// What became of an arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// The traces that it has spans of.
    pub traces: Vec<TraceId>,
    /// Spans that are new.
    pub spans: usize,
    /// Spans that are not here, and will not be if they are sent again.
    pub rejected: Rejected,
}

/// Spans that the store does not take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Without an id or without a trace.
    pub invalid: u64,
    /// More than one trace may have.
    pub surplus: u64,
}

impl Rejected {
    /// How many there are.
    pub fn spans(self) -> u64 {
        self.invalid + self.surplus
    }
}

impl std::ops::AddAssign for Rejected {
    fn add_assign(&mut self, other: Self) {
        self.invalid += other.invalid;
        self.surplus += other.surplus;
    }
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reasons = [
            (self.invalid, "without a valid trace id or span id"),
            (self.surplus, "more than one trace may hold here"),
        ];
        let mut between = "";
        for (spans, reason) in reasons.into_iter().filter(|(spans, _)| *spans > 0) {
            let noun = if spans == 1 { "span" } else { "spans" };
            write!(f, "{between}{spans} {noun} {reason}")?;
            between = "; ";
        }
        Ok(())
    }
}

/// Arrivals that somebody who reads slowly may be behind.
const TAIL: usize = 128;

/// All traces.
#[derive(Debug)]
pub struct Store {
    inner: RwLock<Inner>,
    changed: watch::Sender<u64>,
    tail: broadcast::Sender<Arrived>,
}

impl Store {
    /// An empty one.
    pub fn new(limits: Limits) -> Self {
        Self {
            inner: RwLock::new(Inner::new(limits)),
            changed: watch::Sender::new(0),
            tail: broadcast::Sender::new(TAIL),
        }
    }

    /// Takes what came, at `now`.
    pub fn add(&self, arrival: Arrival, now: u64) -> Added {
        let (added, arrived, version) = {
            let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
            inner.add(arrival, now)
        };
        self.changed.send_replace(version);
        for arrived in arrived {
            // Nobody looks.
            if self.tail.send(arrived).is_err() {
                break;
            }
        }
        added
    }

    /// All traces as they are now.
    pub fn snapshot(&self) -> Snapshot {
        self.read(Inner::snapshot)
    }

    /// The traces that changed after a version, and the version that they are of.
    pub fn changed_since(&self, version: u64) -> Snapshot {
        self.read(|inner| inner.changed_since(version))
    }

    /// One trace.
    pub fn trace(&self, id: TraceId) -> Option<Arc<Trace>> {
        self.read(|inner| inner.trace(id))
    }

    /// Those of the traces that are here.
    pub fn traces(&self, ids: &HashSet<TraceId>) -> Vec<Arc<Trace>> {
        self.read(|inner| ids.iter().filter_map(|id| inner.trace(*id)).collect())
    }

    /// What is here.
    pub fn figures(&self) -> Figures {
        self.read(Inner::figures)
    }

    /// Tells when something came: its version.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// What comes from now on.
    pub fn tail(&self) -> broadcast::Receiver<Arrived> {
        self.tail.subscribe()
    }

    fn read<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Traces as they were at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Those that grew last come last.
    pub traces: Vec<Arc<Trace>>,
    /// Rises with each arrival.
    pub version: u64,
    /// What the store held.
    pub figures: Figures,
}
