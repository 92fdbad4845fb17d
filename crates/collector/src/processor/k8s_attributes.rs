//! `k8s_attributes`, `k8sattributes`: adds the attributes of the pod that sent the data.
//!
//! A resource is associated with a pod by the address that the request came from, or by attributes of the
//! resource, and gets the known attributes of the pod, its containers, its workload, its namespace and its
//! node. Attributes that the resource has stay, unless `verify_senders` asks for the identity of the pod that
//! the connection belongs to (see [`verify_senders`]).
//!
//! *Guaranteed*: the cluster is watched once for all pipelines with the same rules, and only what the rules
//! need is requested and kept (see [`cluster_cache`]). Requests never wait for the cluster, unless
//! `wait_for_metadata` asks for it: then senders are refused with a retry until all lists are complete, or the
//! time is up. *Not done*: addresses hidden by a proxy are not resolved, and pods on the host's network are not
//! told apart.

mod cluster_cache;
mod cluster_state;
mod extraction_rules;
mod image;
pub(crate) mod objects;
mod verify_senders;

#[cfg(test)]
mod tests;

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, RwLockReadGuard, atomic::Ordering},
};

use arc_swap::ArcSwap;
use kubewake_config::{
    ComponentId,
    model::{AssociationSource, ExtractFrom, Field, KubernetesAttributesProcessor},
};
use kubewake_otlp::{
    Allowance, EditList, MessageEdit, NoMemory, RecordEditor, Signal, Value, rewrite_within,
    view::{self, AnyValue, Resource},
};
use kubewake_runtime::lock::Mutex;
use tokio::time::Instant;

use self::{
    cluster_cache::{ClusterCache, ClusterUser, qualified_name, workload_kind},
    cluster_state::ClusterObjects,
    extraction_rules::{ContainerRecord, PodController, PodRecord, ResourceAttributes},
};
use super::transform::{RequestTransform, TransformProcessor, TransformedRequest};
use crate::{
    components::{BuildError, PrepareProcessor, PreparedProcessor, ProcessorContext, ProcessorSite},
    core::{
        Batch, ClusterStats, ConsumeOutcome, Consumer, ConsumerFanout, DropReason, OverflowPolicy, Part, Processor,
        ProcessorStats, Refusal, SharedInstances,
    },
};

/// Attributes that the Collector takes for a pod's address when there are no association rules.
const DEFAULT_ADDRESS_ATTRIBUTES: [&str; 2] = ["k8s.pod.ip", "ip"];

/// Checks that the settings can be applied in this environment.
pub(crate) fn prepare(
    settings: &KubernetesAttributesProcessor,
    _: &ProcessorContext<'_>,
) -> Result<PreparedProcessor, BuildError> {
    cluster_cache::check(settings)?;
    Ok(PreparedProcessor::node(PreparedEnrichment(settings.clone())))
}

struct PreparedEnrichment(KubernetesAttributesProcessor);

impl PrepareProcessor for PreparedEnrichment {
    type Node = KubernetesEnrichmentProcessor;

    fn start(self, site: &ProcessorSite<'_>) -> Arc<KubernetesEnrichmentProcessor> {
        let stats = (site.registry.processor(site.id, site.signal), site.registry.cluster(site.id));
        KubernetesEnrichmentProcessor::new(site.id, site.signal, &self.0, &site.registry.shared, stats)
    }

    fn reconfigure(self, node: &KubernetesEnrichmentProcessor, _: &ProcessorSite<'_>) {
        node.reconfigure(&self.0);
    }
}

/// The processor in one pipeline.
pub struct KubernetesEnrichmentProcessor {
    id: ComponentId,
    transform_processor: Arc<TransformProcessor>,
    shared: SharedInstances,
    stats: Arc<ClusterStats>,
    /// Deadline until which senders are refused with a retry, and the cluster whose lists they wait for.
    gate: ArcSwap<Option<(Instant, Arc<ClusterCache>)>>,
    /// Keeps the cluster watched while the processor is part of a pipeline.
    user: Mutex<Option<ClusterUser>>,
}

