//! `k8s_attributes`, `k8sattributes`: says which pod sent something.
//!
//! A resource is associated with a pod by the address that the request came from, or by attributes that it has, and is given
//! what is known of the pod, its containers, its workload, its namespace and its node. What a resource says itself stays, unless `verify_senders`
//! asks for the identity of the pod that the connection belongs to (see [`verify`]).
//!
//! *Guarantees.* The cluster is watched once for all pipelines that ask the same, and only what the rules need is asked for and kept
//! (see [`cluster`]). Requests never wait for the cluster, unless `wait_for_metadata` says so: then senders are told to
//! come again until all is known, or the time is up. *Does not* know an address that a proxy has hidden, and not whose of
//! several pods on the network of the host.

mod cluster;
mod image;
pub(crate) mod objects;
mod rules;
mod state;
mod verify;

#[cfg(test)]
mod tests;

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, RwLockReadGuard, atomic::Ordering},
};

use arc_swap::ArcSwap;
use kubewake_config::{
    ComponentId,
    model::{Field, KubernetesAttributes, KubernetesSource as Source, Owner},
};
use kubewake_otlp::{
    Allowance, Edit, Editor, Edits, NoMemory, Signal, Value, rewrite_within,
    view::{self, AnyValue, Resource},
};
use tokio::time::Instant;

use self::{
    cluster::{Cluster, ClusterUser, owner_of, qualified},
    rules::{Attributes, Container, Known, Owned},
    state::State,
};
use super::map::{Mapped, Mapper, Mapping};
use crate::{
    components::BuildError,
    core::{
        Answer, Batch, ClusterStats, Consumer, DropReason, Link, Part, Pressure, Processor, ProcessorStats, Refusal,
        Shared,
    },
};

/// Attributes that the Collector takes for the address of a pod when nothing else is said.
const USUAL_ADDRESSES: [&str; 2] = ["k8s.pod.ip", "ip"];

/// Whether the settings can be put into effect here.
pub fn check(settings: &KubernetesAttributes) -> Result<(), BuildError> {
    cluster::check(settings)
}

/// The processor in one pipeline.
pub struct Enricher {
    id: ComponentId,
    mapping: Arc<Mapping>,
    shared: Shared,
    stats: Arc<ClusterStats>,
    /// Until when senders may be told to come again, and of what they wait.
    gate: ArcSwap<Option<(Instant, Arc<Cluster>)>>,
    /// Keeps the cluster watched while this is part of a pipeline.
    user: Mutex<Option<ClusterUser>>,
}

impl Enricher {
    /// A step that leads nowhere yet.
    pub fn new(
        id: &ComponentId,
        signal: Signal,
        settings: &KubernetesAttributes,
        shared: &Shared,
        counters: (Arc<ProcessorStats>, Arc<ClusterStats>),
    ) -> Arc<Self> {
        let (steps, stats) = counters;
        let (mapper, gate, user) = mapper(id, settings, shared, &stats);
        let mapping = Mapping::new(signal, mapper, steps);
        let (gate, user) = (ArcSwap::from_pointee(gate), Mutex::new(user));
        Arc::new(Self { id: id.clone(), mapping, shared: shared.clone(), stats, gate, user })
    }

    /// Puts new settings in force.
    pub fn reconfigure(&self, settings: &KubernetesAttributes) {
        let (mapper, gate, user) = mapper(&self.id, settings, &self.shared, &self.stats);
        self.mapping.reconfigure(mapper);
        self.gate.store(Arc::new(gate));
        self.set_user(user);
    }

    fn set_user(&self, user: Option<ClusterUser>) {
        *self.user.lock().unwrap_or_else(PoisonError::into_inner) = user;
    }

