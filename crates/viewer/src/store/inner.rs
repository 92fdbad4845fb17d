//! What is behind the lock of a store.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use kubewake_otlp::wire::Fields;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    Added, Arrival, Arrived, Chunk, Entry, Figures, Limits, Object, Origin, Snapshot, Trace, TraceId,
    arrival::Draft,
    cost::{Cost, SLOT, fitting},
    intern::Interner,
};

/// One trace takes at most this share of the memory.
const TRACE_SHARE: usize = 4;
/// Traces that were refused are counted once, and so many of them are remembered: one that is too large comes in many requests.
const REFUSED: usize = 256;

#[derive(Debug)]
pub(super) struct Inner {
    limits: Limits,
    traces: HashMap<TraceId, Slot>,
    /// By the version in which they grew last.
    order: BTreeMap<u64, TraceId>,
    names: Interner<str>,
    origins: Interner<Origin>,
    objects: Interner<Object>,
    /// Without what is interned.
    bytes: usize,
    version: u64,
    /// Spans that were kept since the start.
    kept: u64,
    /// The last traces of which nothing fit.
    refused: VecDeque<TraceId>,
    figures: Figures,
}

#[derive(Debug)]
struct Slot {
    trace: Arc<Trace>,
    /// The spans that are here, each with a hash of what it says: an id that was given twice has several.
    seen: HashSet<(u64, u64)>,
}