impl KubernetesEnrichmentProcessor {
    /// Creates a processor that is not connected to consumers yet.
    pub fn new(
        id: &ComponentId,
        signal: Signal,
        settings: &KubernetesAttributesProcessor,
        shared: &SharedInstances,
        counters: (Arc<ProcessorStats>, Arc<ClusterStats>),
    ) -> Arc<Self> {
        let (steps, stats) = counters;
        let (mapper, gate, user) = build_transform(id, settings, shared, &stats);
        let mapping = TransformProcessor::new(signal, mapper, steps);
        let gate = ArcSwap::from_pointee(gate);
        let user = Mutex::new(user);
        Arc::new(Self { id: id.clone(), transform_processor: mapping, shared: shared.clone(), stats, gate, user })
    }

    /// Applies new settings.
    pub fn reconfigure(&self, settings: &KubernetesAttributesProcessor) {
        let (mapper, gate, user) = build_transform(&self.id, settings, &self.shared, &self.stats);
        self.transform_processor.reconfigure(mapper);
        self.gate.store(Arc::new(gate));
        self.set_user(user);
    }

    fn set_user(&self, user: Option<ClusterUser>) {
        *self.user.lock() = user;
    }

    /// The pending wait: its deadline and cluster; `None` if it is over.
    fn pending_wait(&self) -> Option<(Instant, Arc<ClusterCache>)> {
        let gate = self.gate.load();
        let (until, cluster) = gate.as_ref().as_ref()?;
        let ready = *cluster.ready().borrow();
        if !ready && Instant::now() < *until {
            return Some((*until, cluster.clone()));
        }
        if self.gate.swap(Arc::new(None)).is_some() && !ready {
            tracing::warn!(processor = %self.id,
                "the metadata of the cluster is not complete after wait_for_metadata_timeout; data passes without it");
        }
        None
    }
}

type StartupGate = Option<(Instant, Arc<ClusterCache>)>;

fn build_transform(
    id: &ComponentId,
    settings: &KubernetesAttributesProcessor,
    shared: &SharedInstances,
    stats: &Arc<ClusterStats>,
) -> (Box<dyn RequestTransform>, StartupGate, Option<ClusterUser>) {
    let cluster = (!settings.passthrough).then(|| {
        let same = |cluster: &ClusterCache| cluster.rules.settings == *settings && !cluster.is_stopped();
        shared.get_or_create(same, || ClusterCache::start(settings, stats.clone(), id))
    });
    // Only a reload ends a cluster's watches, and it starts new components before it retires old ones.
    let user = cluster.as_ref().and_then(ClusterUser::begin);
    if let Some(cluster) = &cluster {
        stats.set_view(&cluster.view);
    }
    let gate = settings.wait.zip(cluster.clone()).map(|(wait, cluster)| (Instant::now() + wait, cluster));
    let enrich = KubernetesEnrichmentTransform { settings: settings.clone(), cluster, stats: stats.clone() };
    (Box::new(enrich), gate, user)
}

impl Consumer for KubernetesEnrichmentProcessor {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        let Some((until, cluster)) = self.pending_wait() else {
            return self.transform_processor.clone().consume(batch, pressure);
        };
        if pressure == OverflowPolicy::Refuse {
            let message = "the metadata of the cluster is not complete yet".into();
            return ConsumeOutcome::Now(Err(Refusal { message, ..Refusal::queue_full() }));
        }
        ConsumeOutcome::later(async move {
            let _ = tokio::time::timeout_at(until, cluster.ready().wait_for(|ready| *ready)).await;
            self.transform_processor.clone().consume(batch, pressure).wait().await
        })
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.transform_processor.count_lost(batch, reason);
    }
}

