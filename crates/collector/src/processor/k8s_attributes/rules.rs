//! What is kept of an object: the attributes that it gives to what its pods send.

use std::{collections::BTreeMap, sync::atomic::AtomicBool};

use bytes::Bytes;
use kubewake_config::model::{Extract, ExtractKey, Field, KubernetesAttributes, KubernetesSource as Source, Owner};
use kubewake_otlp::Value;

use super::{image::Image, objects::Pod};
use crate::kubernetes::Metadata;

/// Attributes to give: keys with their values.
pub(super) type Attributes = Box<[(Bytes, Value)]>;

/// What is known of a pod.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) namespace: String,
    /// What it forwards may say of whom it is, as `verify_senders` lists its ServiceAccount.
    pub(super) is_relay: bool,
    /// It is known only so that it cannot pass as another: nothing is given for it.
    pub(super) is_ignored: bool,
    /// It is not there any more, and remembered for what comes late. Its address may be another's by now.
    pub(super) is_gone: AtomicBool,
    pub(super) node: String,
    /// When it was started, to tell which of two pods with one address is the newer.
    pub(super) started: String,
    pub(super) attributes: Attributes,
    pub(super) containers: Box<[Container]>,
    /// Who made it, and what that is called.
    pub(super) owner: Option<(Owned, String, String)>,
    /// By what it is found.
    pub(super) identifiers: Vec<Box<[u8]>>,
    /// How much it takes, about.
    pub(super) size: usize,
}

/// What a pod can be made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owned {
    /// A Deployment, by way of a ReplicaSet with this name and uid.
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
}

/// What is known of a container.
#[derive(Debug, Default)]
pub(super) struct Container {
    pub(super) name: String,
    /// Its runs that are known, by how often it was restarted before: the id and the image.
    pub(super) runs: Vec<(i64, String, Option<String>)>,
    pub(super) attributes: Attributes,
}

/// The rules of one processor.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) settings: KubernetesAttributes,
}

impl Rules {
    pub(super) fn wants(&self, field: Field) -> bool {
        self.settings.metadata.contains(&field)
    }

