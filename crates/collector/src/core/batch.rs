//! A batch and the requests that it was joined from.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use kubewake_otlp::{Signal, SpanTraits, SplitLimit, SplitPiece, split_within};
use tokio::time::Instant;

use super::{Charge, DeliveryReceipt, WorkMemory};

mod receipted;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The address of the peer of the connection.
    pub peer: Option<SocketAddr>,
    /// The subject that the authenticator identified.
    pub subject: Option<String>,
    /// The Kubernetes namespace of the sender, if known.
    pub namespace: Option<String>,
    /// Headers that later components need (`include_metadata`), in lower case.
    pub metadata: Vec<(String, String)>,
    /// The charge for the metadata, in the budget of each pipeline that got it.
    pub charge: OriginCharge,
    /// The receipt that the receiver awaits, if it can read the request again.
    pub receipt: Option<Arc<DeliveryReceipt>>,
}

impl Origin {
    /// Memory beyond what every request is charged for: the metadata, whose size the sender decides.
    pub(super) fn metadata_bytes(&self) -> usize {
        let pair = |(name, value): &(String, String)| name.capacity() + value.capacity();
        self.metadata.capacity() * size_of::<(String, String)>() + self.metadata.iter().map(pair).sum::<usize>()
    }
}

/// A charge that lasts as long as any request has this origin. All requests of a stream share one.
#[derive(Debug, Default)]
pub struct OriginCharge(pub(super) OnceLock<Vec<Charge>>);

impl Clone for OriginCharge {
    /// A clone is a new allocation, and is not charged yet.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for OriginCharge {
    /// Origins are equal regardless of their charges.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for OriginCharge {}

/// One accepted request, or a piece of one.
#[derive(Clone, Debug)]
pub struct Part {
    /// A complete OTLP export request.
    pub bytes: Bytes,
    /// Spans, data points or log records in it.
    pub items: usize,
    pub origin: Arc<Origin>,
    /// The charge to its pipeline's memory budget, released with the last reference.
    pub charge: Arc<Charge>,
    /// What is known about the bytes without parsing them again.
    pub traits: SpanTraits,
}

/// The memory that a request takes beside its bytes: the [`Part`] with its charge, a [`Batch`] around it, and
/// its entries in lists and queues that double. For tiny requests this is far more than their bytes, so no
/// request is charged for less.
pub const PART_OVERHEAD_BYTES: usize = 384;

impl Part {
    /// A request about which nothing else is known.
    pub fn new(bytes: Bytes, items: usize, origin: Arc<Origin>, charge: Arc<Charge>) -> Self {
        Self { bytes, items, origin, charge, traits: SpanTraits::default() }
    }
}

/// The unit that moves through a pipeline: requests of one signal, side by side.
///
/// The concatenation of the parts' bytes is one valid request (protobuf merges repeated fields). Joining
/// requests is therefore free, and a batch that a backend refuses can always be split again.
#[derive(Clone, Debug)]
pub struct Batch {
    signal: Signal,
    parts: Vec<Part>,
    items: usize,
    bytes: usize,
    /// When delivery first failed. A batch that fails over carries it to the next destination.
    failing_since: Option<Instant>,
}

impl Batch {
    pub fn empty(signal: Signal) -> Self {
        Self { signal, parts: Vec::new(), items: 0, bytes: 0, failing_since: None }
    }

    /// A batch of one request.
    pub fn single(signal: Signal, part: Part) -> Self {
        let items = part.items;
        let bytes = part.bytes.len();
        Self { signal, parts: vec![part], items, bytes, failing_since: None }
    }

