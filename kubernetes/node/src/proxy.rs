//! The proxy: forwards connections to the address of a Service to one of its pods, like kube-proxy.
//!
//! Each port of a Service is a socket on the Service's own address; node ports are sockets on the nodes'
//! addresses and on 127.0.0.1. Connections are forwarded to ready endpoints in turn; if none is ready, to
//! endpoints that are terminating but still serving. An endpoint that refuses is skipped.
//!
//! *Guaranteed*: a port without endpoints refuses connections, as on a real cluster, and stays reserved for its
//! Service. A connection survives changes of its Service and endpoints until one of its sides ends it; each
//! side sees how the other one ended. Nothing is read before the other side can take it, and the number of
//! connections is bounded. A port that cannot be served is reported by an Event of the Service.
//!
//! *Not done*: UDP and SCTP; `sessionAffinity: ClientIP` and `internalTrafficPolicy: Local`, as all clients of
//! this machine come from 127.0.0.1; `externalIPs`; `healthCheckNodePort`.

mod backends;
mod listener;
mod relay;
mod routes;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::Service;
use kube::{Resource, ResourceExt};
use kubewake_runtime::lock::Mutex;
use tokio::task::JoinSet;

use self::{
    backends::ServiceBackends,
    listener::{ConnectionSet, PortListener},
    routes::ServiceRoute,
};
use crate::{
    controller::endpoints::SERVICE_NAME_LABEL,
    events::EventRecorder,
    informers::InformerSet,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

/// The retry delay for an address in use. Usually another listener of ours has it, and its release triggers an
/// earlier retry.
const ADDRESS_RETRY_INTERVAL: Duration = Duration::from_secs(5);

pub struct ServiceProxy {
    informers: InformerSet,
    events: EventRecorder,
    queue: WorkQueue<NamespacedKey>,
    connections: Arc<ConnectionSet>,
    state: Mutex<ProxyState>,
}

#[derive(Default)]
struct ProxyState {
    services: HashMap<NamespacedKey, ServiceListeners>,
    /// Services that wait for an address in use.
    waiting: HashSet<NamespacedKey>,
}

#[derive(Default)]
struct ServiceListeners {
    listeners: BTreeMap<SocketAddr, PortListener>,
    /// The problems that were reported last.
    complaints: Vec<String>,
}

impl std::fmt::Debug for ServiceProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

impl ServiceProxy {
    /// Serves all current and later Services until the task is dropped, which also ends the connections.
    pub fn start(views: &InformerSet, events: EventRecorder, tasks: &mut JoinSet<()>) {
        let proxy = Self::new(views, events);
        proxy.listen();
        tasks.spawn(proxy.queue.clone().run_workers("kube-proxy", 1, move |key| {
            let again = proxy.sync_service(&key);
            async move { Ok(again) }
        }));
    }

    fn new(views: &InformerSet, events: EventRecorder) -> Self {
        let queue = WorkQueue::default();
        let connections = Arc::default();
        let state = Mutex::default();
        Self { informers: views.clone(), events, queue, connections, state }
    }

    fn listen(&self) {
        let to = self.queue.clone();
        self.informers.services.on_change(move |change| {
            change.latest().into_iter().for_each(|service| to.add(NamespacedKey::from_object(&**service)));
        });
        let to = self.queue.clone();
        self.informers.endpoint_slices.on_change(move |change| {
            let slices = [&change.old, &change.new].into_iter().flatten();
            slices.filter_map(|slice| routes::service_of(slice)).for_each(|key| to.add(key));
        });
        let to = self.queue.clone();
        let services = Arc::downgrade(&self.informers.services);
        self.informers.nodes.on_change(move |change| {
            let addresses = [&change.old, &change.new]
                .map(|node| node.iter().flat_map(|node| routes::node_addresses(node)).collect());
            let [old, new]: [Vec<_>; 2] = addresses;
            if old != new {
                let services = services.upgrade().map(|view| view.all());
                services.into_iter().flatten().for_each(|service| to.add(NamespacedKey::from_object(&*service)));
            }
        });
    }

    /// Updates the listeners of a Service.
    fn sync_service(&self, key: &NamespacedKey) -> RequeueAfter {
        let service = self.informers.services.get(key);
        let routes = service.as_ref().map(|service| self.service_routes(key, service)).unwrap_or_default();
        let mut served = self.state.lock();
        let ProxyState { services, waiting } = &mut *served;
        let doors = services.entry(key.clone()).or_default();
        let wanted: HashSet<SocketAddr> = routes.iter().flat_map(|route| route.addresses.iter().copied()).collect();
        let before = doors.listeners.len();
        doors.listeners.retain(|address, _| wanted.contains(address));
        if doors.listeners.len() < before {
            // Other Services may wait for an address that is free now.
            waiting.drain().for_each(|key| self.queue.add(key));
        }
        let (complaints, in_use) = self.open_listeners(doors, routes);
        match service {
            Some(service) => self.record_complaints(doors, complaints, &service),
            None => drop(services.remove(key)),
        }
        if in_use {
            waiting.insert(key.clone());
        }
        in_use.then_some(ADDRESS_RETRY_INTERVAL)
    }

    fn service_routes(&self, key: &NamespacedKey, service: &Service) -> Vec<ServiceRoute> {
        let mut slices = self.informers.endpoint_slices.in_namespace(&key.namespace);
        slices.retain(|slice| slice.labels().get(SERVICE_NAME_LABEL) == Some(&key.name));
        let nodes: Vec<_> = self.informers.nodes.all().iter().flat_map(|node| routes::node_addresses(node)).collect();
        routes::service_routes(service, &slices, &nodes)
    }

    /// Returns the problems, and whether an address is in use by others.
    fn open_listeners(&self, doors: &mut ServiceListeners, routes: Vec<ServiceRoute>) -> (Vec<String>, bool) {
        let mut complaints = Vec::new();
        let mut in_use = false;
        for route in routes {
            complaints.extend(route.complaint);
            let backends = Arc::new(ServiceBackends::new(route.backends));
            for address in route.addresses {
                let mut door =
                    doors.listeners.remove(&address).unwrap_or_else(|| PortListener::new(address, &self.connections));
                match door.set_backends(&backends) {
                    Ok(()) => drop(doors.listeners.insert(address, door)),
                    Err(error) => {
                        in_use |= error.kind() == io::ErrorKind::AddrInUse;
                        complaints.push(format!(
                            "Cannot listen on {address} for port {}: {}",
                            route.name,
                            bind_error_message(&error)
                        ));
                    }
                }
            }
        }
        (complaints, in_use)
    }

    fn record_complaints(&self, doors: &mut ServiceListeners, complaints: Vec<String>, service: &Service) {
        for complaint in complaints.iter().filter(|complaint| !doors.complaints.contains(complaint)) {
            tracing::warn!(service = %NamespacedKey::from_object(service), complaint, "failed to serve a port of a Service");
            self.events.record_warning(service.object_ref(&()), "FailedToListen", complaint.clone());
        }
        doors.complaints = complaints;
    }
}

/// The error with a remedy.
fn bind_error_message(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "permission denied; give the Service a port above 1023, or lower net.ipv4.ip_unprivileged_port_start"
                .to_owned()
        }
        io::ErrorKind::AddrInUse => {
            "the address is in use; stop the program that listens on this address or on all addresses (0.0.0.0)"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "it is not an address of this machine; Services of this cluster have addresses in 127.0.0.0/8".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
