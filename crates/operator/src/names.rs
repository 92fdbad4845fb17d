//! Names and labels of everything that the operator makes, in one place.

use std::collections::BTreeMap;

/// Who owns the fields of what is made.
pub const MANAGER: &str = "kubewake-operator";
/// Who owns the number of the gateway's replicas until the autoscaler writes it. What [`MANAGER`] owns and does not ask for any more would be reset to 1.
pub const REPLICAS_MANAGER: &str = "kubewake-operator-replicas";
/// The label that tells people who made an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The label that says what an object is for: the layer, or a lock.
pub const PART: &str = "telemetry.kubewake.io/part";
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
/// The ConfigMap that owns everything else of the layer, and is owned by the pipelines that it is for.
pub const LAYER: &str = "kubewake-layer";
/// The Service that senders know.
pub const OTLP: &str = "kubewake-otlp";
/// The Service that shows the collectors' metrics.
pub const METRICS: &str = "kubewake-metrics";
/// The Lease of whoever leads.
pub const LEASE: &str = "kubewake-operator";

/// What an object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It is part of the collector layer, and goes when nobody asks for it any more.
    Layer,
    /// It says who holds slots.
    Lock,
    /// It says what a pipeline was when it was valid the last time.
    Kept,
}

impl Part {
    /// The value of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Layer => "layer",
            Self::Lock => "lock",
            Self::Kept => "kept",
        }
    }
}

/// The labels of an object that the operator makes.
pub fn labels(name: &str, part: Part) -> BTreeMap<String, String> {
    let mut labels = selector(name);
    labels.insert(PART.to_owned(), part.as_str().to_owned());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels.insert(PART_OF.to_owned(), "kubewake".to_owned());
    labels
}

/// The labels by which pods are selected, which never change.
pub fn selector(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(NAME.to_owned(), name.to_owned())])
}

/// Selects everything that the operator made.
pub fn made() -> String {
    PART.to_owned()
}

/// The labels of every collector's pod, whichever tier it is of.
pub fn collectors() -> BTreeMap<String, String> {
    BTreeMap::from([("app.kubernetes.io/component".to_owned(), "collector".to_owned())])
}

/// Selects the pods of collectors.
pub fn of_collectors() -> String {
    collectors().into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}
