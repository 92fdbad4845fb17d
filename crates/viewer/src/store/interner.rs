//! Interns the values that chunks share.

use std::{collections::HashMap, hash::Hash, sync::Arc};

pub(super) trait HeapSize {
    /// In bytes, with everything that it points to.
    fn heap_size(&self) -> usize;
}

/// Memory of a table entry beside its value: the two pointers of the handle, a use count, the reference counts
/// of the value, and the table's spare room.
const ENTRY_OVERHEAD_BYTES: usize = 96;

/// Values with the number of chunks that use them.
#[derive(Debug)]
pub(super) struct Interner<T: ?Sized + Eq + Hash> {
    values: HashMap<Arc<T>, usize>,
    bytes: usize,
}

impl<T: ?Sized + Eq + Hash> Default for Interner<T> {
    fn default() -> Self {
        Self { values: HashMap::new(), bytes: 0 }
    }
}

impl<T: ?Sized + Eq + Hash + HeapSize> Interner<T> {
    pub(super) fn used_bytes(&self) -> usize {
        self.bytes
    }

    /// The memory that a value takes if it is new.
    pub(super) fn entry_cost(value: &T) -> usize {
        value.heap_size() + ENTRY_OVERHEAD_BYTES
    }

    /// The interned value, for one more chunk.
    pub(super) fn acquire(&mut self, value: &Arc<T>) -> Arc<T> {
        if let Some((kept, _)) = self.values.get_key_value(value) {
            let kept = kept.clone();
            self.values.entry(kept.clone()).and_modify(|count| *count += 1);
            return kept;
        }
        self.bytes += Self::entry_cost(value);
        self.values.insert(value.clone(), 1);
        value.clone()
    }

    /// Releases a value for a chunk that was evicted.
    pub(super) fn release(&mut self, value: &Arc<T>) {
        let Some(count) = self.values.get_mut(value) else { return };
        *count -= 1;
        if *count == 0 {
            self.values.remove(value);
            self.bytes -= Self::entry_cost(value);
        }
    }
}
