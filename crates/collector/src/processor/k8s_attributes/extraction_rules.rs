//! Extraction rules: the attributes of an object that are kept, to be added to the data of its pods.

use std::{collections::BTreeMap, sync::atomic::AtomicBool};

use bytes::Bytes;
use kubewake_config::model::{
    AssociationSource, ExtractFrom, ExtractKey, Field, FieldExtract, KubernetesAttributesProcessor,
};
use kubewake_otlp::Value;

use super::{image::ImageReference, objects::WatchedPod};
use crate::kubernetes::ObjectMetadata;

/// Attributes to add: keys with their values.
pub(super) type ResourceAttributes = Box<[(Bytes, Value)]>;

#[derive(Debug, Default)]
pub(super) struct PodRecord {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) namespace: String,
    /// The pod is a relay, as `verify_senders` lists its ServiceAccount: forwarded data may name its source.
    pub(super) is_relay: bool,
    /// The pod is known only so that it cannot pass as another: no attributes are added for it.
    pub(super) is_ignored: bool,
    /// The pod is deleted, and remembered for late data. Another pod may have its address by now.
    pub(super) is_gone: AtomicBool,
    pub(super) node: String,
    /// Its start time, to tell which of two pods with one address is the newer.
    pub(super) started: String,
    pub(super) attributes: ResourceAttributes,
    pub(super) containers: Box<[ContainerRecord]>,
    /// Its controller: the kind, name and uid.
    pub(super) controller: Option<(PodController, String, String)>,
    /// Identifiers by which the pod is found.
    pub(super) identifiers: Vec<Box<[u8]>>,
    /// Approximate memory size.
    pub(super) size: usize,
}

/// Kinds of pod controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodController {
    /// A Deployment, by way of a ReplicaSet with this name and uid.
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
}

#[derive(Debug, Default)]
pub(super) struct ContainerRecord {
    pub(super) name: String,
    /// Known runs of the container, by restart count: the id and the image.
    pub(super) runs: Vec<(i64, String, Option<String>)>,
    pub(super) attributes: ResourceAttributes,
}

/// The extraction rules of one processor.
#[derive(Debug)]
pub(super) struct ExtractionRules {
    pub(super) settings: KubernetesAttributesProcessor,
}

impl ExtractionRules {
    pub(super) fn wants(&self, field: Field) -> bool {
        self.settings.metadata.contains(&field)
    }

    pub(super) fn wants_any(&self, fields: &[Field]) -> bool {
        fields.iter().any(|field| self.wants(*field))
    }

