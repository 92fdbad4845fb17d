//! Who sent spans, and what they are called.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::store::Snapshot;

/// A service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// How many spans of it there are.
    pub spans: usize,
    /// The names of its spans, with the kinds that they have.
    pub operations: BTreeMap<String, BTreeSet<u8>>,
}

/// All services by name.
pub fn services(snapshot: &Snapshot) -> BTreeMap<String, Service> {
    let mut counts: HashMap<(&str, &str, u8), usize> = HashMap::new();
    for span in snapshot.traces.iter().flat_map(|trace| trace.spans()) {
        *counts.entry((span.service(), span.name(), span.entry.kind)).or_default() += 1;
    }
    let mut services: BTreeMap<String, Service> = BTreeMap::new();
    for ((service, operation, kind), spans) in counts {
        let service = services.entry(service.to_owned()).or_default();
        service.spans += spans;
        service.operations.entry(operation.to_owned()).or_default().insert(kind);
    }
    services
}
