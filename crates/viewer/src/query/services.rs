//! Services with their operations.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
