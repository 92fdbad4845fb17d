//! What a collector's container requests, and what it may use.

use std::collections::BTreeMap;

use kubewake_api::v1alpha1::Resources;

/// What one of the gateway may use at most.
pub(super) const GATEWAY_MEMORY: &str = "512Mi";
/// What one of the sticky tier may use at most: traces wait there, in memory.
pub(super) const STICKY_MEMORY: &str = "1Gi";

/// What a container requests, and what it may use.
pub(super) struct Amounts {
    pub(super) requests: BTreeMap<String, String>,
    pub(super) limits: BTreeMap<String, String>,
}

impl Amounts {
    /// What is not said is by default. There is no limit of CPU: it would slow down collectors on a node that has nothing else to do.
    pub(super) fn new(said: &Resources, memory: &str) -> Self {
        let amount = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let mut requests = BTreeMap::from([amount("cpu", "100m"), amount("memory", "128Mi")]);
        let mut limits = BTreeMap::from([amount("memory", memory)]);
        requests.extend(said.requests.iter().map(|(key, value)| amount(key, &value.0)));
        limits.extend(said.limits.iter().map(|(key, value)| amount(key, &value.0)));
        Self { requests, limits }
    }
}
