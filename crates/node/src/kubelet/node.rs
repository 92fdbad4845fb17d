//! The Node object, and the Lease by which it says that it lives.

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

use super::{Node, status::time};
use crate::{
    controller::owner,
    error::{Error, Result},
};

/// The kubelet's numbers: how often it says that it lives, and for how long it is believed.
const RENEW: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;
const LEASES: &str = "kube-node-lease";
/// How often the Node's status is written although nothing changed, in renewals of the Lease: every five minutes.
const BEATS: u32 = 30;
/// The Kubernetes that this is like.
const VERSION: &str = "v1.35.8";

/// What a node has to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// In thousandths of a CPU.
    pub cpu_millis: u64,
    /// In bytes.
    pub memory_bytes: u64,
    /// How many pods it runs at most.
    pub pods: u32,
}

impl Capacity {
    /// What this machine has. The number of pods is the kubelet's.
    pub fn of_this_machine() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { cpu_millis: cpus as u64 * 1000, memory_bytes: memory().unwrap_or(1 << 30), pods: 110 }
    }

    /// As a Node has it.
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

fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

impl Node {
    /// Makes the Node, or takes over the one that is there.
    pub(super) async fn register(&self) -> Result<()> {
        let api = Api::<NodeObject>::all(self.client.clone());
        let name = &self.options.name;
        let made = match api.create(&PostParams::default(), &self.object()).await.map_err(Error::from) {
            Err(error) if error.already_exists() => {
                let patch = json!({ "metadata": { "labels": self.object().metadata.labels } });
                api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?
            }
            other => other?,
        };
        self.views.nodes.note(made);
        self.beat().await
    }

    /// Says that it lives, until it stops.
    pub(super) async fn live(&self) {
        for beat in 1_u32.. {
            if let Err(error) = self.renew().await {
                tracing::warn!(node = self.options.name, %error, "its lease is not renewed");
            }
            if beat % BEATS == 0
                && let Err(error) = self.beat().await
            {
                tracing::warn!(node = self.options.name, %error, "its status is not written");
            }
            tokio::select! {
                () = tokio::time::sleep(RENEW) => {}
                () = self.stops() => return,
            }
        }
    }

    /// Writes the status with the time of now.
    async fn beat(&self) -> Result<()> {
        let name = &self.options.name;
        let old = self.views.nodes.get(&crate::key::Key::new("", name));
        let old = old.as_ref().and_then(|node| node.status.as_ref());
        let patch = Patch::Strategic(json!({ "status": self.status(old) }));
        let api = Api::<NodeObject>::all(self.client.clone());
        self.views.nodes.note(api.patch_status(name, &PatchParams::default(), &patch).await?);
        Ok(())
    }

    async fn renew(&self) -> Result<()> {
        let name = &self.options.name;
        let spec = LeaseSpec {
            holder_identity: Some(name.clone()),
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        };
        let api = Api::<Lease>::namespaced(self.client.clone(), LEASES);
        let patch = Patch::Merge(json!({ "spec": spec }));
        match api.patch(name, &PatchParams::default(), &patch).await.map_err(Error::from) {
            Err(error) if error.is_not_found() => {}
            other => return other.map(drop),
        }
        let node = self.views.nodes.get(&crate::key::Key::new("", name));
        let owner = node.map(|node| {
            let mut owner = owner::reference(&*node);
            (owner.controller, owner.block_owner_deletion) = (None, None);
            vec![owner]
        });
        let metadata = ObjectMeta { name: Some(name.clone()), owner_references: owner, ..ObjectMeta::default() };
        api.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await?;
        Ok(())
    }

    fn object(&self) -> NodeObject {
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

    fn status(&self, old: Option<&NodeStatus>) -> NodeStatus {
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
            conditions: Some(conditions(old)),
            images: Some(self.options.images.names().map(image).collect()),
            node_info: Some(system()),
            ..NodeStatus::default()
        }
    }
}

fn image(name: &str) -> ContainerImage {
    ContainerImage { names: Some(vec![name.to_owned()]), size_bytes: None }
}

fn conditions(old: &[NodeCondition]) -> Vec<NodeCondition> {
    let now = time(Timestamp::now());
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

fn system() -> NodeSystemInfo {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let machine = read("/etc/machine-id");
    NodeSystemInfo {
        architecture: architecture().to_owned(),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        container_runtime_version: format!("kubewake://{}", env!("CARGO_PKG_VERSION")),
        kernel_version: read("/proc/sys/kernel/osrelease"),
        kubelet_version: VERSION.to_owned(),
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

/// As Go calls it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