    /// Until when to wait for what, if that is not over.
    fn waits(&self) -> Option<(Instant, Arc<Cluster>)> {
        let gate = self.gate.load();
        let (until, cluster) = gate.as_ref().as_ref()?;
        let ready = *cluster.ready().borrow();
        if !ready && Instant::now() < *until {
            return Some((*until, cluster.clone()));
        }
        if self.gate.swap(Arc::new(None)).is_some() && !ready {
            tracing::warn!(processor = %self.id,
                "the metadata of the cluster is still not there after wait_for_metadata_timeout; data goes on without it");
        }
        None
    }
}

type Gate = Option<(Instant, Arc<Cluster>)>;

fn mapper(
    id: &ComponentId,
    settings: &KubernetesAttributes,
    shared: &Shared,
    stats: &Arc<ClusterStats>,
) -> (Box<dyn Mapper>, Gate, Option<ClusterUser>) {
    let cluster = (!settings.passthrough).then(|| {
        let same = |cluster: &Cluster| cluster.rules.settings == *settings && !cluster.is_stopped();
        shared.get_or_make(same, || Cluster::start(settings, stats.clone(), id))
    });
    // Only a change of the document ends a cluster, and it makes what is new before it retires what went.
    let user = cluster.as_ref().and_then(ClusterUser::begin);
    if let Some(cluster) = &cluster {
        stats.looks_by(&cluster.view);
    }
    let gate = settings.wait.zip(cluster.clone()).map(|(wait, cluster)| (Instant::now() + wait, cluster));
    let enrich = Enrich { settings: settings.clone(), cluster, stats: stats.clone() };
    (Box::new(enrich), gate, user)
}

impl Consumer for Enricher {
    fn consume(self: Arc<Self>, batch: Batch, pressure: Pressure) -> Answer {
        let Some((until, cluster)) = self.waits() else { return self.mapping.clone().consume(batch, pressure) };
        if pressure == Pressure::Refuse {
            let message = "the metadata of the cluster is not there yet".into();
            return Answer::Now(Err(Refusal { message, ..Refusal::queue_full() }));
        }
        Answer::later(async move {
            let _ = tokio::time::timeout_at(until, cluster.ready().wait_for(|ready| *ready)).await;
            self.mapping.clone().consume(batch, pressure).wait().await
        })
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, batch: &Batch, reason: DropReason) {
        self.mapping.lost(batch, reason);
    }
}

impl Processor for Enricher {
    fn next(&self) -> &Link {
        self.mapping.next()
    }

    fn retire(&self) {
        self.gate.store(Arc::new(None));
        self.set_user(None);
    }

    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.mapping.flush()
    }
}

/// Gives resources what is known of their pods.
struct Enrich {
    settings: KubernetesAttributes,
    cluster: Option<Arc<Cluster>>,
    stats: Arc<ClusterStats>,
}

impl Mapper for Enrich {
    fn map(&self, signal: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<Mapped, NoMemory> {
        let address = part.origin.peer.as_ref().map(SocketAddr::ip).map(|ip| ip.to_canonical());
        let known = self.cluster.as_ref().map(|cluster| (&**cluster, cluster.state()));
        let sender = known.as_ref().zip(address).and_then(|((_, state), address)| self.sender(state, address));
        let mut editor = Given { enrich: self, known, sender, address, key: Vec::new() };
        let bytes = rewrite_within(signal, &part.bytes, &mut editor, memory)?;
        Ok(Mapped { bytes, items: part.items })
    }
}

/// The editor of one request.
struct Given<'a> {
    enrich: &'a Enrich,
    known: Option<(&'a Cluster, RwLockReadGuard<'a, State>)>,
    /// The pod that the connection belongs to, if what it says of itself does not count.
    sender: Option<Arc<Known>>,
    address: Option<IpAddr>,
    key: Vec<u8>,
}

