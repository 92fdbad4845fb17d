//! Values that many chunks have in common, kept once.

use std::{collections::HashMap, hash::Hash, sync::Arc};

/// How much memory a value takes where it is.
pub(super) trait Weigh {
    /// In bytes, with what it points at.
    fn weight(&self) -> usize;
}

/// What an entry of the table takes beside its value: the two pointers of the handle, a counter, the counters in front of the value, and the table's own spare room.
const ENTRY: usize = 96;

/// Values with the number of chunks that have them.
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

impl<T: ?Sized + Eq + Hash + Weigh> Interner<T> {
    /// What all of it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What a value takes if it is new.
    pub(super) fn cost(value: &T) -> usize {
        value.weight() + ENTRY
    }

    /// The value that is kept, for one chunk more.
    pub(super) fn acquire(&mut self, value: &Arc<T>) -> Arc<T> {
        if let Some((kept, _)) = self.values.get_key_value(value) {
            let kept = kept.clone();
            self.values.entry(kept.clone()).and_modify(|count| *count += 1);
            return kept;
        }
        self.bytes += Self::cost(value);
        self.values.insert(value.clone(), 1);
        value.clone()
    }

    /// A chunk that had it is gone.
    pub(super) fn release(&mut self, value: &Arc<T>) {
        let Some(count) = self.values.get_mut(value) else { return };
        *count -= 1;
        if *count == 0 {
            self.values.remove(value);
            self.bytes -= Self::cost(value);
        }
    }
}
