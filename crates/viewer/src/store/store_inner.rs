//! The state behind the lock of a store.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use kubewake_otlp::wire::WireFields;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    AddedSpans, ArrivedSpans, ChunkEntry, GroupedSpans, SpanSubject, StoreFigures, StoreLimits, StoreSnapshot,
    StoredTrace, TelemetryOrigin, TraceChunk, TraceId,
    chunk_cost::{ChunkCost, TRACE_SLOT_BYTES, select_fitting},
    grouped_spans::ChunkDraft,
    interner::Interner,
};

/// One trace takes at most this fraction of the memory.
const TRACE_SHARE_DIVISOR: usize = 4;
/// How many refused traces are remembered, so that each is counted once: a trace that is too large arrives in
/// many requests.
const MAX_REFUSED_TRACES: usize = 256;

#[derive(Debug)]
pub(super) struct StoreInner {
    limits: StoreLimits,
    traces: HashMap<TraceId, TraceSlot>,
    /// By the version in which they last grew.
    order: BTreeMap<u64, TraceId>,
    names: Interner<str>,
    origins: Interner<TelemetryOrigin>,
    objects: Interner<SpanSubject>,
    bytes: usize,
    version: u64,
    /// Spans stored since the start.
    kept: u64,
    /// The most recent traces of which no span fits.
    refused: VecDeque<TraceId>,
    figures: StoreFigures,
}

#[derive(Debug)]
struct TraceSlot {
    trace: Arc<StoredTrace>,
    /// Ids of the stored spans, each with a hash of its content: an id may have been used twice.
    seen: HashSet<(u64, u64)>,
}

