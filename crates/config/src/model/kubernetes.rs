//! The `k8s_attributes` processor.

use std::{path::PathBuf, time::Duration};

use crate::Pattern;

/// `k8s_attributes`, `k8sattributes`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesAttributes {
    /// `auth_type`, with `context` and `kube_config_path`
    pub auth: ClusterAuth,
    /// `passthrough`: only the address of the sender is written, and no cluster is asked.
    pub passthrough: bool,
    /// `extract: metadata`
    pub metadata: Vec<Field>,
    /// `extract: labels`
    pub labels: Vec<Extract>,
    /// `extract: annotations`, and what `otel_annotations` stands for
    pub annotations: Vec<Extract>,
    /// `extract: deployment_name_from_replicaset`: by the name alone, without a look at ReplicaSets.
    pub deployment_by_name: bool,
    /// `filter`
    pub filter: PodFilter,
    /// `pod_association`: each a list of sources that must agree; without any the usual ones.
    pub associations: Vec<Vec<Source>>,
    /// `exclude: pods`: names that are passed over.
    pub exclude: Vec<Pattern>,
    /// `wait_for_metadata`, for `wait_for_metadata_timeout` at most.
    pub wait: Option<Duration>,
    /// `pod_delete_grace_period`: how long a pod that is gone is remembered.
    pub grace: Duration,
    /// `verify_senders`: which pod sent something is what its address says, and not what it says itself.
    pub verify_senders: Option<VerifySenders>,
}

/// `verify_senders`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VerifySenders {
    /// `trusted_relays`: pods that forward what others sent, and are believed who that was.
    pub trusted_relays: Vec<TrustedRelay>,
}

/// Pods that run under one ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedRelay {
    /// `namespace`
    pub namespace: String,
    /// `service_account`
    pub service_account: String,
}

/// Who asks the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ClusterAuth {
    /// `none`
    None,
    /// `serviceAccount`
    #[default]
    ServiceAccount,
    /// `kubeConfig`
    KubeConfig {
        /// `kube_config_path`
        path: Option<PathBuf>,
        /// `context`
        context: Option<String>,
    },
}

macro_rules! fields {
    ($($variant:ident => $text:literal),+ $(,)?) => {
        /// An attribute of a pod that can be extracted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // The names are OpenTelemetry's own.
        pub enum Field { $($variant),+ }

        impl Field {
            /// All of them.
            pub const ALL: &'static [Field] = &[$(Field::$variant),+];

            /// The attribute.
            pub const fn name(self) -> &'static str {
                match self { $(Field::$variant => $text),+ }
            }
        }
    };
}

fields! {
    NamespaceName => "k8s.namespace.name",
    PodName => "k8s.pod.name",
    PodUid => "k8s.pod.uid",
    PodHostname => "k8s.pod.hostname",
    PodStartTime => "k8s.pod.start_time",
    PodIp => "k8s.pod.ip",
    DeploymentName => "k8s.deployment.name",
    DeploymentUid => "k8s.deployment.uid",
    ReplicaSetName => "k8s.replicaset.name",
    ReplicaSetUid => "k8s.replicaset.uid",
    DaemonSetName => "k8s.daemonset.name",
    DaemonSetUid => "k8s.daemonset.uid",
    StatefulSetName => "k8s.statefulset.name",
    StatefulSetUid => "k8s.statefulset.uid",
    JobName => "k8s.job.name",
    JobUid => "k8s.job.uid",
    CronJobName => "k8s.cronjob.name",
    CronJobUid => "k8s.cronjob.uid",
    NodeName => "k8s.node.name",
    NodeUid => "k8s.node.uid",
    ClusterUid => "k8s.cluster.uid",
    ContainerName => "k8s.container.name",
    ContainerId => "container.id",
    ContainerImageName => "container.image.name",
    ContainerImageTag => "container.image.tag",
    ContainerImageTags => "container.image.tags",
    ContainerImageRepoDigests => "container.image.repo_digests",
    ServiceNamespace => "service.namespace",
    ServiceName => "service.name",
    ServiceVersion => "service.version",
    ServiceInstanceId => "service.instance.id",
}

impl Field {
    /// Those that are extracted where the document names none.
    pub const USUAL: &'static [Field] = &[
        Field::NamespaceName,
        Field::PodName,
        Field::PodUid,
        Field::PodStartTime,
        Field::DeploymentName,
        Field::NodeName,
        Field::ContainerImageName,
        Field::ContainerImageTag,
    ];
}

/// A label or an annotation to extract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extract {
    /// `tag_name`; `None`: a name made from the key. With a pattern it may refer to groups.
    pub tag: Option<String>,
    /// `key` or `key_regex`
    pub key: ExtractKey,
    /// `from`
    pub from: Owner,
}

/// Which labels or annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtractKey {
    /// `key`
    Exact(String),
    /// `key_regex`, which matches the whole key.
    Matching(Pattern),
}

/// Whose labels and annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // The names are Kubernetes' own.
pub enum Owner {
    Pod,
    Namespace,
    Node,
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
}

/// `filter`: which pods.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PodFilter {
    /// `node`
    pub node: Option<String>,
    /// `node_from_env_var`
    pub node_from_env_var: Option<String>,
    /// `namespace`
    pub namespace: Option<String>,
    /// `fields` as a selector
    pub fields: String,
    /// `labels` as a selector
    pub labels: String,
}

/// What tells which pod sent something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `connection`: the address that it came from.
    Connection,
    /// `resource_attribute`: the value of this one.
    Attribute(String),
}