    pub fn signal(&self) -> Signal {
        self.signal
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns its requests.
    pub fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    /// Spans, data points or log records.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Bytes of OTLP.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A copy without the parts, for counting after the batch itself was passed on.
    pub fn clone_tally(&self) -> Batch {
        Batch { parts: Vec::new(), ..*self }
    }

    /// When delivery first failed, if it did.
    pub fn failing_since(&self) -> Option<Instant> {
        self.failing_since
    }

    /// The same batch with another time of the first failure.
    #[must_use]
    pub fn with_failing_since(self, since: Option<Instant>) -> Self {
        Self { failing_since: self.failing_since.into_iter().chain(since).min(), ..self }
    }

    pub fn push(&mut self, part: Part) {
        self.items += part.items;
        self.bytes += part.bytes.len();
        self.parts.push(part);
    }

    /// Modifies its requests, and removes those for which `keep` returns false.
    pub fn retain_mut(&mut self, keep: impl FnMut(&mut Part) -> bool) {
        self.parts.retain_mut(keep);
        self.items = self.parts.iter().map(|part| part.items).sum();
        self.bytes = self.parts.iter().map(|part| part.bytes.len()).sum();
    }

    /// Appends another batch of the same signal.
    pub fn append(&mut self, other: Batch) {
        debug_assert_eq!(self.signal, other.signal);
        self.items += other.items;
        self.bytes += other.bytes;
        self.failing_since = self.failing_since.into_iter().chain(other.failing_since).min();
        if self.parts.is_empty() {
            self.parts = other.parts;
        } else {
            self.parts.extend(other.parts);
        }
    }

    /// Splits the batch between its requests, into at most `pieces` batches of about as many requests each.
    pub fn split_into(self, pieces: usize) -> Vec<Batch> {
        let Self { signal, parts, failing_since, .. } = self;
        let each = parts.len().div_ceil(pieces.max(1)).max(1);
        let mut parts = parts.into_iter().peekable();
        let mut out = Vec::with_capacity(pieces);
        while parts.peek().is_some() {
            let mut piece = Self { failing_since, ..Self::empty(signal) };
            parts.by_ref().take(each).for_each(|part| piece.push(part));
            out.push(piece);
        }
        out
    }

    /// Splits the batch into batches within `limit`, without copying the parts that fit. A record that is
    /// larger than a limit in bytes becomes a batch of its own. So does a request for whose pieces there is no
    /// memory: each piece repeats the headers of the request, and the sender chooses how large those are.
    pub fn split(self, limit: SplitLimit) -> Vec<Batch> {
        if fits(limit, self.items, self.bytes) {
            return vec![self];
        }
        let mut out = Vec::new();
        let mut open = Batch::empty(self.signal);
        for part in self.parts {
            fill_batches(&mut out, &mut open, part, limit);
        }
        if !open.is_empty() {
            out.push(open);
        }
        out
    }
}

/// Iterates over batches. Each releases its charge when it is dropped, so that the memory of a long list
/// shrinks with them.
pub fn one_by_one(batches: Vec<Batch>) -> impl Iterator<Item = Batch> + Send {
    /// A list of this length takes a few kilobytes.
    const SHRINK_MIN_CAPACITY: usize = 64;
    let mut rest = VecDeque::from(batches);
    std::iter::from_fn(move || {
        let next = rest.pop_front();
        if rest.capacity() > SHRINK_MIN_CAPACITY && rest.len() < rest.capacity() / 4 {
            rest.shrink_to(rest.len() * 2);
        }
        next
    })
}

/// Adds `part` to the open batch as far as it fits, and the rest to new ones.
fn fill_batches(out: &mut Vec<Batch>, open: &mut Batch, part: Part, limit: SplitLimit) {
    let signal = open.signal;
    let close = |out: &mut Vec<Batch>, open: &mut Batch| {
        if !open.is_empty() {
            out.push(std::mem::replace(open, Batch::empty(signal)));
        }
    };
    if fits(limit, open.items + part.items, open.bytes + part.bytes.len()) {
        open.push(part);
        return;
    }
    let Some(pieces) = split_part(signal, &part, items_left(limit, open), limit) else {
        close(out, open);
        open.push(part);
        return;
    };
    for piece in pieces {
        if !fits(limit, open.items + piece.items, open.bytes + piece.bytes.len()) {
            close(out, open);
        }
        open.push(piece);
    }
}

/// Splits a request: a first piece of at most `first` items that fills the open batch, if it has room, and the
/// others within `limit`. `None` if there is no memory for the pieces.
fn split_part(signal: Signal, part: &Part, first: Option<NonZeroUsize>, limit: SplitLimit) -> Option<Vec<Part>> {
    let mut out = Vec::new();
    // The charge of the request covers its pieces as far as their bytes are no more than its own, plus the same
    // amount for bookkeeping. Tiny pieces need more bookkeeping than they have bytes.
    let mut covered = part.bytes.len();
    let mut covered_pieces = part.bytes.len() / PART_OVERHEAD_BYTES;
    let mut memory = WorkMemory::new(&part.charge);
    let mut pieces = split_within(signal, &part.bytes, first.map_or(limit, SplitLimit::Items), &mut memory);
    let mut push = |piece: SplitPiece| {
        let size = piece.bytes.len();
        let is_covered = size <= covered && covered_pieces > 0;
        let charge = if is_covered {
            (covered, covered_pieces) = (covered - size, covered_pieces - 1);
            part.charge.clone()
        } else {
            Arc::new(part.charge.reserve_copy((size + PART_OVERHEAD_BYTES) as u64)?)
        };
        out.push(Part::new(piece.bytes, piece.items, part.origin.clone(), charge));
        Some(())
    };
    push(pieces.next()?)?;
    pieces.set_limit(limit);
    pieces.try_for_each(push)?;
    (!pieces.is_exhausted()).then_some(out)
}

fn fits(limit: SplitLimit, items: usize, bytes: usize) -> bool {
    match limit {
        SplitLimit::Items(max) => items <= max.get(),
        SplitLimit::Bytes(max) => bytes <= max.get(),
    }
}

/// How many items the open batch still takes. With a limit in bytes, where headers count too, it is not filled
/// up.
fn items_left(limit: SplitLimit, open: &Batch) -> Option<NonZeroUsize> {
    match limit {
        SplitLimit::Items(max) => NonZeroUsize::new(max.get().saturating_sub(open.items)),
        SplitLimit::Bytes(_) => None,
    }
}

#[cfg(test)]
mod tests;