impl StoreInner {
    pub(super) fn new(limits: StoreLimits) -> Self {
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
            refused: VecDeque::with_capacity(MAX_REFUSED_TRACES),
            figures: StoreFigures::default(),
        }
    }

    pub(super) fn add(&mut self, arrival: GroupedSpans, now: u64) -> (AddedSpans, Vec<ArrivedSpans>, u64) {
        let mut added = AddedSpans::default();
        let mut all = Vec::new();
        self.figures.invalid_spans += arrival.invalid;
        added.rejected.invalid = arrival.invalid;
        for (id, mut draft) in arrival.drafts {
            added.traces.push(id);
            let before = self.kept;
            self.figures.received_spans += draft.entries.len() as u64;
            self.drop_duplicates(id, &mut draft);
            if draft.entries.is_empty() {
                continue;
            }
            let surplus = self.drop_surplus(id, &mut draft);
            added.rejected.surplus += surplus;
            if let Some(chunk) = self.add_to_trace(id, draft, surplus, now) {
                added.spans += chunk.entries.len();
                self.kept += chunk.entries.len() as u64;
                all.push(ArrivedSpans { trace: id, chunk, earlier_spans: before });
            }
        }
        (added, all, self.version)
    }

    /// Adds the spans that fit to a trace, and counts the others.
    fn add_to_trace(&mut self, id: TraceId, draft: ChunkDraft, surplus: u64, now: u64) -> Option<Arc<TraceChunk>> {
        self.figures.refused_spans += surplus;
        if draft.entries.is_empty() && !self.traces.contains_key(&id) {
            self.record_refused(id);
            return None;
        }
        self.mark_recent(id, now);
        let slot = self.traces.get_mut(&id)?;
        Arc::make_mut(&mut slot.trace).surplus_spans += surplus;
        if draft.entries.is_empty() {
            return None;
        }
        let cost = ChunkCost::from_draft(&draft);
        self.evict_until(cost.upper_bound());
        let slot = self.traces.get_mut(&id)?;
        slot.seen.extend(draft.entries.iter().map(|entry| (entry.id, fingerprint(draft.span(entry)))));
        let chunk = Arc::new(self.finish_chunk(draft));
        let slot = self.traces.get_mut(&id)?;
        Arc::make_mut(&mut slot.trace).push(chunk.clone(), cost.own, cost.shared);
        self.bytes += cost.own;
        self.figures.spans += chunk.entries.len();
        Some(chunk)
    }

    fn record_refused(&mut self, id: TraceId) {
        if self.refused.contains(&id) {
            return;
        }
        self.refused.truncate(MAX_REFUSED_TRACES - 1);
        self.refused.push_front(id);
        self.figures.refused_traces += 1;
    }

    /// Removes spans that are stored already: senders retry when they get no response.
    fn drop_duplicates(&self, id: TraceId, draft: &mut ChunkDraft) {
        let slot = self.traces.get(&id);
        let mut here = HashSet::new();
        let mut is_new = |entry: &ChunkEntry, span: &[u8]| {
            let print = (entry.id, fingerprint(span));
            !slot.is_some_and(|slot| slot.seen.contains(&print)) && here.insert(print)
        };
        let new = draft.entries.iter().map(|entry| is_new(entry, draft.span(entry))).collect::<Vec<_>>();
        if new.contains(&false) {
            let mut new = new.into_iter();
            draft.retain(|_, _| new.next().unwrap_or_default());
        }
    }

    /// Removes spans beyond the limit of the trace and returns their number. An endless trace must not evict
    /// all others.
    fn drop_surplus(&self, id: TraceId, draft: &mut ChunkDraft) -> u64 {
        let slot = self.traces.get(&id);
        let (spans, weight) = slot
            .map_or((0, std::mem::size_of::<StoredTrace>()), |slot| (slot.trace.spans, slot.trace.standalone_bytes()));
        let room = (self.limits.bytes / TRACE_SHARE_DIVISOR).saturating_sub(weight + TRACE_SLOT_BYTES);
        let places = self.limits.trace_spans.saturating_sub(spans);
        let sent = draft.entries.len();
        if sent > places || ChunkCost::from_draft(draft).upper_bound() > room {
            let mut fits = select_fitting(draft, places, room).into_iter();
            draft.retain(|_, _| fits.next().unwrap_or_default());
        }
        (sent - draft.entries.len()) as u64
    }

    /// Marks a trace as the last one that grew.
    fn mark_recent(&mut self, id: TraceId, now: u64) {
        self.version += 1;
        if !self.traces.contains_key(&id) {
            let trace = StoredTrace::new(id, now);
            self.evict_until(trace.bytes + TRACE_SLOT_BYTES);
            self.bytes += trace.bytes + TRACE_SLOT_BYTES;
            self.traces.insert(id, TraceSlot { trace: Arc::new(trace), seen: HashSet::new() });
        }
        if let Some(slot) = self.traces.get_mut(&id) {
            let trace = Arc::make_mut(&mut slot.trace);
            self.order.remove(&trace.version);
            trace.version = self.version;
            self.order.insert(self.version, id);
        }
    }

    /// Evicts the traces that have not grown for longest, until there is room.
    pub(super) fn evict_until(&mut self, bytes: usize) {
        while self.used_bytes() + bytes > self.limits.bytes {
            let Some((_, id)) = self.order.pop_first() else { return };
            self.drop_trace(id);
        }
    }

    fn drop_trace(&mut self, id: TraceId) {
        let Some(slot) = self.traces.remove(&id) else { return };
        self.bytes -= slot.trace.bytes + TRACE_SLOT_BYTES;
        self.figures.spans -= slot.trace.spans;
        self.figures.dropped_traces += 1;
        self.figures.dropped_spans += slot.trace.spans as u64;
        for chunk in &slot.trace.chunks {
            chunk.names.iter().for_each(|name| self.names.release(name));
            chunk.origins.iter().for_each(|origin| self.origins.release(origin));
            chunk.objects.iter().for_each(|object| self.objects.release(object));
        }
    }

    fn finish_chunk(&mut self, draft: ChunkDraft) -> TraceChunk {
        TraceChunk {
            bytes: draft.bytes.into(),
            entries: draft.entries.into(),
            origins: draft.origins.iter().map(|origin| self.origins.acquire(origin)).collect(),
            names: draft.names.iter().map(|name| self.names.acquire(name)).collect(),
            objects: draft.objects.iter().map(|object| self.objects.acquire(object)).collect(),
            marks: draft.marks.into(),
        }
    }

    fn used_bytes(&self) -> usize {
        self.bytes + self.names.used_bytes() + self.origins.used_bytes() + self.objects.used_bytes()
    }

    pub(super) fn trace(&self, id: TraceId) -> Option<Arc<StoredTrace>> {
        self.traces.get(&id).map(|slot| slot.trace.clone())
    }

    pub(super) fn snapshot(&self) -> StoreSnapshot {
        self.changed_since(0)
    }

    pub(super) fn changed_since(&self, version: u64) -> StoreSnapshot {
        let changed = self.order.range(version.saturating_add(1)..);
        let traces = changed.filter_map(|(_, id)| self.trace(*id)).collect();
        StoreSnapshot { traces, version: self.version, figures: self.figures() }
    }

    pub(super) fn figures(&self) -> StoreFigures {
        let oldest = self.order.first_key_value().and_then(|(_, id)| self.traces.get(id));
        // Whatever the sender's clock says, a trace does not begin after its arrival.
        let oldest = oldest.map(|slot| slot.trace.start().min(slot.trace.received));
        StoreFigures {
            traces: self.traces.len(),
            bytes: self.used_bytes(),
            limit: self.limits.bytes,
            oldest,
            ..self.figures
        }
    }
}

/// A hash of a span that does not depend on the order of its fields: a span that was exported and imported
/// again is the same.
fn fingerprint(span: &[u8]) -> u64 {
    let said = WireFields::new(span).filter(|field| field.value.iter().any(|byte| *byte != 0));
    said.fold(0, |sum: u64, field| sum.wrapping_add(xxh3_64(field.raw)))
}
