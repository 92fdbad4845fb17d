//! Calls between services.

use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeInclusive,
};

use crate::store::StoreSnapshot;

/// Counts how often a span of one service caused one of another, in traces that began within `when`.
pub fn count_dependencies(snapshot: &StoreSnapshot, when: &RangeInclusive<u64>) -> BTreeMap<(String, String), usize> {
    let mut calls: HashMap<(&str, &str), usize> = HashMap::new();
    for trace in snapshot.traces.iter().filter(|trace| when.contains(&trace.start())) {
        let services: HashMap<u64, &str> = trace.spans().map(|span| (span.entry.id, span.service())).collect();
        for span in trace.spans() {
            let Some(caller) = services.get(&span.entry.parent).filter(|caller| **caller != span.service()) else {
                continue;
            };
            *calls.entry((caller, span.service())).or_default() += 1;
        }
    }
    calls.into_iter().map(|((from, to), count)| ((from.to_owned(), to.to_owned()), count)).collect()
}
