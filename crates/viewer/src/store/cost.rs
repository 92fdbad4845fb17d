//! What spans take in the store, and how many of them fit.

use std::collections::HashSet;

use super::{
    Chunk, Entry, Object, Origin,
    arrival::Draft,
    intern::{Interner, Weigh},
};

/// What a trace takes beside itself: its places in two tables, with their spare room.
pub(super) const SLOT: usize = 256;
/// What is remembered of a span to know it again, with the table's spare room.
const SEEN: usize = 40;
/// A chunk without anything, with the counters in front of it and the pointer to it.
const EMPTY: usize = std::mem::size_of::<Chunk>() + 32;
/// A mark.
const MARK: usize = 4;
/// The place of a value in the tables of a chunk.
const POINTER: usize = 8;
/// The same of a name, which has a length beside it.
const NAME_POINTER: usize = 16;

/// What a draft takes as a chunk.
pub(super) struct Cost {
    /// By itself.
    pub(super) own: usize,
    /// The values in its tables, if no other chunk has them.
    pub(super) shared: usize,
}

impl Cost {
    pub(super) fn of(draft: &Draft) -> Self {
        let places = (draft.origins.len() + draft.objects.len()) * POINTER + draft.names.len() * NAME_POINTER;
        let origins: usize = draft.origins.iter().map(|origin| Interner::cost(&**origin)).sum();
        let names: usize = draft.names.iter().map(|name| Interner::cost(&**name)).sum();
        let objects: usize = draft.objects.iter().map(|object| Interner::cost(&**object)).sum();
        let spans: usize = draft.entries.iter().map(of_span).sum();
        Self { own: EMPTY + draft.marks.len() * MARK + places + spans, shared: origins + names + objects }
    }

    pub(super) fn at_most(&self) -> usize {
        self.own + self.shared
    }
}

fn of_span(entry: &Entry) -> usize {
    entry.length as usize + std::mem::size_of::<Entry>() + SEEN
}

/// Which spans of a draft fit into so many places and bytes, each with what it needs beside those before it. What comes behind a span has no part in
/// whether it fits: of a larger request never fewer are kept.
pub(super) fn fitting(draft: &Draft, places: usize, room: usize) -> Vec<bool> {
    let mut tally = Tally::default();
    let (mut places, mut room) = (places, room.saturating_sub(EMPTY));
    let fits = |entry: &Entry| {
        let needed = of_span(entry);
        // Most of what comes when there is no room is known not to fit without a look at what it says.
        if places == 0 || needed > room {
            return false;
        }
        let marks = draft.marks_of(entry);
        let Some(left) = room.checked_sub(needed + tally.cost(draft, entry, &marks)) else { return false };
        tally.add(entry, marks);
        (places, room) = (places - 1, left);
        true
    };
    draft.entries.iter().map(fits).collect()
}

/// What is in the tables already.
#[derive(Default)]
struct Tally {
    origins: HashSet<u32>,
    names: HashSet<u32>,
    objects: HashSet<u32>,
    marks: HashSet<u32>,
}

impl Tally {
    /// What a span adds to them. Its marks are each there once.
    fn cost(&self, draft: &Draft, entry: &Entry, marks: &[u32]) -> usize {
        let origin = draft.origins.get(entry.origin as usize).filter(|_| !self.origins.contains(&entry.origin));
        let name = draft.names.get(entry.name as usize).filter(|_| !self.names.contains(&entry.name));
        let object = draft.objects.get(entry.object as usize).filter(|_| !self.objects.contains(&entry.object));
        origin.map_or(0, |origin| Interner::cost(&**origin) + POINTER)
            + name.map_or(0, |name| Interner::cost(&**name) + NAME_POINTER)
            + object.map_or(0, |object| Interner::cost(&**object) + POINTER)
            + marks.iter().filter(|mark| !self.marks.contains(mark)).count() * MARK
    }

    fn add(&mut self, entry: &Entry, marks: Vec<u32>) {
        self.origins.insert(entry.origin);
        self.names.insert(entry.name);
        self.objects.insert(entry.object);
        self.marks.extend(marks);
    }
}

impl Weigh for str {
    fn weight(&self) -> usize {
        self.len()
    }
}

impl Weigh for Origin {
    fn weight(&self) -> usize {
        let parts = [&self.resource, &self.scope, &self.resource_schema, &self.scope_schema].map(|part| part.len());
        std::mem::size_of::<Self>() + parts.iter().sum::<usize>() + self.service.len() + self.marks.len() * MARK
    }
}

impl Weigh for Object {
    fn weight(&self) -> usize {
        let parts = [&self.kind, &self.namespace, &self.name, &self.api_version, &self.uid].map(|part| part.capacity());
        std::mem::size_of::<Self>() + parts.iter().sum::<usize>()
    }
}
