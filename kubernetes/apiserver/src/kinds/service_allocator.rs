//! Allocates the addresses and node ports of Services.
//!
//! Numbers are allocated in turn, so that two concurrent Services do not get the same one; whether a number is
//! taken is looked up among the stored Services, so that nothing has to be released. Two writers may request
//! the same number at the same time: of two new Services, the one that is stored first keeps it. The first
//! address of the range is reserved for `default/kubernetes`.
//!
//! A Service that is deleted and created again gets its previous address, if that is free. kube-apiserver does
//! not guarantee this, but its pods look names up; the embedded cluster has no DNS, and its pods were started
//! with an address.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    net::Ipv4Addr,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use kubewake_runtime::lock::Mutex;
use serde_json::Value;

use super::json_object::list_at;
use crate::api::ObjectKey;

/// The Service with this address or node port, the first one if there are several.
pub type AllocationLookup = Box<dyn Fn(&ServiceAllocation) -> Option<ObjectKey> + Send + Sync>;

/// An address or port that only one Service can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServiceAllocation {
    Ip(Ipv4Addr),
    NodePort(u16),
}

impl ServiceAllocation {
    /// All allocations of a Service.
    pub fn allocations_of_service(service: &Value) -> BTreeSet<Self> {
        let ips = list_at(service, &["spec", "clusterIPs"]).iter();
        let ips = ips.filter_map(|ip| ip.as_str()?.parse().ok()).map(Self::Ip);
        let ports = list_at(service, &["spec", "ports"]).iter().filter_map(|port| port.get("nodePort"));
        let health = service.pointer("/spec/healthCheckNodePort");
        let ports = ports.chain(health).filter_map(Value::as_u64).filter(|port| *port != 0);
        ips.chain(ports.filter_map(|port| u16::try_from(port).ok()).map(Self::NodePort)).collect()
    }
}

/// Allocates addresses and node ports.
pub struct ServiceAllocator {
    first: u32,
    bits: u8,
    next_ip: AtomicU32,
    next_port: AtomicU32,
    /// The last address of each Service, by namespace and name.
    last_ips: Mutex<HashMap<String, Ipv4Addr>>,
    holder: OnceLock<AllocationLookup>,
}

/// The limit of remembered addresses, so that creating and deleting Services does not grow memory.
const MAX_REMEMBERED_SERVICES: usize = 1024;

/// kube-apiserver's default range of node ports.
const NODE_PORT_RANGE: std::ops::RangeInclusive<u32> = 30000..=32767;

impl ServiceAllocator {
    /// The default range of Service addresses.
    pub const DEFAULT_RANGE: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 24);

    /// The network address of the range.
    pub fn network(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.first)
    }

    /// An allocator for a range such as `10.0.0.0/24`: the network address and the length of its prefix.
    pub fn new(network: Ipv4Addr, bits: u8) -> Self {
        let bits = bits.min(30);
        let first = u32::from(network) & (u32::MAX << (32 - u32::from(bits)));
        let next_ip = AtomicU32::new(0);
        let next_port = AtomicU32::new(0);
        Self { first, bits, next_ip, next_port, last_ips: Mutex::default(), holder: OnceLock::new() }
    }

    /// Sets the look-up of current holders. Only the first call counts; without one, everything is free.
    pub fn ask(&self, holder: AllocationLookup) {
        let _ = self.holder.set(holder);
    }

    /// A free address for this Service; none if all are taken.
    pub fn allocate_ip(&self, namespace: &str, name: &str) -> Option<Ipv4Addr> {
        let mut last_ips = self.last_ips.lock();
        let service = format!("{namespace}/{name}");
        let last = last_ips.get(&service).copied().filter(|ip| self.holder(&ServiceAllocation::Ip(*ip)).is_none());
        let ip = last.or_else(|| self.next_free_ip())?;
        if last_ips.len() >= MAX_REMEMBERED_SERVICES && !last_ips.contains_key(&service) {
            let forgotten = last_ips.keys().next().cloned();
            forgotten.and_then(|service| last_ips.remove(&service));
        }
        last_ips.insert(service, ip);
        Some(ip)
    }

    fn next_free_ip(&self) -> Option<Ipv4Addr> {
        // Without the network address, the first one (for `kubernetes`) and the broadcast address.
        let count = (1u32 << (32 - u32::from(self.bits))) - 3;
        self.next_free(&self.next_ip, count, |number| ServiceAllocation::Ip(Ipv4Addr::from(self.first + 2 + number)))
            .and_then(|claim| if let ServiceAllocation::Ip(ip) = claim { Some(ip) } else { None })
    }

    /// A free node port; none if all are taken.
    pub fn allocate_node_port(&self) -> Option<u16> {
        let count = NODE_PORT_RANGE.end() - NODE_PORT_RANGE.start() + 1;
        let port =
            |number| ServiceAllocation::NodePort(u16::try_from(NODE_PORT_RANGE.start() + number).unwrap_or(u16::MAX));
        self.next_free(&self.next_port, count, port)
            .and_then(|claim| if let ServiceAllocation::NodePort(port) = claim { Some(port) } else { None })
    }

    /// The Service that holds an allocation.
    pub fn holder(&self, claim: &ServiceAllocation) -> Option<ObjectKey> {
        self.holder.get().and_then(|holder| holder(claim))
    }

    pub fn contains(&self, ip: Ipv4Addr) -> bool {
        let size = 1u32 << (32 - u32::from(self.bits));
        (self.first + 1..self.first + size - 1).contains(&u32::from(ip))
    }

    pub fn contains_port(port: i64) -> bool {
        u32::try_from(port).is_ok_and(|port| NODE_PORT_RANGE.contains(&port))
    }

    fn next_free(
        &self,
        next: &AtomicU32,
        count: u32,
        claim: impl Fn(u32) -> ServiceAllocation,
    ) -> Option<ServiceAllocation> {
        (0..count)
            .map(|_| claim(next.fetch_add(1, Ordering::Relaxed) % count))
            .find(|claim| self.holder(claim).is_none())
    }
}

impl Default for ServiceAllocator {
    fn default() -> Self {
        let (network, bits) = Self::DEFAULT_RANGE;
        Self::new(network, bits)
    }
}

/// The range, as in messages.
impl fmt::Display for ServiceAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.bits)
    }
}

impl fmt::Debug for ServiceAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Addresses({self})")
    }
}
