//! Searches for traces.

use std::{cmp::Reverse, sync::Arc};

use super::TraceFilter;
use crate::store::{StoreSnapshot, StoredTrace};

#[derive(Clone, Debug)]
pub struct SearchResults {
    /// The newest traces, up to the limit.
    pub traces: Vec<Arc<StoredTrace>>,
    pub matched: usize,
}

pub fn search(snapshot: &StoreSnapshot, filter: &TraceFilter, limit: usize) -> SearchResults {
    let newest = |trace: &&Arc<StoredTrace>| Reverse((trace.start(), trace.id));
    let mut matching: Vec<&Arc<StoredTrace>> = snapshot.traces.iter().filter(|trace| filter.matches(trace)).collect();
    let matched = matching.len();
    if limit > 0 && limit < matched {
        // Only the traces that are returned are sorted.
        matching.select_nth_unstable_by_key(limit, newest);
    }
    matching.truncate(limit);
    matching.sort_unstable_by_key(newest);
    SearchResults { traces: matching.into_iter().cloned().collect(), matched }
}