    pub(super) fn wants_any(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| self.wants(*field))
    }

    /// Whether labels or annotations of such an owner are asked for.
    pub(super) fn extracts(&self, from: Owner) -> bool {
        self.settings.labels.iter().chain(&self.settings.annotations).any(|extract| extract.from == from)
    }

    fn wants_containers(&self) -> bool {
        use Field::{
            ContainerId, ContainerImageName, ContainerImageRepoDigests, ContainerImageTag, ContainerImageTags,
            ContainerName, ServiceInstanceId, ServiceVersion,
        };
        let associated = self.settings.associations.iter().flatten();
        self.wants_any(&[
            ContainerId,
            ContainerImageName,
            ContainerImageRepoDigests,
            ContainerImageTag,
            ContainerImageTags,
            ContainerName,
            ServiceInstanceId,
            ServiceVersion,
        ]) || associated.into_iter().any(|source| *source == Source::Attribute(Field::ContainerId.name().into()))
    }

    /// What is kept of a pod; nothing of one that is to be passed over.
    pub(super) fn pod(&self, pod: &Pod) -> Option<Known> {
        let excluded = self.settings.exclude.iter().any(|name| name.is_match(pod.metadata.name.as_bytes()));
        let ignored = pod.metadata.annotations.get("opentelemetry.io/k8s-processor/ignore");
        if excluded || ignored.is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            return self.settings.verify_senders.is_some().then(|| self.ignored(pod));
        }
        let attributes = self.pod_attributes(pod);
        let containers = if self.wants_containers() { self.containers(pod) } else { Box::default() };
        let mut known = Known {
            uid: pod.metadata.uid.clone(),
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            is_relay: self.is_relay(pod),
            node: pod.spec.node_name.clone(),
            started: pod.status.start_time.clone(),
            owner: owner(&pod.metadata),
            containers,
            ..Known::default()
        };
        known.identifiers = self.identifiers(pod, &known, &attributes);
        known.attributes = encoded(attributes);
        known.size = known.measure();
        Some(known)
    }

    /// A pod for which nothing is given. Whoever may annotate a pod must not be able to hide it from `verify_senders`.
    fn ignored(&self, pod: &Pod) -> Known {
        let mut known = Known {
            uid: pod.metadata.uid.clone(),
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            started: pod.status.start_time.clone(),
            is_relay: self.is_relay(pod),
            is_ignored: true,
            identifiers: addresses(pod).into_iter().map(by_address).collect(),
            ..Known::default()
        };
        known.size = known.measure();
        known
    }

    /// Whether a pod runs under a ServiceAccount that `verify_senders` trusts.
    fn is_relay(&self, pod: &Pod) -> bool {
        let account = Some(pod.spec.service_account_name.as_str()).filter(|name| !name.is_empty()).unwrap_or("default");
        let trusted = self.settings.verify_senders.iter().flat_map(|verify| &verify.trusted_relays);
        trusted.into_iter().any(|relay| relay.namespace == pod.metadata.namespace && relay.service_account == account)
    }

    fn pod_attributes(&self, pod: &Pod) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        let mut put = |field: Field, value: &str| {
            if self.wants(field) && !value.is_empty() {
                out.insert(field.name().to_owned(), value.to_owned());
            }
        };
        let metadata = &pod.metadata;
        put(Field::PodName, &metadata.name);
        put(Field::ServiceName, &metadata.name);
        put(Field::PodUid, &metadata.uid);
        put(Field::PodHostname, &pod.spec.hostname);
        put(Field::PodIp, &pod.status.pod_ip);
        put(Field::NamespaceName, &metadata.namespace);
        put(Field::ServiceNamespace, &metadata.namespace);
        put(Field::PodStartTime, &metadata.creation_timestamp);
        put(Field::NodeName, &pod.spec.node_name);
        if let Some((kind, name, uid)) = owner(metadata) {
            let fields = match kind {
                Owned::ReplicaSet => (Field::ReplicaSetName, Field::ReplicaSetUid),
                Owned::StatefulSet => (Field::StatefulSetName, Field::StatefulSetUid),
                Owned::DaemonSet => (Field::DaemonSetName, Field::DaemonSetUid),
                Owned::Job => (Field::JobName, Field::JobUid),
            };
            put(fields.0, &name);
            put(fields.1, &uid);
            put(Field::ServiceName, &name);
            let (maker, field) = match kind {
                Owned::ReplicaSet => (self.deployment(&name, metadata), Field::DeploymentName),
                Owned::Job => (cron_job(&name, &metadata.creation_timestamp), Field::CronJobName),
                Owned::StatefulSet | Owned::DaemonSet => (None, Field::ServiceName),
            };
            if let Some(maker) = maker {
                put(field, maker);
                put(Field::ServiceName, maker);
            }
        }
        let labels = &metadata.labels;
        extract(&mut out, &self.settings.labels, Owner::Pod, labels, "labels");
        // The later one wins.
        for (field, label) in [
            (Field::ServiceName, "app.kubernetes.io/name"),
            (Field::ServiceName, "app.kubernetes.io/instance"),
            (Field::ServiceVersion, "app.kubernetes.io/version"),
        ] {
            if let Some(value) = labels.get(label).filter(|_| self.wants(field)) {
                out.insert(field.name().to_owned(), value.clone());
            }
        }
        extract(&mut out, &self.settings.annotations, Owner::Pod, &metadata.annotations, "annotations");
        out
    }

    /// The name of the Deployment, as far as the ReplicaSet's own tells it: without the hash of its pods.
    fn deployment<'a>(&self, replica_set: &'a str, metadata: &Metadata) -> Option<&'a str> {
        let hash = metadata.labels.get("pod-template-hash").filter(|_| self.settings.deployment_by_name)?;
        replica_set.strip_suffix(hash.as_str())?.strip_suffix('-')
    }

    fn containers(&self, pod: &Pod) -> Box<[Container]> {
        let specs = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        let statuses = || pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
        let known = specs.map(|spec| {
            let image = Image::parse(&spec.image);
            let mut out = BTreeMap::new();
            let mut put = |field: Field, value: Option<String>| {
                if let Some(value) = value.filter(|value| self.wants(field) && !value.is_empty()) {
                    out.insert(field.name().to_owned(), value);
                }
            };
            put(Field::ContainerName, Some(spec.name.clone()));
            put(Field::ContainerImageName, Some(image.name.to_owned()));
            put(Field::ContainerImageTag, image.tag_or_latest().map(str::to_owned));
            put(Field::ServiceVersion, image.version());
            let instance = [&pod.metadata.namespace, &pod.metadata.name, &spec.name].map(String::as_str).join(".");
            put(Field::ServiceInstanceId, Some(instance));
            let mut attributes = encoded(out).into_vec();
            if let Some(tag) = image.tag_or_latest().filter(|_| self.wants(Field::ContainerImageTags)) {
                attributes.push((key(Field::ContainerImageTags), ready(&Value::Array(vec![tag.into()]))));
            }
            let runs = statuses().filter(|status| status.name == spec.name).map(|status| {
                let id = status.container_id.split_once("://").map_or(&*status.container_id, |(_, id)| id);
                (status.restart_count, id.to_owned(), Image::canonical(&status.image_id))
            });
            Container { name: spec.name.clone(), runs: runs.collect(), attributes: attributes.into() }
        });
        known.collect()
    }

    /// By what the pod is found: by its uid, by its addresses, and by what the document says.
    fn identifiers(&self, pod: &Pod, known: &Known, attributes: &BTreeMap<String, String>) -> Vec<Box<[u8]>> {
        let addresses = addresses(pod);
        let mut out: Vec<Box<[u8]>> = addresses.iter().map(|address| by_address(address)).collect();
        for (number, sources) in self.settings.associations.iter().enumerate() {
            let values = sources.iter().map(|source| match source {
                Source::Connection => addresses.iter().map(|&address| address.to_owned()).collect(),
                Source::Attribute(name) => match name.as_str() {
                    "k8s.pod.ip" | "host.name" => addresses.iter().map(|&address| address.to_owned()).collect(),
                    "k8s.pod.name" => vec![pod.metadata.name.clone()],
                    "k8s.pod.uid" => vec![known.uid.clone()],
                    "k8s.namespace.name" => vec![known.namespace.clone()],
                    "container.id" => known.containers.iter().flat_map(|c| &c.runs).map(|run| run.1.clone()).collect(),
                    name => attributes.get(name).cloned().into_iter().collect(),
                },
            });
            out.extend(combinations(number, values.collect()));
        }
        out
    }

    /// The attributes that labels and annotations of another object than the pod give.
    pub(super) fn of_owner(&self, from: Owner, metadata: &Metadata) -> Attributes {
        let mut out = BTreeMap::new();
        extract(&mut out, &self.settings.labels, from, &metadata.labels, "labels");
        extract(&mut out, &self.settings.annotations, from, &metadata.annotations, "annotations");
        encoded(out)
    }
}

