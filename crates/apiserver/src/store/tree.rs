//! The objects of a collection in order, with snapshots that cost nothing to take.
//!
//! A sorted list of sorted chunks, both shared: a snapshot copies one pointer, and a write copies a chunk only if a snapshot still
//! holds it. So a reader never makes a writer wait for longer than it takes to copy that pointer.

use std::{cmp::Ordering, sync::Arc};

use super::Stored;
use crate::api::ObjectKey;

/// A chunk is split when it grows beyond this: a copy of it is some hundred nanoseconds.
const CHUNK: usize = 128;

/// The place of an object in its collection. The order is that of etcd, which compares `namespace/name` as one text: `-` and `.`
/// come before `/`, so that `a-b/x` is before `a/x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// The ordered objects. A clone is a snapshot.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// No chunk is empty.
    chunks: Arc<Vec<Chunk>>,
    len: usize,
}

type Chunk = Arc<Vec<Arc<Stored>>>;

/// A position in a tree: the chunk and the index in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position(usize, usize);

impl<'a> Place<'a> {
    pub(super) fn of(key: &'a ObjectKey) -> Self {
        Self { namespace: &key.namespace, name: &key.name }
    }

    /// Reads `namespace/name` or, for cluster-scoped objects, `name`.
    pub(super) fn parse(text: &'a str) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        Self { namespace, name }
    }
}

/// As `parse` reads it.
impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

impl Ord for Place<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            return self.name.cmp(other.name);
        }
        // Two namespaces that differ do so before the end of one of them and its slash.
        self.namespace.bytes().chain([b'/']).cmp(other.namespace.bytes().chain([b'/']))
    }
}

impl PartialOrd for Place<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Tree {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, place: Place<'_>) -> Option<&Arc<Stored>> {
        self.at(self.seek(|other| other < place)).filter(|found| found.place() == place)
    }

    /// What is at a position.
    pub(super) fn at(&self, Position(chunk, index): Position) -> Option<&Arc<Stored>> {
        self.chunks.get(chunk)?.get(index)
    }

    /// The position after another.
    pub(super) fn next(&self, Position(chunk, index): Position) -> Position {
        let in_chunk = self.chunks.get(chunk).is_some_and(|chunk| index + 1 < chunk.len());
        if in_chunk { Position(chunk, index + 1) } else { Position(chunk + 1, 0) }
    }

    /// The first position for which `before` does not hold. It holds up to some place and for nothing after it.
    pub(super) fn seek(&self, before: impl Fn(Place<'_>) -> bool) -> Position {
        let chunk = self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| before(last.place())));
        let index = self.chunks.get(chunk).map_or(0, |chunk| chunk.partition_point(|object| before(object.place())));
        Position(chunk, index)
    }

    /// How many objects come before a position.
    pub(super) fn rank(&self, Position(chunk, index): Position) -> usize {
        self.chunks.iter().take(chunk).map(|chunk| chunk.len()).sum::<usize>() + index
    }

    /// The objects from a position on.
    pub(super) fn iter_from(&self, Position(chunk, index): Position) -> impl Iterator<Item = &Arc<Stored>> {
        let first = self.chunks.get(chunk).and_then(|chunk| chunk.get(index..)).unwrap_or_default();
        let rest = self.chunks.get(chunk + 1..).unwrap_or_default();
        first.iter().chain(rest.iter().flat_map(|chunk| chunk.iter()))
    }

    /// All objects.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.iter_from(Position::default())
    }

    /// Puts an object in its place and gives what was there.
    pub(super) fn insert(&mut self, object: Arc<Stored>) -> Option<Arc<Stored>> {
        let Position(mut at, mut index) = self.seek(|other| other < object.place());
        let chunks = Arc::make_mut(&mut self.chunks);
        if at == chunks.len() {
            match chunks.last() {
                Some(last) => (at, index) = (at - 1, last.len()),
                None => chunks.push(Chunk::default()),
            }
        }
        let chunk = Arc::make_mut(chunks.get_mut(at)?);
        match chunk.get_mut(index) {
            Some(there) if there.place() == object.place() => return Some(std::mem::replace(there, object)),
            _ => chunk.insert(index, object),
        }
        self.len += 1;
        if chunk.len() > CHUNK {
            let upper = chunk.split_off(CHUNK / 2);
            chunks.insert(at + 1, Arc::new(upper));
        }
        None
    }

    /// Takes an object out.
    pub(super) fn remove(&mut self, place: Place<'_>) -> Option<Arc<Stored>> {
        let position = self.seek(|other| other < place);
        self.at(position).filter(|found| found.place() == place)?;
        let Position(at, index) = position;
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(chunks.get_mut(at)?);
        let removed = chunk.remove(index);
        self.len -= 1;
        if chunk.is_empty() {
            chunks.remove(at);
        } else {
            Self::join(chunks, at);
            Self::join(chunks, at.saturating_sub(1));
        }
        Some(removed)
    }

    /// Joins a chunk with the next one if both are small, so that a collection that shrank is not all chunks of one.
    fn join(chunks: &mut Vec<Chunk>, at: usize) {
        let size = |at: usize| chunks.get(at).map(|chunk| chunk.len());
        let (Some(this), Some(next)) = (size(at), size(at + 1)) else { return };
        if this + next <= CHUNK / 4 {
            let next = chunks.remove(at + 1);
            if let Some(this) = chunks.get_mut(at) {
                Arc::make_mut(this).extend(next.iter().cloned());
            }
        }
    }
}

#[cfg(test)]
mod tests;
