//! The few fields of Kubernetes objects that are read.

use serde::Deserialize;

use crate::kubernetes::{ObjectMetadata, WatchedObject, or_default};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WatchedPod {
    pub(super) metadata: ObjectMetadata,
    pub(super) spec: PodSpec,
    pub(super) status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) node_name: String,
    pub(super) hostname: String,
    pub(super) host_network: bool,
    pub(super) service_account_name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) containers: Vec<ContainerSpec>,
    #[serde(deserialize_with = "or_default")]
    pub(super) init_containers: Vec<ContainerSpec>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerSpec {
    pub(super) name: String,
    pub(super) image: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodStatus {
    #[serde(rename = "podIP")]
    pub(super) pod_ip: String,
    #[serde(rename = "podIPs", deserialize_with = "or_default")]
    pub(super) pod_ips: Vec<PodIp>,
    pub(super) start_time: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "or_default")]
    pub(super) init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodIp {
    pub(super) ip: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ContainerStatus {
    pub(super) name: String,
    #[serde(rename = "containerID")]
    pub(super) container_id: String,
    #[serde(rename = "imageID")]
    pub(super) image_id: String,
    pub(super) restart_count: i64,
}

impl WatchedObject for WatchedPod {
    fn metadata(&self) -> &ObjectMetadata {
        &self.metadata
    }
}

/// An object of which only the metadata is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetadataOnly {
    pub(super) metadata: ObjectMetadata,
}

impl WatchedObject for MetadataOnly {
    fn metadata(&self) -> &ObjectMetadata {
        &self.metadata
    }
}
