//! The `k8s_attributes` processor.

mod encode;
mod settings;

use std::{path::PathBuf, time::Duration};

use kubewake_otlp::Signal;

use crate::{
    RegexPattern,
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport},
    encode::YamlMap,
    service_account::ServiceAccountFiles,
};

/// `k8s_attributes`, `k8sattributes`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesAttributesProcessor {
    /// `auth_type`, with `context` and `kube_config_path`
    pub auth: ClusterAuth,
    /// No setting: where a pod has its credentials.
    pub service_account: ServiceAccountFiles,
    /// `passthrough`: only the address of the sender is written, and no cluster is asked.
    pub passthrough: bool,
    pub metadata: Vec<Field>,
    pub labels: Vec<FieldExtract>,
    /// `extract: annotations`, and what `otel_annotations` stands for
    pub annotations: Vec<FieldExtract>,
    /// `extract: deployment_name_from_replicaset`: derived from the name alone, without a lookup of
    /// ReplicaSets.
    pub deployment_by_name: bool,
    pub filter: PodFilter,
    /// `pod_association`: each a list of sources that must agree; if empty, the defaults apply.
    pub associations: Vec<Vec<AssociationSource>>,
    /// `exclude: pods`: names of pods that are ignored.
    pub exclude: Vec<RegexPattern>,
    /// `wait_for_metadata`, for `wait_for_metadata_timeout` at most.
    pub wait: Option<Duration>,
    /// `pod_delete_grace_period`: how long a deleted pod is remembered.
    pub grace: Duration,
    /// `verify_senders`: the sender's pod is determined by its address, not by its own attributes.
    pub verify_senders: Option<VerifySenders>,
}

impl Default for KubernetesAttributesProcessor {
    fn default() -> Self {
        // The Collector's default, which dates from Jaeger's agent.
        let exclude = ["jaeger-agent", "jaeger-collector"];
        Self {
            auth: ClusterAuth::default(),
            service_account: ServiceAccountFiles::default(),
            passthrough: false,
            metadata: Field::DEFAULT_FIELDS.to_vec(),
            labels: Vec::new(),
            annotations: Vec::new(),
            deployment_by_name: true,
            filter: PodFilter::default(),
            associations: Vec::new(),
            exclude: exclude.iter().filter_map(|name| RegexPattern::new(name).ok()).collect(),
            wait: None,
            grace: Duration::from_secs(120),
            verify_senders: None,
        }
    }
}

impl KubernetesAttributesProcessor {
    /// `wait_for_metadata_timeout`, if it is not set.
    pub const DEFAULT_WAIT: Duration = Duration::from_secs(10);
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VerifySenders {
    /// `trusted_relays`: pods that forward data of others, and are trusted to name the sender.
    pub trusted_relays: Vec<RelayServiceAccount>,
}

/// Pods that run under one ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayServiceAccount {
    pub namespace: String,
    pub service_account: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ClusterAuth {
    None,
    #[default]
    ServiceAccount,
    KubeConfig {
        path: Option<PathBuf>,
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
            pub const ALL: &'static [Field] = &[$(Field::$variant),+];

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
    /// The attributes that are extracted by default.
    pub const DEFAULT_FIELDS: &'static [Field] = &[
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
pub struct FieldExtract {
    /// `tag_name`; `None`: a name made from the key. With a pattern it may refer to groups.
    pub tag: Option<String>,
    pub key: ExtractKey,
    pub from: ExtractFrom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtractKey {
    Exact(String),
    /// `key_regex`, which matches the whole key.
    Matching(RegexPattern),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // The names are Kubernetes' own.
pub enum ExtractFrom {
    Pod,
    Namespace,
    Node,
    Deployment,
    StatefulSet,
    DaemonSet,
    Job,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PodFilter {
    pub node: Option<String>,
    pub node_from_env_var: Option<String>,
    pub namespace: Option<String>,
    pub fields: String,
    pub labels: String,
}

/// A source of the sender's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssociationSource {
    /// `connection`: the address of the sender.
    Connection,
    /// `resource_attribute`: the value of this attribute.
    Attribute(String),
}

impl ComponentSettings for KubernetesAttributesProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        settings::decode(at, report)
    }

    fn encode(&self) -> YamlMap {
        encode::settings(self)
    }
}

impl ProcessorSettings for KubernetesAttributesProcessor {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }
}