impl Inner {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            traces: HashMap::new(),
            order: BTreeMap::new(),
            names: Interner::default(),
            origins: Interner::default(),
            objects: Interner::default(),
            bytes: 0,
            version: 0,
            kept: 0,
            refused: VecDeque::with_capacity(REFUSED),
            figures: Figures::default(),
        }
    }

    pub(super) fn add(&mut self, arrival: Arrival, now: u64) -> (Added, Vec<Arrived>, u64) {
        let (mut added, mut all) = (Added::default(), Vec::new());
        self.figures.invalid_spans += arrival.invalid;
        added.rejected.invalid = arrival.invalid;
        for (id, mut draft) in arrival.drafts {
            added.traces.push(id);
            let before = self.kept;
            self.figures.received_spans += draft.entries.len() as u64;
            self.leave_out_known(id, &mut draft);
            if draft.entries.is_empty() {
                continue;
            }
            let surplus = self.leave_out_surplus(id, &mut draft);
            added.rejected.surplus += surplus;
            if let Some(chunk) = self.grow(id, draft, surplus, now) {
                added.spans += chunk.entries.len();
                self.kept += chunk.entries.len() as u64;
                all.push(Arrived { trace: id, chunk, before });
            }
        }
        (added, all, self.version)
    }

    /// Adds spans to a trace, if any fits, and counts those that had to be left out.
    fn grow(&mut self, id: TraceId, draft: Draft, surplus: u64, now: u64) -> Option<Arc<Chunk>> {
        self.figures.refused_spans += surplus;
        if draft.entries.is_empty() && !self.traces.contains_key(&id) {
            self.note_refused(id);
            return None;
        }
        self.touch(id, now);
        let slot = self.traces.get_mut(&id)?;
        Arc::make_mut(&mut slot.trace).cut += surplus;
        if draft.entries.is_empty() {
            return None;
        }
        let cost = Cost::of(&draft);
        self.make_room(cost.at_most());
        let slot = self.traces.get_mut(&id)?;
        slot.seen.extend(draft.entries.iter().map(|entry| (entry.id, fingerprint(draft.span(entry)))));
        let chunk = Arc::new(self.seal(draft));
        let slot = self.traces.get_mut(&id)?;
        Arc::make_mut(&mut slot.trace).push(chunk.clone(), cost.own, cost.shared);
        self.bytes += cost.own;
        self.figures.spans += chunk.entries.len();
        Some(chunk)
    }

    fn note_refused(&mut self, id: TraceId) {
        if self.refused.contains(&id) {
            return;
        }
        self.refused.truncate(REFUSED - 1);
        self.refused.push_front(id);
        self.figures.refused_traces += 1;
    }

    /// Senders repeat what they are not sure of.
    fn leave_out_known(&self, id: TraceId, draft: &mut Draft) {
        let slot = self.traces.get(&id);
        let mut here = HashSet::new();
        let mut is_new = |entry: &Entry, span: &[u8]| {
            let print = (entry.id, fingerprint(span));
            !slot.is_some_and(|slot| slot.seen.contains(&print)) && here.insert(print)
        };
        let new = draft.entries.iter().map(|entry| is_new(entry, draft.span(entry))).collect::<Vec<_>>();
        if new.contains(&false) {
            let mut new = new.into_iter();
            draft.retain(|_, _| new.next().unwrap_or_default());
        }
    }

    /// A trace that never ends must not push out all the others. Says how many of its spans had to go.
    fn leave_out_surplus(&self, id: TraceId, draft: &mut Draft) -> u64 {
        let slot = self.traces.get(&id);
        let (spans, weight) =
            slot.map_or((0, std::mem::size_of::<Trace>()), |slot| (slot.trace.spans, slot.trace.weight()));
        let room = (self.limits.bytes / TRACE_SHARE).saturating_sub(weight + SLOT);
        let places = self.limits.trace_spans.saturating_sub(spans);
        let sent = draft.entries.len();
        if sent > places || Cost::of(draft).at_most() > room {
            let mut fits = fitting(draft, places, room).into_iter();
            draft.retain(|_, _| fits.next().unwrap_or_default());
        }
        (sent - draft.entries.len()) as u64
    }

    /// Makes a trace the one that grew last.
    fn touch(&mut self, id: TraceId, now: u64) {
        self.version += 1;
        if !self.traces.contains_key(&id) {
            let trace = Trace::new(id, now);
            self.make_room(trace.bytes + SLOT);
            self.bytes += trace.bytes + SLOT;
            self.traces.insert(id, Slot { trace: Arc::new(trace), seen: HashSet::new() });
        }
        if let Some(slot) = self.traces.get_mut(&id) {
            let trace = Arc::make_mut(&mut slot.trace);
            self.order.remove(&trace.version);
            trace.version = self.version;
            self.order.insert(self.version, id);
        }
    }

    /// Lets the traces go that were quiet for longest, until there is room.
    pub(super) fn make_room(&mut self, bytes: usize) {
        while self.used() + bytes > self.limits.bytes {
            let Some((_, id)) = self.order.pop_first() else { return };
            self.drop_trace(id);
        }
    }

    fn drop_trace(&mut self, id: TraceId) {
        let Some(slot) = self.traces.remove(&id) else { return };
        self.bytes -= slot.trace.bytes + SLOT;
        self.figures.spans -= slot.trace.spans;
        self.figures.dropped_traces += 1;
        self.figures.dropped_spans += slot.trace.spans as u64;
        for chunk in &slot.trace.chunks {
            chunk.names.iter().for_each(|name| self.names.release(name));
            chunk.origins.iter().for_each(|origin| self.origins.release(origin));
            chunk.objects.iter().for_each(|object| self.objects.release(object));
        }
    }

    fn seal(&mut self, draft: Draft) -> Chunk {
        Chunk {
            bytes: draft.bytes.into(),
            entries: draft.entries.into(),
            origins: draft.origins.iter().map(|origin| self.origins.acquire(origin)).collect(),
            names: draft.names.iter().map(|name| self.names.acquire(name)).collect(),
            objects: draft.objects.iter().map(|object| self.objects.acquire(object)).collect(),
            marks: draft.marks.into(),
        }
    }

    /// What everything takes.
    fn used(&self) -> usize {
        self.bytes + self.names.bytes() + self.origins.bytes() + self.objects.bytes()
    }

    pub(super) fn trace(&self, id: TraceId) -> Option<Arc<Trace>> {
        self.traces.get(&id).map(|slot| slot.trace.clone())
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.changed_since(0)
    }

    pub(super) fn changed_since(&self, version: u64) -> Snapshot {
        let changed = self.order.range(version.saturating_add(1)..);
        let traces = changed.filter_map(|(_, id)| self.trace(*id)).collect();
        Snapshot { traces, version: self.version, figures: self.figures() }
    }

    pub(super) fn figures(&self) -> Figures {
        let oldest = self.order.first_key_value().and_then(|(_, id)| self.traces.get(id));
        // Whatever a sender's clock says, it did not begin after it came.
        let oldest = oldest.map(|slot| slot.trace.start().min(slot.trace.received));
        Figures { traces: self.traces.len(), bytes: self.used(), limit: self.limits.bytes, oldest, ..self.figures }
    }
}

/// Stands for what a span says, in whatever order its fields are written: one that was exported and comes back is the same.
fn fingerprint(span: &[u8]) -> u64 {
    let said = Fields::new(span).filter(|field| field.value.iter().any(|byte| *byte != 0));
    said.fold(0, |sum: u64, field| sum.wrapping_add(xxh3_64(field.raw)))
}
