//! Names and labels of everything that the operator makes, in one place.

use std::collections::BTreeMap;

/// Who owns the fields of what is made.
pub const MANAGER: &str = "kubewake-operator";
/// The label by which everything that the operator made is found again.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The label that tells one part of the layer from the other.
pub const NAME: &str = "app.kubernetes.io/name";
/// The label of what belongs to the collector layer.
pub const PART_OF: &str = "app.kubernetes.io/part-of";
/// The annotation with the hash of what was applied last.
pub const APPLIED: &str = "telemetry.kubewake.io/applied";
/// The annotation of a pod that says which document it is about to get: a change of it hastens the kubelet.
pub const DOCUMENT: &str = "telemetry.kubewake.io/document";

/// The Deployment that takes everything, and what goes with it.
pub const GATEWAY: &str = "kubewake-gateway";
/// The StatefulSet that decides about whole traces, and what goes with it.
pub const STICKY: &str = "kubewake-sticky";
/// The Service that senders know.
pub const OTLP: &str = "kubewake-otlp";
/// The Service that shows the collectors' metrics.
pub const METRICS: &str = "kubewake-metrics";
/// The Lease of whoever leads.
pub const LEASE: &str = "kubewake-operator";

/// The labels of an object of the layer.
pub fn labels(name: &str) -> BTreeMap<String, String> {
    let mut labels = selector(name);
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels.insert(PART_OF.to_owned(), "kubewake".to_owned());
    labels
}

/// The labels by which pods are selected, which never change.
pub fn selector(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(NAME.to_owned(), name.to_owned())])
}

/// Selects everything that the operator made.
pub fn managed() -> String {
    format!("{MANAGED_BY}={MANAGER}")
}