/// What maps and allocations cost beside the text.
pub(super) const EACH: usize = 96;

impl Known {
    fn measure(&self) -> usize {
        let containers: usize = self.containers.iter().map(|c| measure(&c.attributes) + c.runs.len() * EACH * 2).sum();
        let identifiers: usize = self.identifiers.iter().map(|id| id.len() + EACH).sum();
        EACH * 4 + measure(&self.attributes) + containers + identifiers
    }
}

/// What attributes take.
pub(super) fn measure(attributes: &Attributes) -> usize {
    attributes.iter().map(|(key, value)| key.len() + size(value) + EACH).sum()
}

fn size(value: &Value) -> usize {
    if let Value::Encoded(content) = value { content.len() } else { 8 }
}

pub(super) fn key(field: Field) -> Bytes {
    Bytes::from_static(field.name().as_bytes())
}

fn encoded(attributes: BTreeMap<String, String>) -> Attributes {
    attributes.into_iter().map(|(key, value)| (Bytes::from(key), ready(&Value::String(value)))).collect()
}

/// The value as it is written, so that giving it copies nothing.
pub(super) fn ready(value: &Value) -> Value {
    Value::Encoded(value.encoded())
}

/// The addresses that are a pod's own.
fn addresses(pod: &Pod) -> Vec<&str> {
    // All pods of the host's network share its address.
    if pod.spec.host_network {
        return Vec::new();
    }
    let own = pod.status.pod_ips.iter().map(|ip| &ip.ip).chain([&pod.status.pod_ip]);
    let mut addresses: Vec<&str> = own.map(String::as_str).filter(|ip| !ip.is_empty()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The identifier of whoever sends from an address.
pub(super) fn by_address(address: &str) -> Box<[u8]> {
    [b"ip\0", address.as_bytes()].concat().into()
}

/// Writes the beginning of an identifier by an association.
pub(super) fn begin(number: usize, out: &mut Vec<u8>) {
    out.clear();
    out.push(u8::try_from(number).unwrap_or(u8::MAX));
}

/// Adds the value of a source to an identifier.
pub(super) fn add(value: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(value);
}

/// Every way to take one value of each source.
fn combinations(number: usize, sources: Vec<Vec<String>>) -> Vec<Box<[u8]>> {
    let mut first = Vec::new();
    begin(number, &mut first);
    let mut out = vec![first];
    for values in sources {
        let mut longer = Vec::new();
        for value in values.iter().filter(|value| !value.is_empty()) {
            longer.extend(out.iter().map(|start| {
                let mut longer = start.clone();
                add(value.as_bytes(), &mut longer);
                longer
            }));
        }
        out = longer;
    }
    out.into_iter().map(Into::into).collect()
}

/// Who made the pod.
fn owner(metadata: &Metadata) -> Option<(Owned, String, String)> {
    let kind = |kind: &str| match kind {
        "ReplicaSet" => Some(Owned::ReplicaSet),
        "StatefulSet" => Some(Owned::StatefulSet),
        "DaemonSet" => Some(Owned::DaemonSet),
        "Job" => Some(Owned::Job),
        _ => None,
    };
    let known = metadata.owner_references.iter().filter(|owner| kind(&owner.kind).is_some());
    let owner = known.max_by_key(|owner| owner.controller)?;
    Some((kind(&owner.kind)?, owner.name.clone(), owner.uid.clone()))
}

/// The name of the CronJob, if the Job's own ends with the minute for which it was made.
fn cron_job<'a>(job: &'a str, created: &str) -> Option<&'a str> {
    // Clocks may differ, and a pod may be made long after its Job, as when it is tried again.
    const MINUTES: i64 = 60;
    let (name, minute) = job.rsplit_once('-')?;
    let minute: i64 = Some(minute).filter(|text| text.len() == 8)?.parse().ok()?;
    let made = created.parse::<jiff::Timestamp>().ok()?.as_second() / 60;
    (made - minute).abs().le(&MINUTES).then_some(name)
}