impl Editor for Given<'_> {
    const RECORDS: bool = false;

    fn resource(&mut self, resource: Resource<'_>, edits: &mut Edits) {
        let mut writer = Writer { attributes: resource.attributes(), edits, verified: None };
        if let (Some((cluster, state)), Some(pod)) = (&self.known, &self.sender) {
            self.enrich.stats.associated(!pod.is_ignored).fetch_add(1, Ordering::Relaxed);
            verify::give_verified(cluster, state, pod, self.address, writer);
            return;
        }
        let asks_connection = self.asks_connection(writer.attributes);
        if let Some(address) = self.address.filter(|_| asks_connection)
            && (self.enrich.settings.passthrough || self.enrich.settings.metadata.contains(&Field::PodIp))
        {
            writer.put(Field::PodIp, address.to_string());
        }
        let mut key = std::mem::take(&mut self.key);
        if let Some((cluster, state)) = &self.known {
            let pod = self.find(state, writer.attributes, &mut key);
            self.enrich.stats.associated(pod.is_some()).fetch_add(1, Ordering::Relaxed);
            give(cluster, state, pod, &mut writer);
        }
        self.key = key;
    }
}

impl Given<'_> {
    /// Whether the address that the request came from would be the one to go by.
    fn asks_connection(&self, attributes: view::Attributes<'_>) -> bool {
        let associations = &self.enrich.settings.associations;
        match associations.is_empty() {
            true => !USUAL_ADDRESSES.iter().any(|name| text(attributes, name).is_some()),
            false => associations.iter().flatten().any(|source| *source == Source::Connection),
        }
    }

    fn find<'s>(
        &self,
        state: &'s State,
        attributes: view::Attributes<'_>,
        key: &mut Vec<u8>,
    ) -> Option<&'s Arc<Known>> {
        let associations = &self.enrich.settings.associations;
        if associations.is_empty() {
            let named = USUAL_ADDRESSES.iter().find_map(|name| text(attributes, name).map(str::to_owned));
            let host =
                || text(attributes, "host.name").filter(|name| name.parse::<IpAddr>().is_ok()).map(str::to_owned);
            let address = named.or_else(|| self.address.map(|address| address.to_string())).or_else(host)?;
            return state.find(&rules::by_address(&address)).filter(|pod| !pod.is_ignored);
        }
        associations.iter().enumerate().find_map(|(number, sources)| {
            rules::begin(number, key);
            sources.iter().all(|source| self.add(source, attributes, key)).then(|| state.find(key)).flatten()
        })
    }

    /// Adds the value of a source; false if there is none.
    fn add(&self, source: &Source, attributes: view::Attributes<'_>, key: &mut Vec<u8>) -> bool {
        match source {
            Source::Connection => {
                let Some(address) = self.address else { return false };
                rules::add(address.to_string().as_bytes(), key);
            }
            Source::Attribute(name) => {
                let Some(value) = text(attributes, name) else { return false };
                // A host's name is the address of a pod, or that of nobody.
                if name == "host.name" && value.parse::<IpAddr>().is_err() {
                    return false;
                }
                rules::add(value.as_bytes(), key);
            }
        }
        true
    }
}

/// A text that is there and says something.
fn text<'a>(attributes: view::Attributes<'a>, name: &str) -> Option<&'a str> {
    attributes.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// Writes attributes that are not there, and those that say who the sender is if that was verified.
struct Writer<'a, 'e> {
    attributes: view::Attributes<'a>,
    edits: &'e mut Edits,
    verified: Option<verify::Written>,
}

impl Writer<'_, '_> {
    fn set(&mut self, key: bytes::Bytes, value: Value) {
        if let Some(claim) = self.verified.as_mut().and_then(|written| written.claim(&key)) {
            // What is found out by way of owners comes first, and is the better.
            if claim == verify::Claim::First {
                self.edits.push(Edit::set(key, value));
            }
            return;
        }
        // One that is there and says nothing is as good as none.
        match self.attributes.get(&key) {
            None => self.edits.push(Edit::insert(key, value)),
            Some(AnyValue::None | AnyValue::String(b"")) => self.edits.push(Edit::set(key, value)),
            Some(_) => {}
        }
    }

