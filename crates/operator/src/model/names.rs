//! Names and labels of all objects that the operator creates.

use std::collections::BTreeMap;

pub const FIELD_MANAGER: &str = "kubewake-operator";
/// The field manager for the gateway's `replicas` until the autoscaler writes it. If [`FIELD_MANAGER`] owned
/// the field and no longer applied it, it would be reset to 1.
pub const REPLICAS_MANAGER: &str = "kubewake-operator-replicas";
/// The label that tells people which program created an object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The label for the purpose of an object; its values are those of [`ManagedPart`].
pub const PART_LABEL: &str = "telemetry.kubewake.io/part";
/// The label that distinguishes the components of the layer.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";
/// The label of all objects of the collector layer.
pub const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";
/// The annotation with the hash of the object that was applied last.
pub const APPLIED_HASH_ANNOTATION: &str = "telemetry.kubewake.io/applied";
/// The annotation of a pod with the hash of its desired document. A change of it makes the kubelet update the
/// volume.
pub const DOCUMENT_ANNOTATION: &str = "telemetry.kubewake.io/document";

/// The Deployment of the collectors that receive, and its related objects.
pub const GATEWAY: &str = "kubewake-gateway";
/// The StatefulSet of the collectors that sample whole traces, and its related objects.
pub const STICKY: &str = "kubewake-sticky";
/// The DaemonSet of the collectors on the nodes, which read logs of containers, and its related objects. All of
/// them but the rights are in a namespace of their own.
pub const AGENT: &str = kubewake_api::render::AGENT_NAME;
/// The namespace of the collectors on the nodes, which is part of the manifests.
pub const AGENT_NAMESPACE: &str = kubewake_api::render::AGENT_NAMESPACE;
/// The anchor: a ConfigMap that owns all other objects of the layer in its namespace, and is owned by pipelines.
pub const LAYER_CONFIG_MAP: &str = "kubewake-layer";
/// The Service that senders use.
pub const OTLP_SERVICE: &str = "kubewake-otlp";
/// The Service for the collectors' metrics.
pub const METRICS_SERVICE: &str = "kubewake-metrics";
/// The Lease of the leading operator.
pub const LEASE_NAME: &str = "kubewake-operator";
/// The name of the document's file.
pub const CONFIG_FILE: &str = "collector.yaml";

/// The purpose of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedPart {
    /// Part of the collector layer, deleted when it is no longer needed.
    Layer,
    /// A lock, whose owners hold slots.
    Lock,
    /// The last valid spec of a pipeline.
    LastValid,
}

impl ManagedPart {
    /// The value of the label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Layer => "layer",
            Self::Lock => "lock",
            Self::LastValid => "kept",
        }
    }
}

/// A tier of collectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CollectorTier {
    Gateway,
    /// The collectors in which whole traces wait.
    Sticky,
    /// The collectors on the nodes.
    Agent,
}

impl CollectorTier {
    pub const ALL: [Self; 3] = [Self::Gateway, Self::Sticky, Self::Agent];

    /// The name of the tier's workload and document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => GATEWAY,
            Self::Sticky => STICKY,
            Self::Agent => AGENT,
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.name() == name)
    }
}

/// The labels of an object that the operator creates.
pub fn managed_labels(name: &str, part: ManagedPart) -> BTreeMap<String, String> {
    let mut labels = selector_labels(name);
    labels.insert(PART_LABEL.to_owned(), part.as_str().to_owned());
    labels.insert(MANAGED_BY_LABEL.to_owned(), FIELD_MANAGER.to_owned());
    labels.insert(PART_OF_LABEL.to_owned(), "kubewake".to_owned());
    labels
}

/// The labels by which pods are selected, which never change.
pub fn selector_labels(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(NAME_LABEL.to_owned(), name.to_owned())])
}

/// Selects all objects that the operator created.
pub fn managed_selector() -> String {
    PART_LABEL.to_owned()
}

/// The labels of every collector's pod, of any tier.
pub fn collector_labels() -> BTreeMap<String, String> {
    BTreeMap::from([("app.kubernetes.io/component".to_owned(), "collector".to_owned())])
}

pub fn collector_selector() -> String {
    collector_labels().into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}
