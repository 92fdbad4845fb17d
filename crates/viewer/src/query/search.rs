//! Which traces match.

use std::{cmp::Reverse, sync::Arc};

use super::Filter;
use crate::store::{Snapshot, Trace};

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The newest first, as many as were wanted.
    pub traces: Vec<Arc<Trace>>,
    /// How many there are.
    pub matched: usize,
}

/// Looks for traces.
pub fn search(snapshot: &Snapshot, filter: &Filter, limit: usize) -> Found {
    let newest = |trace: &&Arc<Trace>| Reverse((trace.start(), trace.id));
    let mut matching: Vec<&Arc<Trace>> = snapshot.traces.iter().filter(|trace| filter.matches(trace)).collect();
    let matched = matching.len();
    if limit > 0 && limit < matched {
        // Only those that are shown need an order.
        matching.select_nth_unstable_by_key(limit, newest);
    }
    matching.truncate(limit);
    matching.sort_unstable_by_key(newest);
    Found { traces: matching.into_iter().cloned().collect(), matched }
}