fn extract(
    out: &mut BTreeMap<String, String>,
    rules: &[Extract],
    from: Owner,
    values: &BTreeMap<String, String>,
    what: &str,
) {
    // The Collector has plural names for what it had first.
    let (owner, what) = match from {
        Owner::Pod => ("pod", what),
        Owner::Namespace => ("namespace", what),
        Owner::Node => ("node", what),
        Owner::Deployment => ("deployment", what.trim_end_matches('s')),
        Owner::StatefulSet => ("statefulset", what.trim_end_matches('s')),
        Owner::DaemonSet => ("daemonset", what.trim_end_matches('s')),
        Owner::Job => ("job", what.trim_end_matches('s')),
    };
    let usual = |key: &str| format!("k8s.{owner}.{what}.{key}");
    for rule in rules.iter().filter(|rule| rule.from == from) {
        match &rule.key {
            ExtractKey::Exact(key) => {
                if let Some(value) = values.get(key) {
                    out.insert(rule.tag.clone().unwrap_or_else(|| usual(key)), value.clone());
                }
            }
            ExtractKey::Matching(pattern) => {
                for (key, value) in values.iter().filter(|(_, value)| !value.is_empty()) {
                    let Some(captures) = pattern.regex().captures(key.as_bytes()) else { continue };
                    let tag = rule.tag.as_ref().filter(|tag| tag.contains('$'));
                    let name = tag.map_or_else(
                        || usual(key),
                        |tag| {
                            let mut name = Vec::new();
                            captures.expand(tag.as_bytes(), &mut name);
                            String::from_utf8_lossy(&name).into_owned()
                        },
                    );
                    if !name.is_empty() {
                        out.insert(name, value.clone());
                    }
                }
            }
        }
    }
}
