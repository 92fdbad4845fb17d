//! The labels of an exporter without `labels`.

use super::label_name;
use crate::name_template::NameTemplate;

/// The attributes of the resource that become labels by default: those of Loki's own OTLP endpoint, without the ones
/// that differ between the pods of a workload. Thirteen labels leave room for two of Loki's own limit of fifteen.
const DEFAULT_LABEL_ATTRIBUTES: [&str; 13] = [
    "cloud.availability_zone",
    "cloud.region",
    "container.name",
    "deployment.environment.name",
    "k8s.cluster.name",
    "k8s.container.name",
    "k8s.cronjob.name",
    "k8s.daemonset.name",
    "k8s.deployment.name",
    "k8s.namespace.name",
    "k8s.statefulset.name",
    "service.name",
    "service.namespace",
];

pub(super) fn labels() -> Vec<(String, NameTemplate)> {
    let label = |key: &&str| (label_name::from_attribute(key), NameTemplate::from_attribute(*key));
    DEFAULT_LABEL_ATTRIBUTES.iter().map(label).collect()
}
