//! Events: the changes of objects.

use std::{mem::size_of, sync::Arc};

use super::Stored;

/// One write, as all watchers share it.
#[derive(Clone, Debug)]
pub struct StoreEvent {
    pub kind: EventKind,
    /// The object after the write; for a deletion its last state, with the deletion's revision.
    pub object: Arc<Stored>,
    /// The object before the write.
    pub previous: Option<Arc<Stored>>,
    /// The revision of the write.
    pub revision: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

impl EventKind {
    /// The `type` of a watch event.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
        }
    }
}

impl StoreEvent {
    /// The memory that the history alone holds because of this event: the version that it replaced and, for a
    /// deletion, the last state. The new version is charged to the event that replaces it; until then the
    /// collection holds it.
    pub(super) fn history_cost(&self) -> usize {
        // The event in its `Arc`, and its slots in the collection's history and in the global order.
        const OWN: usize = size_of::<StoreEvent>() + 4 * size_of::<usize>();
        let previous = self.previous.as_ref().map_or(0, |previous| previous.memory_size());
        let last = if self.kind == EventKind::Deleted { self.object.memory_size() } else { 0 };
        OWN + previous + last
    }
}