impl Processor for KubernetesEnrichmentProcessor {
    fn output(&self) -> &ConsumerFanout {
        self.transform_processor.output()
    }

    fn retire(&self) {
        self.gate.store(Arc::new(None));
        self.set_user(None);
    }

    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.transform_processor.flush()
    }
}

/// Adds the known attributes of pods to resources.
struct KubernetesEnrichmentTransform {
    settings: KubernetesAttributesProcessor,
    cluster: Option<Arc<ClusterCache>>,
    stats: Arc<ClusterStats>,
}

impl RequestTransform for KubernetesEnrichmentTransform {
    fn transform(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<TransformedRequest, NoMemory> {
        let address = part.origin.peer.as_ref().map(SocketAddr::ip).map(|ip| ip.to_canonical());
        let known = self.cluster.as_ref().map(|cluster| (&**cluster, cluster.state()));
        let sender = known.as_ref().zip(address).and_then(|((_, state), address)| self.verified_sender(state, address));
        let is_relayed = known.as_ref().zip(address).is_some_and(|((_, state), address)| self.is_relay(state, address));
        let mut editor = PodAttributesEditor { transform: self, known, sender, is_relayed, address, key: Vec::new() };
        let bytes = rewrite_within(signal, &part.bytes, &mut editor, memory)?;
        Ok(TransformedRequest { bytes, items: part.items })
    }
}

/// Edits the resources of one request.
struct PodAttributesEditor<'a> {
    transform: &'a KubernetesEnrichmentTransform,
    known: Option<(&'a ClusterCache, RwLockReadGuard<'a, ClusterObjects>)>,
    /// The pod that the connection belongs to, if what resources claim does not count.
    sender: Option<Arc<PodRecord>>,
    /// The connection belongs to a trusted relay, whose identity is not that of the pods it forwards for.
    is_relayed: bool,
    address: Option<IpAddr>,
    key: Vec<u8>,
}

impl RecordEditor for PodAttributesEditor<'_> {
    const VISITS_RECORDS: bool = false;

    fn resource(&mut self, resource: Resource<'_>, edits: &mut EditList) {
        let mut writer = AttributeWriter { attributes: resource.attributes(), edits, verified: None };
        if let (Some((cluster, state)), Some(pod)) = (&self.known, &self.sender) {
            self.transform.stats.associations(!pod.is_ignored).fetch_add(1, Ordering::Relaxed);
            verify_senders::write_verified_attributes(cluster, state, pod, self.address, writer);
            return;
        }
        let address = self.address.filter(|_| !(self.is_relayed && verify_senders::claims_identity(writer.attributes)));
        let asks_connection = self.uses_connection_address(writer.attributes);
        if let Some(address) = address.filter(|_| asks_connection)
            && (self.transform.settings.passthrough || self.transform.settings.metadata.contains(&Field::PodIp))
        {
            writer.put(Field::PodIp, address.to_string());
        }
        let mut key = std::mem::take(&mut self.key);
        if let Some((cluster, state)) = &self.known {
            let pod = self.find_pod(state, writer.attributes, address, &mut key);
            self.transform.stats.associations(pod.is_some()).fetch_add(1, Ordering::Relaxed);
            write_pod_attributes(cluster, state, pod, &mut writer);
        }
        self.key = key;
    }
}