    fn put(&mut self, field: Field, value: String) {
        self.set(rules::key(field), Value::String(value));
    }

    fn all(&mut self, attributes: &Attributes) {
        attributes.iter().for_each(|(key, value)| self.set(key.clone(), value.clone()));
    }
}

/// Gives a resource what is known of its pod, or of the namespace and node that it names itself.
fn give(cluster: &Cluster, state: &State, pod: Option<&Arc<Known>>, writer: &mut Writer<'_, '_>) {
    let rules = &cluster.rules;
    let own = |name: &str| text(writer.attributes, name).map(str::to_owned);
    let (own_namespace, own_node) = (own(Field::NamespaceName.name()), own(Field::NodeName.name()));
    if let Some(pod) = pod {
        give_workload(cluster, state, pod, writer);
        writer.all(&pod.attributes);
        give_container(cluster, pod, writer);
        if rules.wants(Field::ClusterUid)
            && let Some(uid) = state.uid(Owner::Namespace, "kube-system")
        {
            writer.put(Field::ClusterUid, uid.to_owned());
        }
    }
    let namespace = pod.map(|pod| pod.namespace.clone()).or(own_namespace).filter(|name| !name.is_empty());
    if let Some(namespace) = namespace {
        if rules.wants(Field::ServiceNamespace) {
            writer.put(Field::ServiceNamespace, namespace.clone());
        }
        state.attributes(Owner::Namespace, namespace).into_iter().for_each(|given| writer.all(given));
    }
    let node = pod.map(|pod| pod.node.clone()).or(own_node).filter(|name| !name.is_empty());
    if let Some(node) = node {
        if let Some(uid) = state.uid(Owner::Node, &node).filter(|_| rules.wants(Field::NodeUid)) {
            writer.put(Field::NodeUid, uid.to_owned());
        }
        state.attributes(Owner::Node, node).into_iter().for_each(|given| writer.all(given));
    }
}

/// What is found out by way of who made whoever made the pod, and what these say of themselves.
fn give_workload(cluster: &Cluster, state: &State, pod: &Known, writer: &mut Writer<'_, '_>) {
    let rules = &cluster.rules;
    let Some((owned, name, uid)) = &pod.owner else { return };
    let maker = state.maker(uid);
    if let Some(maker) = maker {
        let (by_name, by_uid) = match owned {
            Owned::ReplicaSet => (Field::DeploymentName, Field::DeploymentUid),
            _ => (Field::CronJobName, Field::CronJobUid),
        };
        for (field, value) in [(by_name, &maker.name), (by_uid, &maker.uid)] {
            if rules.wants(field) {
                writer.put(field, value.clone());
            }
        }
    }
    let workload = match owned {
        Owned::ReplicaSet => maker.map(|maker| &maker.name),
        _ => Some(name),
    };
    if let Some(workload) = workload {
        let given = state.attributes(owner_of(*owned), qualified(&pod.namespace, workload));
        given.into_iter().for_each(|given| writer.all(given));
    }
}

/// What is known of the container, if it is clear which one it is.
fn give_container(cluster: &Cluster, pod: &Known, writer: &mut Writer<'_, '_>) {
    let attributes = writer.attributes;
    let by_name = |name: &str| pod.containers.iter().find(|container| container.name == name);
    let by_id = |id: &str| pod.containers.iter().find(|container| container.runs.iter().any(|run| run.1 == id));
    let name = text(attributes, Field::ContainerName.name());
    let id = text(attributes, Field::ContainerId.name());
    let container: Option<&Container> = match (name, id, &*pod.containers) {
        (Some(name), _, _) => by_name(name),
        (None, Some(id), _) => by_id(id),
        (None, None, [only]) => Some(only),
        _ => None,
    };
    let Some(container) = container else { return };
    writer.all(&container.attributes);
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
            writer.set(rules::key(Field::ContainerImageRepoDigests), Value::Array(vec![digest.clone().into()]));
        }
    }
}
