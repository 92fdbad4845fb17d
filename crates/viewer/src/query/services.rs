//! Services with their operations, and the calls between them.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::RangeInclusive,
};

use crate::store::StoreSnapshot;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceOperations {
    pub spans: usize,
    /// Operations with their span kinds.
    pub operations: BTreeMap<String, BTreeSet<u8>>,
}

pub fn list_services(snapshot: &StoreSnapshot) -> BTreeMap<String, ServiceOperations> {
    let mut counts: HashMap<(&str, &str, u8), usize> = HashMap::new();
    for span in snapshot.traces.iter().flat_map(|trace| trace.spans()) {
        *counts.entry((span.service(), span.name(), span.entry.kind)).or_default() += 1;
    }
    let mut services: BTreeMap<String, ServiceOperations> = BTreeMap::new();
    for ((service, operation, kind), spans) in counts {
        let service = services.entry(service.to_owned()).or_default();
        service.spans += spans;
        service.operations.entry(operation.to_owned()).or_default().insert(kind);
    }
    services
}

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
