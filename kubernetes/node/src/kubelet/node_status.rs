//! The Node object and its Lease.

use std::{collections::BTreeMap, fs, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{
            ContainerImage, Node as NodeObject, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo,
        },
    },
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::MicroTime},
};
use kube::{
    Api,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{NodeAgent, status::api_time};
use crate::{
    controller::owner_reference,
    error::{ClusterError, Result},
};

/// The kubelet's values: the interval of renewals, and the duration of the Lease.
const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// The status of an unchanged Node is written every five minutes.
const RENEWALS_PER_STATUS_UPDATE: u32 = 30;
/// The reported version of Kubernetes.
const KUBELET_VERSION: &str = "v1.35.8";

/// The capacity of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCapacity {
    /// Thousandths of a CPU.
    pub cpu_millis: u64,
    /// In bytes.
    pub memory_bytes: u64,
    /// The most pods of the node.
    pub pods: u32,
}

impl NodeCapacity {
    /// The capacity of this machine. The number of pods is the kubelet's default.
    pub fn of_this_machine() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { cpu_millis: cpus as u64 * 1000, memory_bytes: total_memory_bytes().unwrap_or(1 << 30), pods: 110 }
    }

    /// The capacity in the form of a Node.
    pub fn quantities(&self) -> BTreeMap<String, Quantity> {
        let cpu = match self.cpu_millis % 1000 {
            0 => (self.cpu_millis / 1000).to_string(),
            _ => format!("{}m", self.cpu_millis),
        };
        let memory = format!("{}Ki", self.memory_bytes / 1024);
        [("cpu", cpu), ("memory", memory), ("pods", self.pods.to_string())]
            .map(|(name, amount)| (name.to_owned(), Quantity(amount)))
            .into()
    }
}

fn total_memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

impl NodeAgent {
    /// Creates the Node, or takes over the existing one.
    pub(super) async fn register(&self) -> Result<()> {
        let api = Api::<NodeObject>::all(self.client.clone());
        let name = &self.options.name;
        let made = match api.create(&PostParams::default(), &self.new_node()).await.map_err(ClusterError::from) {
            Err(error) if error.already_exists() => {
                let patch = json!({ "metadata": { "labels": self.new_node().metadata.labels } });
                api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?
            }
            other => other?,
        };
        self.informers.nodes.record_write(made);
        self.update_status().await
    }

    /// Renews the Lease until the node stops.
    pub(super) async fn run_heartbeat(&self) {
        for beat in 1_u32.. {
            if let Err(error) = self.renew_lease().await {
                tracing::warn!(node = self.options.name, %error, "failed to renew the Lease of the node");
            }
            if beat % RENEWALS_PER_STATUS_UPDATE == 0
                && let Err(error) = self.update_status().await
            {
                tracing::warn!(node = self.options.name, %error, "failed to write the status of the node");
            }
            tokio::select! {
                () = tokio::time::sleep(LEASE_RENEW_INTERVAL) => {}
                () = self.wait_until_stopping() => return,
            }
        }
    }

    /// Writes the status with the current time.
    async fn update_status(&self) -> Result<()> {
        let name = &self.options.name;
        let old = self.informers.nodes.get(&crate::key::NamespacedKey::new("", name));
        let old = old.as_ref().and_then(|node| node.status.as_ref());
        let patch = Patch::Strategic(json!({ "status": self.node_status(old) }));
        let api = Api::<NodeObject>::all(self.client.clone());
        self.informers.nodes.record_write(api.patch_status(name, &PatchParams::default(), &patch).await?);
        Ok(())
    }

    async fn renew_lease(&self) -> Result<()> {
        let name = &self.options.name;
        let spec = LeaseSpec {
            holder_identity: Some(name.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        };
        let api = Api::<Lease>::namespaced(self.client.clone(), LEASE_NAMESPACE);
        let patch = Patch::Merge(json!({ "spec": spec }));
        match api.patch(name, &PatchParams::default(), &patch).await.map_err(ClusterError::from) {
            Err(error) if error.is_not_found() => {}
            other => return other.map(drop),
        }
        let node = self.informers.nodes.get(&crate::key::NamespacedKey::new("", name));
        let owner = node.map(|node| {
            let mut owner = owner_reference::controller_reference(&*node);
            (owner.controller, owner.block_owner_deletion) = (None, None);
            vec![owner]
        });
        let metadata = ObjectMeta { name: Some(name.clone()), owner_references: owner, ..ObjectMeta::default() };
        api.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await?;
        Ok(())
    }

    fn new_node(&self) -> NodeObject {
        let name = self.options.name.clone();
        let labels = [
            ("kubernetes.io/hostname", name.as_str()),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", architecture()),
            ("beta.kubernetes.io/os", "linux"),
            ("beta.kubernetes.io/arch", architecture()),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let (network, bits) = self.options.range.network();
        let cidr = format!("{network}/{bits}");
        NodeObject {
            metadata: ObjectMeta { name: Some(name.clone()), labels: Some(labels), ..ObjectMeta::default() },
            spec: Some(NodeSpec {
                pod_cidr: Some(cidr.clone()),
                pod_cidrs: Some(vec![cidr]),
                provider_id: Some(format!("kubewake://{name}")),
                ..NodeSpec::default()
            }),
            status: None,
        }
    }

    fn node_status(&self, old: Option<&NodeStatus>) -> NodeStatus {
        let amounts = self.options.capacity.quantities();
        let address = |type_: &str, address: String| NodeAddress { type_: type_.to_owned(), address };
        let old = old.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        NodeStatus {
            capacity: Some(amounts.clone()),
            allocatable: Some(amounts),
            addresses: Some(vec![
                address("InternalIP", self.options.range.address().to_string()),
                address("Hostname", self.options.name.clone()),
            ]),
            conditions: Some(node_conditions(old)),
            images: Some(self.options.images.names().map(container_image).collect()),
            node_info: Some(system_info()),
            ..NodeStatus::default()
        }
    }
}

fn container_image(name: &str) -> ContainerImage {
    ContainerImage { names: Some(vec![name.to_owned()]), size_bytes: None }
}

fn node_conditions(old: &[NodeCondition]) -> Vec<NodeCondition> {
    let now = api_time(Timestamp::now());
    let all = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let condition = |(type_, status, reason, message): (&str, &str, &str, &str)| {
        let before = old.iter().find(|one| one.type_ == type_ && one.status == status);
        NodeCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(now.clone()),
            last_transition_time: before.and_then(|one| one.last_transition_time.clone()).or_else(|| Some(now.clone())),
        }
    };
    all.map(condition).into()
}

fn system_info() -> NodeSystemInfo {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let machine = read("/etc/machine-id");
    NodeSystemInfo {
        architecture: architecture().to_owned(),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        container_runtime_version: format!("kubewake://{}", env!("CARGO_PKG_VERSION")),
        kernel_version: read("/proc/sys/kernel/osrelease"),
        kubelet_version: KUBELET_VERSION.to_owned(),
        kube_proxy_version: String::new(),
        machine_id: machine.clone(),
        operating_system: "linux".to_owned(),
        os_image: os_image(&read("/etc/os-release")),
        system_uuid: machine,
        ..NodeSystemInfo::default()
    }
}

fn os_image(release: &str) -> String {
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or("Linux", |name| name.trim_matches('"')).to_owned()
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
