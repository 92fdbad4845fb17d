//! The sorted objects of a collection, with constant-time snapshots.
//!
//! The tree is a sorted list of sorted chunks, both shared: a snapshot copies one pointer, and a write copies a
//! chunk only if a snapshot still holds it. So a reader delays a writer no longer than it takes to copy that
//! pointer.

use std::{cmp::Ordering, sync::Arc};

use super::Stored;
use crate::api::ObjectKey;

/// A larger chunk is split: copying one takes some hundred nanoseconds.
const MAX_CHUNK_OBJECTS: usize = 128;

/// The sort key of an object in its collection. The order is that of etcd, which compares `namespace/name` as
/// one text: `-` and `.` come before `/`, so that `a-b/x` is before `a/x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamespacedName<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// The sorted objects. A clone is a snapshot.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectTree {
    /// No chunk is empty.
    chunks: Arc<Vec<ObjectChunk>>,
    len: usize,
}

type ObjectChunk = Arc<Vec<Arc<Stored>>>;

/// A position: the chunk and the index in it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TreePosition(usize, usize);

impl<'a> NamespacedName<'a> {
    pub(super) fn from_key(key: &'a ObjectKey) -> Self {
        Self { namespace: &key.namespace, name: &key.name }
    }

    /// Parses `namespace/name` or, for cluster-scoped objects, `name`.
    pub(super) fn parse(text: &'a str) -> Self {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        Self { namespace, name }
    }
}

impl std::fmt::Display for NamespacedName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

impl Ord for NamespacedName<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.namespace == other.namespace {
            return self.name.cmp(other.name);
        }
        // Two different namespaces differ no later than at the slash that ends one of them.
        self.namespace.bytes().chain([b'/']).cmp(other.namespace.bytes().chain([b'/']))
    }
}

impl PartialOrd for NamespacedName<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ObjectTree {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, place: NamespacedName<'_>) -> Option<&Arc<Stored>> {
        self.get_at(self.seek(|other| other < place)).filter(|found| found.namespaced_name() == place)
    }

    pub(super) fn get_at(&self, TreePosition(chunk, index): TreePosition) -> Option<&Arc<Stored>> {
        self.chunks.get(chunk)?.get(index)
    }

    pub(super) fn next(&self, TreePosition(chunk, index): TreePosition) -> TreePosition {
        let in_chunk = self.chunks.get(chunk).is_some_and(|chunk| index + 1 < chunk.len());
        if in_chunk { TreePosition(chunk, index + 1) } else { TreePosition(chunk + 1, 0) }
    }

    /// The first position for which `before` is false. It must be true up to some position and false from there
    /// on.
    pub(super) fn seek(&self, before: impl Fn(NamespacedName<'_>) -> bool) -> TreePosition {
        let chunk =
            self.chunks.partition_point(|chunk| chunk.last().is_some_and(|last| before(last.namespaced_name())));
        let index =
            self.chunks.get(chunk).map_or(0, |chunk| chunk.partition_point(|object| before(object.namespaced_name())));
        TreePosition(chunk, index)
    }

    /// The number of objects before a position.
    pub(super) fn rank(&self, TreePosition(chunk, index): TreePosition) -> usize {
        self.chunks.iter().take(chunk).map(|chunk| chunk.len()).sum::<usize>() + index
    }

    pub(super) fn iter_from(&self, TreePosition(chunk, index): TreePosition) -> impl Iterator<Item = &Arc<Stored>> {
        let first = self.chunks.get(chunk).and_then(|chunk| chunk.get(index..)).unwrap_or_default();
        let rest = self.chunks.get(chunk + 1..).unwrap_or_default();
        first.iter().chain(rest.iter().flat_map(|chunk| chunk.iter()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.iter_from(TreePosition::default())
    }

    /// Inserts an object and returns the one that it replaces.
    pub(super) fn insert(&mut self, object: Arc<Stored>) -> Option<Arc<Stored>> {
        let TreePosition(mut at, mut index) = self.seek(|other| other < object.namespaced_name());
        let chunks = Arc::make_mut(&mut self.chunks);
        if at == chunks.len() {
            match chunks.last() {
                Some(last) => (at, index) = (at - 1, last.len()),
                None => chunks.push(ObjectChunk::default()),
            }
        }
        let chunk = Arc::make_mut(chunks.get_mut(at)?);
        match chunk.get_mut(index) {
            Some(there) if there.namespaced_name() == object.namespaced_name() => {
                return Some(std::mem::replace(there, object));
            }
            _ => chunk.insert(index, object),
        }
        self.len += 1;
        if chunk.len() > MAX_CHUNK_OBJECTS {
            let upper = chunk.split_off(MAX_CHUNK_OBJECTS / 2);
            chunks.insert(at + 1, Arc::new(upper));
        }
        None
    }

    pub(super) fn remove(&mut self, place: NamespacedName<'_>) -> Option<Arc<Stored>> {
        let position = self.seek(|other| other < place);
        self.get_at(position).filter(|found| found.namespaced_name() == place)?;
        let TreePosition(at, index) = position;
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

    /// Joins a chunk with the next one if both are small, so that a collection that shrank does not end in
    /// chunks of one object.
    fn join(chunks: &mut Vec<ObjectChunk>, at: usize) {
        let size = |at: usize| chunks.get(at).map(|chunk| chunk.len());
        let (Some(this), Some(next)) = (size(at), size(at + 1)) else { return };
        if this + next <= MAX_CHUNK_OBJECTS / 4 {
            let next = chunks.remove(at + 1);
            if let Some(this) = chunks.get_mut(at) {
                Arc::make_mut(this).extend(next.iter().cloned());
            }
        }
    }
}

#[cfg(test)]
mod tests;
