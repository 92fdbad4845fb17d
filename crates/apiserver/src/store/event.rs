//! What happened to an object.

use std::{mem::size_of, sync::Arc};

use super::Stored;

/// One write, as watchers see it. All watchers share it.
#[derive(Clone, Debug)]
pub struct Event {
    /// What was done.
    pub kind: EventKind,
    /// The object after the write; for a deletion its last state, with the deletion's revision.
    pub object: Arc<Stored>,
    /// What was there before the write.
    pub previous: Option<Arc<Stored>>,
    /// The revision of the write.
    pub revision: u64,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

impl EventKind {
    /// As in a watch's `type`.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
        }
    }
}

impl Event {
    /// What the history alone holds because of this event: the version that it replaced and, for a deletion, the last state. The new
    /// version is charged to the event that replaces it; until then the collection holds it.
    pub(super) fn charge(&self) -> usize {
        // The event in its `Arc`, and its slots in the collection's history and in the order of all.
        const OWN: usize = size_of::<Event>() + 4 * size_of::<usize>();
        let previous = self.previous.as_ref().map_or(0, |previous| previous.size());
        let last = if self.kind == EventKind::Deleted { self.object.size() } else { 0 };
        OWN + previous + last
    }
}