impl PodAttributesEditor<'_> {
    /// Whether the address of the connection would determine the pod.
    fn uses_connection_address(&self, attributes: view::AttributesView<'_>) -> bool {
        let associations = &self.transform.settings.associations;
        if associations.is_empty() {
            !DEFAULT_ADDRESS_ATTRIBUTES.iter().any(|name| text(attributes, name).is_some())
        } else {
            associations.iter().flatten().any(|source| *source == AssociationSource::Connection)
        }
    }

    fn find_pod<'s>(
        &self,
        state: &'s ClusterObjects,
        attributes: view::AttributesView<'_>,
        address: Option<IpAddr>,
        key: &mut Vec<u8>,
    ) -> Option<&'s Arc<PodRecord>> {
        let associations = &self.transform.settings.associations;
        if associations.is_empty() {
            let named = DEFAULT_ADDRESS_ATTRIBUTES.iter().find_map(|name| text(attributes, name).map(str::to_owned));
            let host =
                || text(attributes, "host.name").filter(|name| name.parse::<IpAddr>().is_ok()).map(str::to_owned);
            let address = named.or_else(|| address.map(|address| address.to_string())).or_else(host)?;
            return state.find_pod(&extraction_rules::address_identifier(&address)).filter(|pod| !pod.is_ignored);
        }
        associations.iter().enumerate().find_map(|(number, sources)| {
            extraction_rules::begin_identifier(number, key);
            sources
                .iter()
                .all(|source| push_source_value(source, attributes, address, key))
                .then(|| state.find_pod(key))
                .flatten()
        })
    }
}

/// Appends the value of an association source; false if there is none.
fn push_source_value(
    source: &AssociationSource,
    attributes: view::AttributesView<'_>,
    address: Option<IpAddr>,
    key: &mut Vec<u8>,
) -> bool {
    match source {
        AssociationSource::Connection => {
            let Some(address) = address else { return false };
            extraction_rules::push_identifier_value(address.to_string().as_bytes(), key);
        }
        AssociationSource::Attribute(name) => {
            let Some(value) = text(attributes, name) else { return false };
            // A host name counts only if it is an IP address, which may be a pod's.
            if name == "host.name" && value.parse::<IpAddr>().is_err() {
                return false;
            }
            extraction_rules::push_identifier_value(value.as_bytes(), key);
        }
    }
    true
}

/// The text of an attribute, if it is present and not empty.
fn text<'a>(attributes: view::AttributesView<'a>, name: &str) -> Option<&'a str> {
    attributes.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Adds missing attributes, and overwrites those that identify a verified sender.
struct AttributeWriter<'a, 'e> {
    attributes: view::AttributesView<'a>,
    edits: &'e mut EditList,
    verified: Option<verify_senders::WrittenIdentity>,
}

impl AttributeWriter<'_, '_> {
    fn set(&mut self, key: bytes::Bytes, value: Value) {
        if let Some(claim) = self.verified.as_mut().and_then(|written| written.record_write(&key)) {
            // Attributes found by way of owners are written first, and are the better ones.
            if claim == verify_senders::FieldClaim::First {
                self.edits.push(MessageEdit::set(key, value));
            }
            return;
        }
        // An empty attribute counts as missing.
        match self.attributes.get(&key) {
            None => self.edits.push(MessageEdit::insert(key, value)),
            Some(AnyValue::None | AnyValue::String(b"")) => self.edits.push(MessageEdit::set(key, value)),
            Some(_) => {}
        }
    }

    fn put(&mut self, field: Field, value: String) {
        self.set(extraction_rules::attribute_key(field), Value::String(value));
    }

    fn set_all(&mut self, attributes: &ResourceAttributes) {
        attributes.iter().for_each(|(key, value)| self.set(key.clone(), value.clone()));
    }
}