    /// Whether labels or annotations of this kind of object are extracted.
    pub(super) fn extracts(&self, from: ExtractFrom) -> bool {
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
        ]) || associated
            .into_iter()
            .any(|source| *source == AssociationSource::Attribute(Field::ContainerId.name().into()))
    }

    /// The record of a pod; `None` for an excluded pod, unless `verify_senders` has to know it.
    pub(super) fn pod_record(&self, pod: &WatchedPod) -> Option<PodRecord> {
        let excluded = self.settings.exclude.iter().any(|name| name.is_match(pod.metadata.name.as_bytes()));
        let ignored = pod.metadata.annotations.get("opentelemetry.io/k8s-processor/ignore");
        if excluded || ignored.is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            return self.settings.verify_senders.is_some().then(|| self.ignored_pod(pod));
        }
        let attributes = self.pod_attributes(pod);
        let containers = if self.wants_containers() { self.containers(pod) } else { Box::default() };
        let mut known = PodRecord {
            uid: pod.metadata.uid.clone(),
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            is_relay: self.is_relay(pod),
            node: pod.spec.node_name.clone(),
            started: pod.status.start_time.clone(),
            controller: pod_controller(&pod.metadata),
            containers,
            ..PodRecord::default()
        };
        known.identifiers = self.identifiers(pod, &known, &attributes);
        known.attributes = encode_attributes(attributes);
        known.size = known.measure();
        Some(known)
    }

    /// A pod without attributes. A pod must not be able to hide from `verify_senders` by an annotation.
    fn ignored_pod(&self, pod: &WatchedPod) -> PodRecord {
        let mut known = PodRecord {
            uid: pod.metadata.uid.clone(),
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            started: pod.status.start_time.clone(),
            is_relay: self.is_relay(pod),
            is_ignored: true,
            identifiers: addresses(pod).into_iter().map(address_identifier).collect(),
            ..PodRecord::default()
        };
        known.size = known.measure();
        known
    }

    /// Whether a pod runs under a ServiceAccount that `verify_senders` trusts.
    fn is_relay(&self, pod: &WatchedPod) -> bool {
        let account = Some(pod.spec.service_account_name.as_str()).filter(|name| !name.is_empty()).unwrap_or("default");
        let trusted = self.settings.verify_senders.iter().flat_map(|verify| &verify.trusted_relays);
        trusted.into_iter().any(|relay| relay.namespace == pod.metadata.namespace && relay.service_account == account)
    }

    fn pod_attributes(&self, pod: &WatchedPod) -> BTreeMap<String, String> {
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
        if let Some((kind, name, uid)) = pod_controller(metadata) {
            let fields = match kind {
                PodController::ReplicaSet => (Field::ReplicaSetName, Field::ReplicaSetUid),
                PodController::StatefulSet => (Field::StatefulSetName, Field::StatefulSetUid),
                PodController::DaemonSet => (Field::DaemonSetName, Field::DaemonSetUid),
                PodController::Job => (Field::JobName, Field::JobUid),
            };
            put(fields.0, &name);
            put(fields.1, &uid);
            put(Field::ServiceName, &name);
            let (maker, field) = match kind {
                PodController::ReplicaSet => (self.deployment(&name, metadata), Field::DeploymentName),
                PodController::Job => (cron_job(&name, &metadata.creation_timestamp), Field::CronJobName),
                PodController::StatefulSet | PodController::DaemonSet => (None, Field::ServiceName),
            };
            if let Some(maker) = maker {
                put(field, maker);
                put(Field::ServiceName, maker);
            }
        }
        let labels = &metadata.labels;
        extract(&mut out, &self.settings.labels, ExtractFrom::Pod, labels, "labels");
        // Later entries win.
        for (field, label) in [
            (Field::ServiceName, "app.kubernetes.io/name"),
            (Field::ServiceName, "app.kubernetes.io/instance"),
            (Field::ServiceVersion, "app.kubernetes.io/version"),
        ] {
            if let Some(value) = labels.get(label).filter(|_| self.wants(field)) {
                out.insert(field.name().to_owned(), value.clone());
            }
        }
        extract(&mut out, &self.settings.annotations, ExtractFrom::Pod, &metadata.annotations, "annotations");
        out
    }

    /// The Deployment's name, as far as the ReplicaSet's name tells it: without the hash of its pods.
    fn deployment<'a>(&self, replica_set: &'a str, metadata: &ObjectMetadata) -> Option<&'a str> {
        let hash = metadata.labels.get("pod-template-hash").filter(|_| self.settings.deployment_by_name)?;
        replica_set.strip_suffix(hash.as_str())?.strip_suffix('-')
    }

    fn containers(&self, pod: &WatchedPod) -> Box<[ContainerRecord]> {
        let specs = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        let statuses = || pod.status.container_statuses.iter().chain(&pod.status.init_container_statuses);
        let known = specs.map(|spec| {
            let image = ImageReference::parse(&spec.image);
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
            let mut attributes = encode_attributes(out).into_vec();
            if let Some(tag) = image.tag_or_latest().filter(|_| self.wants(Field::ContainerImageTags)) {
                attributes
                    .push((attribute_key(Field::ContainerImageTags), pre_encoded(&Value::Array(vec![tag.into()]))));
            }
            let runs = statuses().filter(|status| status.name == spec.name).map(|status| {
                let id = status.container_id.split_once("://").map_or(&*status.container_id, |(_, id)| id);
                (status.restart_count, id.to_owned(), ImageReference::canonical(&status.image_id))
            });
            ContainerRecord { name: spec.name.clone(), runs: runs.collect(), attributes: attributes.into() }
        });
        known.collect()
    }

    /// The identifiers of a pod: its uid, its addresses, and those of the association rules.
    fn identifiers(
        &self,
        pod: &WatchedPod,
        known: &PodRecord,
        attributes: &BTreeMap<String, String>,
    ) -> Vec<Box<[u8]>> {
        let addresses = addresses(pod);
        let mut out: Vec<Box<[u8]>> = addresses.iter().map(|address| address_identifier(address)).collect();
        for (number, sources) in self.settings.associations.iter().enumerate() {
            let values = sources.iter().map(|source| match source {
                AssociationSource::Connection => addresses.iter().map(|&address| address.to_owned()).collect(),
                AssociationSource::Attribute(name) => match name.as_str() {
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

    /// The attributes from labels and annotations of an object that is not a pod.
    pub(super) fn owner_attributes(&self, from: ExtractFrom, metadata: &ObjectMetadata) -> ResourceAttributes {
        let mut out = BTreeMap::new();
        extract(&mut out, &self.settings.labels, from, &metadata.labels, "labels");
        extract(&mut out, &self.settings.annotations, from, &metadata.annotations, "annotations");
        encode_attributes(out)
    }
}

/// Overhead of maps and allocations, beside the text.
pub(super) const ENTRY_OVERHEAD_BYTES: usize = 96;

impl PodRecord {
    fn measure(&self) -> usize {
        let containers: usize =
            self.containers.iter().map(|c| measure(&c.attributes) + c.runs.len() * ENTRY_OVERHEAD_BYTES * 2).sum();
        let identifiers: usize = self.identifiers.iter().map(|id| id.len() + ENTRY_OVERHEAD_BYTES).sum();
        ENTRY_OVERHEAD_BYTES * 4 + measure(&self.attributes) + containers + identifiers
    }
}

pub(super) fn measure(attributes: &ResourceAttributes) -> usize {
    attributes.iter().map(|(key, value)| key.len() + size(value) + ENTRY_OVERHEAD_BYTES).sum()
}

fn size(value: &Value) -> usize {
    if let Value::Encoded(content) = value { content.len() } else { 8 }
}

pub(super) fn attribute_key(field: Field) -> Bytes {
    Bytes::from_static(field.name().as_bytes())
}

fn encode_attributes(attributes: BTreeMap<String, String>) -> ResourceAttributes {
    attributes.into_iter().map(|(key, value)| (Bytes::from(key), pre_encoded(&Value::String(value)))).collect()
}

/// The value in wire format, so that adding it copies nothing.
pub(super) fn pre_encoded(value: &Value) -> Value {
    Value::Encoded(value.encoded())
}

/// The addresses that belong to the pod alone.
fn addresses(pod: &WatchedPod) -> Vec<&str> {
    // All pods on the host's network share the host's address.
    if pod.spec.host_network {
        return Vec::new();
    }
    let own = pod.status.pod_ips.iter().map(|ip| &ip.ip).chain([&pod.status.pod_ip]);
    let mut addresses: Vec<&str> = own.map(String::as_str).filter(|ip| !ip.is_empty()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// The identifier of the pod with this address.
pub(super) fn address_identifier(address: &str) -> Box<[u8]> {
    [b"ip\0", address.as_bytes()].concat().into()
}

/// Writes the beginning of an identifier, for an association rule.
pub(super) fn begin_identifier(number: usize, out: &mut Vec<u8>) {
    out.clear();
    out.push(u8::try_from(number).unwrap_or(u8::MAX));
}

/// Appends the value of a source to an identifier.
pub(super) fn push_identifier_value(value: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(value);
}

/// All combinations of one value from each source.
fn combinations(number: usize, sources: Vec<Vec<String>>) -> Vec<Box<[u8]>> {
    let mut first = Vec::new();
    begin_identifier(number, &mut first);
    let mut out = vec![first];
    for values in sources {
        let mut longer = Vec::new();
        for value in values.iter().filter(|value| !value.is_empty()) {
            longer.extend(out.iter().map(|start| {
                let mut longer = start.clone();
                push_identifier_value(value.as_bytes(), &mut longer);
                longer
            }));
        }
        out = longer;
    }
    out.into_iter().map(Into::into).collect()
}

fn pod_controller(metadata: &ObjectMetadata) -> Option<(PodController, String, String)> {
    let kind = |kind: &str| match kind {
        "ReplicaSet" => Some(PodController::ReplicaSet),
        "StatefulSet" => Some(PodController::StatefulSet),
        "DaemonSet" => Some(PodController::DaemonSet),
        "Job" => Some(PodController::Job),
        _ => None,
    };
    let known = metadata.owner_references.iter().filter(|owner| kind(&owner.kind).is_some());
    let owner = known.max_by_key(|owner| owner.controller)?;
    Some((kind(&owner.kind)?, owner.name.clone(), owner.uid.clone()))
}

/// The CronJob's name, if the Job's name ends with its scheduled minute.
fn cron_job<'a>(job: &'a str, created: &str) -> Option<&'a str> {
    // Clocks may differ, and a pod may be made long after its Job, for example in a retry.
    const MAX_SKEW_MINUTES: i64 = 60;
    let (name, minute) = job.rsplit_once('-')?;
    let minute: i64 = Some(minute).filter(|text| text.len() == 8)?.parse().ok()?;
    let made = created.parse::<jiff::Timestamp>().ok()?.as_second() / 60;
    (made - minute).abs().le(&MAX_SKEW_MINUTES).then_some(name)
}

fn extract(
    out: &mut BTreeMap<String, String>,
    rules: &[FieldExtract],
    from: ExtractFrom,
    values: &BTreeMap<String, String>,
    what: &str,
) {
    // The Collector has plural names for its first attributes.
    let (owner, what) = match from {
        ExtractFrom::Pod => ("pod", what),
        ExtractFrom::Namespace => ("namespace", what),
        ExtractFrom::Node => ("node", what),
        ExtractFrom::Deployment => ("deployment", what.trim_end_matches('s')),
        ExtractFrom::StatefulSet => ("statefulset", what.trim_end_matches('s')),
        ExtractFrom::DaemonSet => ("daemonset", what.trim_end_matches('s')),
        ExtractFrom::Job => ("job", what.trim_end_matches('s')),
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
