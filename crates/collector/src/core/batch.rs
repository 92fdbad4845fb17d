//! A batch and the requests that it was joined from.

use std::{collections::VecDeque, net::SocketAddr, num::NonZeroUsize, sync::Arc};

use bytes::Bytes;
use kubewake_otlp::{Limit, Piece, Signal, Traits, split_within};
use tokio::time::Instant;

use super::{Charge, WorkMemory};

/// Who sent a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The other end of the connection.
    pub peer: Option<SocketAddr>,
    /// Who the authenticator says it is.
    pub subject: Option<String>,
    /// The namespace that it sends from, where that is known.
    pub namespace: Option<String>,
    /// Headers that later components asked for (`include_metadata`), in lower case.
    pub metadata: Vec<(String, String)>,
}

/// One request as it was accepted, or a piece of one.
#[derive(Clone, Debug)]
pub struct Part {
    /// A complete OTLP export request.
    pub bytes: Bytes,
    /// Spans, data points or log records in it.
    pub items: usize,
    /// Who sent it.
    pub origin: Arc<Origin>,
    /// What it holds of its pipeline's memory budget, given back when the last holder lets go.
    pub charge: Arc<Charge>,
    /// What is known of these bytes without another look.
    pub traits: Traits,
}

/// What a request takes beside its bytes: the [`Part`] with its charge, a [`Batch`] around it, and its places in lists and
/// queues that double. Of tiny requests this is far more than their bytes, so that no request is charged for less.
pub const PART_BYTES: usize = 384;

impl Part {
    /// A request of which nothing more is known.
    pub fn new(bytes: Bytes, items: usize, origin: Arc<Origin>, charge: Arc<Charge>) -> Self {
        Self { bytes, items, origin, charge, traits: Traits::default() }
    }
}

/// What moves through a pipeline: requests of one signal, side by side.
///
/// The concatenation of the parts' bytes is one valid request (protobuf merges repeated fields), so joining requests
/// costs nothing here, and a batch that a backend refuses can always be taken apart again.
#[derive(Clone, Debug)]
pub struct Batch {
    signal: Signal,
    parts: Vec<Part>,
    items: usize,
    bytes: usize,
    /// When an attempt to deliver it first failed. It goes with the batch to whoever tries next.
    failing_since: Option<Instant>,
}

impl Batch {
    /// A batch of nothing.
    pub fn empty(signal: Signal) -> Self {
        Self { signal, parts: Vec::new(), items: 0, bytes: 0, failing_since: None }
    }

    /// A batch of one request.
    pub fn single(signal: Signal, part: Part) -> Self {
        let (items, bytes) = (part.items, part.bytes.len());
        Self { signal, parts: vec![part], items, bytes, failing_since: None }
    }

    /// What kind of data it holds.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The requests in it.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The requests in it, by value.
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

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Its size without its parts, to count by after the batch itself was handed on.
    pub fn clone_tally(&self) -> Batch {
        Batch { parts: Vec::new(), ..*self }
    }

    /// When an attempt to deliver it first failed, if one did.
    pub fn failing_since(&self) -> Option<Instant> {
        self.failing_since
    }

    /// The same batch, which has been failing since then.
    #[must_use]
    pub fn failed_at(self, since: Option<Instant>) -> Self {
        Self { failing_since: self.failing_since.into_iter().chain(since).min(), ..self }
    }

    /// Adds one more request.
    pub fn push(&mut self, part: Part) {
        self.items += part.items;
        self.bytes += part.bytes.len();
        self.parts.push(part);
    }

    /// Changes the requests in it, and leaves out those that `keep` says no to.
    pub fn retain_mut(&mut self, keep: impl FnMut(&mut Part) -> bool) {
        self.parts.retain_mut(keep);
        self.items = self.parts.iter().map(|part| part.items).sum();
        self.bytes = self.parts.iter().map(|part| part.bytes.len()).sum();
    }

    /// Adds another batch of the same signal.
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

    /// Takes the batch apart between its requests, into at most so many batches of about as many requests each.
    pub fn apart(self, pieces: usize) -> Vec<Batch> {
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

    /// Cuts the batch into batches within `limit`, without copying the parts that need no cut. A record that is
    /// larger than a limit in bytes goes alone, and so does a request whose pieces would take more memory than there is:
    /// each of them repeats the headers of what was cut, and a stranger chooses how large those are.
    pub fn split(self, limit: Limit) -> Vec<Batch> {
        if fits(limit, self.items, self.bytes) {
            return vec![self];
        }
        let mut out = Vec::new();
        let mut open = Batch::empty(self.signal);
        for part in self.parts {
            fill(&mut out, &mut open, part, limit);
        }
        if !open.is_empty() {
            out.push(open);
        }
        out
    }
}

/// Batches one after another. Each gives back its charge when it is gone, so that the list of many becomes shorter with them.
pub fn one_by_one(batches: Vec<Batch>) -> impl Iterator<Item = Batch> + Send {
    /// A list of so many takes a few kilobytes.
    const MANY: usize = 64;
    let mut rest = VecDeque::from(batches);
    std::iter::from_fn(move || {
        let next = rest.pop_front();
        if rest.capacity() > MANY && rest.len() < rest.capacity() / 4 {
            rest.shrink_to(rest.len() * 2);
        }
        next
    })
}

/// Puts `part` into the open batch as far as it fits, and the rest into new ones.
fn fill(out: &mut Vec<Batch>, open: &mut Batch, part: Part, limit: Limit) {
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
    let Some(pieces) = cut(signal, &part, room(limit, open), limit) else {
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

/// Cuts a request: a first piece of at most `first` items that tops up the open batch, if there is room for any, and the
/// others within `limit`. `None` if there is no memory for the pieces.
fn cut(signal: Signal, part: &Part, first: Option<NonZeroUsize>, limit: Limit) -> Option<Vec<Part>> {
    let mut out = Vec::new();
    // What the request is charged for covers its pieces, as far as they are no larger than it was; and as much again may go into
    // keeping them. Of tiny pieces there is more to keep than there is in them.
    let (mut covered, mut covered_pieces) = (part.bytes.len(), part.bytes.len() / PART_BYTES);
    let mut memory = WorkMemory::new(&part.charge);
    let mut pieces = split_within(signal, &part.bytes, first.map_or(limit, Limit::Items), &mut memory);
    let mut push = |piece: Piece| {
        let size = piece.bytes.len();
        let is_covered = size <= covered && covered_pieces > 0;
        let charge = match is_covered {
            true => {
                (covered, covered_pieces) = (covered - size, covered_pieces - 1);
                part.charge.clone()
            }
            false => Arc::new(part.charge.another((size + PART_BYTES) as u64)?),
        };
        out.push(Part::new(piece.bytes, piece.items, part.origin.clone(), charge));
        Some(())
    };
    push(pieces.next()?)?;
    pieces.set_limit(limit);
    pieces.try_for_each(push)?;
    (!pieces.is_exhausted()).then_some(out)
}

fn fits(limit: Limit, items: usize, bytes: usize) -> bool {
    match limit {
        Limit::Items(max) => items <= max.get(),
        Limit::Bytes(max) => bytes <= max.get(),
    }
}

/// How many items the open batch still takes. By bytes, where headers count too, it is not topped up.
fn room(limit: Limit, open: &Batch) -> Option<NonZeroUsize> {
    match limit {
        Limit::Items(max) => NonZeroUsize::new(max.get().saturating_sub(open.items)),
        Limit::Bytes(_) => None,
    }
}

#[cfg(test)]
mod tests;