/// Adds the known attributes of a resource's pod, or of the namespace and node that the resource names.
fn write_pod_attributes(
    cluster: &ClusterCache,
    state: &ClusterObjects,
    pod: Option<&Arc<PodRecord>>,
    writer: &mut AttributeWriter<'_, '_>,
) {
    let rules = &cluster.rules;
    let own = |name: &str| text(writer.attributes, name).map(str::to_owned);
    let own_namespace = own(Field::NamespaceName.name());
    let own_node = own(Field::NodeName.name());
    if let Some(pod) = pod {
        write_workload_attributes(cluster, state, pod, writer);
        writer.set_all(&pod.attributes);
        write_container_attributes(cluster, pod, writer);
        if rules.wants(Field::ClusterUid)
            && let Some(uid) = state.uid(ExtractFrom::Namespace, "kube-system")
        {
            writer.put(Field::ClusterUid, uid.to_owned());
        }
    }
    let namespace = pod.map(|pod| pod.namespace.clone()).or(own_namespace).filter(|name| !name.is_empty());
    if let Some(namespace) = namespace {
        if rules.wants(Field::ServiceNamespace) {
            writer.put(Field::ServiceNamespace, namespace.clone());
        }
        state.attributes(ExtractFrom::Namespace, namespace).into_iter().for_each(|given| writer.set_all(given));
    }
    let node = pod.map(|pod| pod.node.clone()).or(own_node).filter(|name| !name.is_empty());
    if let Some(node) = node {
        if let Some(uid) = state.uid(ExtractFrom::Node, &node).filter(|_| rules.wants(Field::NodeUid)) {
            writer.put(Field::NodeUid, uid.to_owned());
        }
        state.attributes(ExtractFrom::Node, node).into_iter().for_each(|given| writer.set_all(given));
    }
}

/// Adds attributes of the pod's controller and of that controller's owner.
fn write_workload_attributes(
    cluster: &ClusterCache,
    state: &ClusterObjects,
    pod: &PodRecord,
    writer: &mut AttributeWriter<'_, '_>,
) {
    let rules = &cluster.rules;
    let Some((owned, name, uid)) = &pod.controller else { return };
    let maker = state.workload_owner(uid);
    if let Some(maker) = maker {
        let (by_name, by_uid) = match owned {
            PodController::ReplicaSet => (Field::DeploymentName, Field::DeploymentUid),
            _ => (Field::CronJobName, Field::CronJobUid),
        };
        for (field, value) in [(by_name, &maker.name), (by_uid, &maker.uid)] {
            if rules.wants(field) {
                writer.put(field, value.clone());
            }
        }
    }
    let workload = match owned {
        PodController::ReplicaSet => maker.map(|maker| &maker.name),
        _ => Some(name),
    };
    if let Some(workload) = workload {
        let given = state.attributes(workload_kind(*owned), qualified_name(&pod.namespace, workload));
        given.into_iter().for_each(|given| writer.set_all(given));
    }
}

/// Adds attributes of the container, if it is clear which one it is.
fn write_container_attributes(cluster: &ClusterCache, pod: &PodRecord, writer: &mut AttributeWriter<'_, '_>) {
    let attributes = writer.attributes;
    let by_name = |name: &str| pod.containers.iter().find(|container| container.name == name);
    let by_id = |id: &str| pod.containers.iter().find(|container| container.runs.iter().any(|run| run.1 == id));
    let name = text(attributes, Field::ContainerName.name());
    let id = text(attributes, Field::ContainerId.name());
    let container: Option<&ContainerRecord> = match (name, id, &*pod.containers) {
        (Some(name), _, _) => by_name(name),
        (None, Some(id), _) => by_id(id),
        (None, None, [only]) => Some(only),
        _ => None,
    };
    let Some(container) = container else { return };
    writer.set_all(&container.attributes);
    let wanted = match attributes.get("k8s.container.restart_count") {
        Some(AnyValue::Int(count)) => Some(count),
        Some(AnyValue::String(text)) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        _ => container.runs.iter().map(|run| run.0).max(),
    };
    let run = container.runs.iter().find(|run| Some(run.0) == wanted);
    if let Some((_, id, digest)) = run {
        if cluster.rules.wants(Field::ContainerId) && !id.is_empty() {
            writer.put(Field::ContainerId, id.clone());
        }
        if let Some(digest) = digest.as_ref().filter(|_| cluster.rules.wants(Field::ContainerImageRepoDigests)) {
            writer.set(
                extraction_rules::attribute_key(Field::ContainerImageRepoDigests),
                Value::Array(vec![digest.clone().into()]),
            );
        }
    }
}
