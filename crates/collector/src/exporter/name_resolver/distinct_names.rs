//! A bound on the number of different names.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use kubewake_runtime::lock::Mutex;
use tokio::time::Instant;

/// A name that was not used for this long makes room for another one: workloads come and go.
const IDLE_TIME: Duration = Duration::from_secs(60 * 60);

/// When the table is full, unused names are looked for no more often than this: the walk costs time.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60);

/// The names in use, up to a maximum.
///
/// *Guarantees.* At most so many names are admitted within an hour, and a name that is in use stays admitted. The
/// table holds a keyed hash of each name, so that its memory is bounded too, and a sender cannot make up a name that
/// passes for another one.
#[derive(Debug)]
pub(crate) struct DistinctNames {
    max: usize,
    hasher: RandomState,
    table: Mutex<NameTable>,
}

#[derive(Debug)]
struct NameTable {
    last_used: HashMap<u64, Instant>,
    pruned_at: Option<Instant>,
}

impl DistinctNames {
    /// Admits up to `max` names.
    pub(crate) fn new(max: usize) -> Self {
        let table = NameTable { last_used: HashMap::new(), pruned_at: None };
        Self { max, hasher: RandomState::new(), table: Mutex::new(table) }
    }

    /// Whether a name may be used: it is in use already, or there is room for it.
    pub(crate) fn admit(&self, name: &[u8]) -> bool {
        let hash = self.hasher.hash_one(name);
        let now = Instant::now();
        let mut table = self.table.lock();
        if let Some(last_used) = table.last_used.get_mut(&hash) {
            *last_used = now;
            return true;
        }
        if table.last_used.len() >= self.max {
            table.prune(now);
        }
        let has_room = table.last_used.len() < self.max;
        if has_room {
            table.last_used.insert(hash, now);
        }
        has_room
    }
}

impl NameTable {
    fn prune(&mut self, now: Instant) {
        if self.pruned_at.is_some_and(|at| now.duration_since(at) < PRUNE_INTERVAL) {
            return;
        }
        self.pruned_at = Some(now);
        self.last_used.retain(|_, last_used| now.duration_since(*last_used) < IDLE_TIME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn names_beyond_the_maximum_are_not_admitted_and_those_in_use_stay() {
        let names = DistinctNames::new(2);
        assert!(names.admit(b"a") && names.admit(b"b") && !names.admit(b"c"));
        for _ in 0..3 {
            tokio::time::advance(IDLE_TIME / 2).await;
            assert!(names.admit(b"a"));
        }
        assert!(names.admit(b"c"), "b was not used for more than an hour");
        assert!(!names.admit(b"d") && names.admit(b"a"));
    }

    #[tokio::test(start_paused = true)]
    async fn full_table_is_searched_once_a_minute() {
        let names = DistinctNames::new(1);
        assert!(names.admit(b"a"));
        tokio::time::advance(IDLE_TIME - Duration::from_secs(1)).await;
        assert!(!names.admit(b"b"));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!names.admit(b"b"), "a is idle, and was looked for two seconds ago");
        tokio::time::advance(PRUNE_INTERVAL).await;
        assert!(names.admit(b"b"));
    }
}
