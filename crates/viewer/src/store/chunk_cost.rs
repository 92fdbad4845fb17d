//! The memory that spans take in the store, and the selection of those that fit.

use std::collections::HashSet;

use super::{
    ChunkEntry, SpanSubject, TelemetryOrigin, TraceChunk,
    grouped_spans::ChunkDraft,
    interner::{HeapSize, Interner},
};

/// Memory of a trace beside its value: entries in two tables, with their spare room.
pub(super) const TRACE_SLOT_BYTES: usize = 256;
/// Memory to recognise a span that is sent again, with the table's spare room.
const SEEN_SPAN_BYTES: usize = 40;
/// An empty chunk, with its reference counts and the pointer to it.
const EMPTY_CHUNK_BYTES: usize = std::mem::size_of::<TraceChunk>() + 32;
const MARK_BYTES: usize = 4;
/// The pointer to a value in the tables of a chunk.
const POINTER_BYTES: usize = 8;
/// The pointer to a name, which has a length.
const NAME_POINTER_BYTES: usize = 16;

/// The memory that a draft takes as a chunk.
pub(super) struct ChunkCost {
    pub(super) own: usize,
    /// The values in its tables, if no other chunk shares them.
    pub(super) shared: usize,
}

impl ChunkCost {
    pub(super) fn from_draft(draft: &ChunkDraft) -> Self {
        let places =
            (draft.origins.len() + draft.objects.len()) * POINTER_BYTES + draft.names.len() * NAME_POINTER_BYTES;
        let origins: usize = draft.origins.iter().map(|origin| Interner::entry_cost(&**origin)).sum();
        let names: usize = draft.names.iter().map(|name| Interner::entry_cost(&**name)).sum();
        let objects: usize = draft.objects.iter().map(|object| Interner::entry_cost(&**object)).sum();
        let spans: usize = draft.entries.iter().map(span_cost).sum();
        Self {
            own: EMPTY_CHUNK_BYTES + draft.marks.len() * MARK_BYTES + places + spans,
            shared: origins + names + objects,
        }
    }

    pub(super) fn upper_bound(&self) -> usize {
        self.own + self.shared
    }
}

fn span_cost(entry: &ChunkEntry) -> usize {
    entry.length as usize + std::mem::size_of::<ChunkEntry>() + SEEN_SPAN_BYTES
}

/// Selects the spans of a draft that fit into a number of spans and bytes, each with the table values that
/// those before it do not have. Later spans do not affect earlier ones, so a larger request never results in
/// fewer spans.
pub(super) fn select_fitting(draft: &ChunkDraft, places: usize, room: usize) -> Vec<bool> {
    let mut tally = ChargedValues::default();
    let mut places = places;
    let mut room = room.saturating_sub(EMPTY_CHUNK_BYTES);
    let fits = |entry: &ChunkEntry| {
        let needed = span_cost(entry);
        // When there is no room, most spans are ruled out here, without a look at their attributes.
        if places == 0 || needed > room {
            return false;
        }
        let marks = draft.span_marks(entry);
        let Some(left) = room.checked_sub(needed + tally.cost(draft, entry, &marks)) else { return false };
        tally.add(entry, marks);
        (places, room) = (places - 1, left);
        true
    };
    draft.entries.iter().map(fits).collect()
}

/// Table values that are accounted for already.
#[derive(Default)]
struct ChargedValues {
    origins: HashSet<u32>,
    names: HashSet<u32>,
    objects: HashSet<u32>,
    marks: HashSet<u32>,
}

impl ChargedValues {
    /// The table values that a span adds. Its marks are distinct.
    fn cost(&self, draft: &ChunkDraft, entry: &ChunkEntry, marks: &[u32]) -> usize {
        let origin = draft.origins.get(entry.origin as usize).filter(|_| !self.origins.contains(&entry.origin));
        let name = draft.names.get(entry.name as usize).filter(|_| !self.names.contains(&entry.name));
        let object = draft.objects.get(entry.object as usize).filter(|_| !self.objects.contains(&entry.object));
        origin.map_or(0, |origin| Interner::entry_cost(&**origin) + POINTER_BYTES)
            + name.map_or(0, |name| Interner::entry_cost(&**name) + NAME_POINTER_BYTES)
            + object.map_or(0, |object| Interner::entry_cost(&**object) + POINTER_BYTES)
            + marks.iter().filter(|mark| !self.marks.contains(mark)).count() * MARK_BYTES
    }

    fn add(&mut self, entry: &ChunkEntry, marks: Vec<u32>) {
        self.origins.insert(entry.origin);
        self.names.insert(entry.name);
        self.objects.insert(entry.object);
        self.marks.extend(marks);
    }
}

impl HeapSize for str {
    fn heap_size(&self) -> usize {
        self.len()
    }
}

impl HeapSize for TelemetryOrigin {
    fn heap_size(&self) -> usize {
        let parts = [&self.resource, &self.scope, &self.resource_schema, &self.scope_schema].map(|part| part.len());
        std::mem::size_of::<Self>() + parts.iter().sum::<usize>() + self.service.len() + self.marks.len() * MARK_BYTES
    }
}

impl HeapSize for SpanSubject {
    fn heap_size(&self) -> usize {
        let parts = [&self.kind, &self.namespace, &self.name, &self.api_version, &self.uid].map(|part| part.capacity());
        std::mem::size_of::<Self>() + parts.iter().sum::<usize>()
    }
}
