//! What kube-proxy does: whoever connects to the address of a Service reaches one of its pods.
//!
//! Each port of a Service is a socket on the Service's own address; ports of the nodes are sockets on the nodes' addresses and on
//! 127.0.0.1. Every connection is forwarded to a ready endpoint, in turn; where none is ready, to one that still serves while it
//! ends. An endpoint that refuses is passed over.
//!
//! *Guarantees.* A port without endpoints refuses connections, as on a real cluster, and is still held for its Service. A connection
//! outlives the change of its Service and of its endpoint, until one of its sides ends it; each side sees how the other one
//! ended. Nothing is read that the other side does not take, and the number of connections is bounded. What cannot be served
//! is an event of the Service.
//!
//! *Not done*: UDP and SCTP; `sessionAffinity: ClientIP` and `internalTrafficPolicy: Local`, as everybody on this machine
//! comes from 127.0.0.1; `externalIPs`; `healthCheckNodePort`.

mod backends;
mod door;
mod relay;
mod routes;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::Service;
use kube::{Resource, ResourceExt};
use tokio::task::JoinSet;

use self::{
    backends::Backends,
    door::{Door, Hall},
    routes::Route,
};
use crate::{
    controller::endpoints::SERVICE,
    events::Events,
    key::Key,
    queue::{Again, Queue},
    views::Views,
};

/// An address that somebody else uses is tried again after this time. Usually it is one of our own, and tried when that one goes.
const AGAIN: Duration = Duration::from_secs(5);

/// Forwards connections to Services.
pub struct Proxy {
    views: Views,
    events: Events,
    queue: Queue<Key>,
    hall: Arc<Hall>,
    served: Mutex<Served>,
}

/// What there is now.
#[derive(Default)]
struct Served {
    services: HashMap<Key, Doors>,
    /// Services that could not have an address since somebody used it.
    waiting: HashSet<Key>,
}

/// What a Service has.
#[derive(Default)]
struct Doors {
    open: BTreeMap<SocketAddr, Door>,
    /// What people were told last.
    complaints: Vec<String>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").finish_non_exhaustive()
    }
}

impl Proxy {
    /// Serves all Services there are and will be, until the task is dropped; connections end with it.
    pub fn start(views: &Views, events: Events, tasks: &mut JoinSet<()>) {
        let proxy = Self::new(views, events);
        proxy.listen();
        tasks.spawn(proxy.queue.clone().run("kube-proxy", 1, move |key| {
            let again = proxy.look(&key);
            async move { Ok(again) }
        }));
    }

    fn new(views: &Views, events: Events) -> Self {
        let (queue, hall, served) = (Queue::default(), Arc::default(), Mutex::default());
        Self { views: views.clone(), events, queue, hall, served }
    }

    fn listen(&self) {
        let to = self.queue.clone();
        self.views.services.on_change(move |change| {
            change.latest().into_iter().for_each(|service| to.add(Key::of(&**service)));
        });
        let to = self.queue.clone();
        self.views.endpoint_slices.on_change(move |change| {
            let slices = [&change.old, &change.new].into_iter().flatten();
            slices.filter_map(|slice| routes::service_of(slice)).for_each(|key| to.add(key));
        });
        let (to, services) = (self.queue.clone(), Arc::downgrade(&self.views.services));
        self.views.nodes.on_change(move |change| {
            let addresses =
                [&change.old, &change.new].map(|node| node.iter().flat_map(|node| routes::addresses(node)).collect());
            let [old, new]: [Vec<_>; 2] = addresses;
            if old != new {
                let services = services.upgrade().map(|view| view.all());
                services.into_iter().flatten().for_each(|service| to.add(Key::of(&*service)));
            }
        });
    }

    /// Brings the doors of a Service up to date.
    fn look(&self, key: &Key) -> Again {
        let service = self.views.services.get(key);
        let routes = service.as_ref().map(|service| self.routes(key, service)).unwrap_or_default();
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        let Served { services, waiting } = &mut *served;
        let doors = services.entry(key.clone()).or_default();
        let wanted: HashSet<SocketAddr> = routes.iter().flat_map(|route| route.addresses.iter().copied()).collect();
        let before = doors.open.len();
        doors.open.retain(|address, _| wanted.contains(address));
        if doors.open.len() < before {
            // Somebody may have waited for an address that is free now.
            waiting.drain().for_each(|key| self.queue.add(key));
        }
        let (complaints, in_use) = self.open(doors, routes);
        match service {
            Some(service) => self.complain(doors, complaints, &service),
            None => drop(services.remove(key)),
        }
        if in_use {
            waiting.insert(key.clone());
        }
        in_use.then_some(AGAIN)
    }

    fn routes(&self, key: &Key, service: &Service) -> Vec<Route> {
        let mut slices = self.views.endpoint_slices.within(&key.namespace);
        slices.retain(|slice| slice.labels().get(SERVICE) == Some(&key.name));
        let nodes: Vec<_> = self.views.nodes.all().iter().flat_map(|node| routes::addresses(node)).collect();
        routes::routes(service, &slices, &nodes)
    }

    /// What could not be done, and whether somebody else has an address.
    fn open(&self, doors: &mut Doors, routes: Vec<Route>) -> (Vec<String>, bool) {
        let (mut complaints, mut in_use) = (Vec::new(), false);
        for route in routes {
            complaints.extend(route.complaint);
            let backends = Arc::new(Backends::new(route.backends));
            for address in route.addresses {
                let mut door = doors.open.remove(&address).unwrap_or_else(|| Door::new(address, &self.hall));
                match door.lead_to(&backends) {
                    Ok(()) => drop(doors.open.insert(address, door)),
                    Err(error) => {
                        in_use |= error.kind() == io::ErrorKind::AddrInUse;
                        complaints.push(format!("Cannot listen on {address} for port {}: {}", route.name, why(&error)));
                    }
                }
            }
        }
        (complaints, in_use)
    }

    /// Tells people once.
    fn complain(&self, doors: &mut Doors, complaints: Vec<String>, service: &Service) {
        for complaint in complaints.iter().filter(|complaint| !doors.complaints.contains(complaint)) {
            tracing::warn!(service = %Key::of(service), complaint, "a port of a Service is not served");
            self.events.warning(service.object_ref(&()), "FailedToListen", complaint.clone());
        }
        doors.complaints = complaints;
    }
}

/// Why, and what can be done.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "permission denied; give the Service a port above 1023, or lower net.ipv4.ip_unprivileged_port_start"
                .to_owned()
        }
        io::ErrorKind::AddrInUse => {
            "the address is in use; stop what listens there, perhaps a program that listens on all addresses (0.0.0.0)"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "it is no address of this machine; Services of this cluster have addresses in 127.0.0.0/8".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
