//! The addresses and node ports of Services.
//!
//! Numbers are handed out in turn, so that two Services made at the same time are not given the same one; what is taken is asked of
//! whoever keeps the Services, so that nothing has to be given back. Who asks for a number may meet another who asks for it at the
//! same time: of Services that are created, the one that is stored first has it. The first address of the range is for
//! `default/kubernetes`.
//!
//! A Service that is deleted and created again gets the address that it had, if that is free. kube-apiserver promises no such
//! thing, but its pods look names up; the embedded cluster has no DNS, and its pods were told an address.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    net::Ipv4Addr,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use serde_json::Value;

use super::object::list_at;
use crate::api::ObjectKey;

/// The Service that has this address or this node port, the first one if there are more.
pub type Holder = Box<dyn Fn(&Claim) -> Option<ObjectKey> + Send + Sync>;

/// What a Service can have for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// A cluster IP.
    Ip(Ipv4Addr),
    /// A node port.
    NodePort(u16),
}

impl Claim {
    /// All that a Service has.
    pub fn all_of(service: &Value) -> BTreeSet<Self> {
        let ips = list_at(service, &["spec", "clusterIPs"]).iter();
        let ips = ips.filter_map(|ip| ip.as_str()?.parse().ok()).map(Self::Ip);
        let ports = list_at(service, &["spec", "ports"]).iter().filter_map(|port| port.get("nodePort"));
        let health = service.pointer("/spec/healthCheckNodePort");
        let ports = ports.chain(health).filter_map(Value::as_u64).filter(|port| *port != 0);
        ips.chain(ports.filter_map(|port| u16::try_from(port).ok()).map(Self::NodePort)).collect()
    }
}

/// Hands out addresses and node ports.
pub struct Addresses {
    first: u32,
    bits: u8,
    next_ip: AtomicU32,
    next_port: AtomicU32,
    /// The address that each Service was given last, by namespace and name.
    last_ips: Mutex<HashMap<String, Ipv4Addr>>,
    holder: OnceLock<Holder>,
}

/// How many Services' last addresses are remembered, so that making and deleting Services does not grow memory.
const MAX_REMEMBERED_SERVICES: usize = 1024;

/// kube-apiserver's default range of node ports.
const PORTS: std::ops::RangeInclusive<u32> = 30000..=32767;

impl Addresses {
    /// The range of a server that nobody told another.
    pub const DEFAULT: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 24);

    /// Addresses of a range such as `10.0.0.0/24`: the network's address and how many bits of it are fixed.
    pub fn new(network: Ipv4Addr, bits: u8) -> Self {
        let bits = bits.min(30);
        let first = u32::from(network) & (u32::MAX << (32 - u32::from(bits)));
        let (next_ip, next_port) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { first, bits, next_ip, next_port, last_ips: Mutex::default(), holder: OnceLock::new() }
    }

    /// Says how to find out who has what. Only the first answer counts; without one nobody has anything.
    pub fn ask(&self, holder: Holder) {
        let _ = self.holder.set(holder);
    }

    /// A free address for this Service, or none when all are taken.
    pub fn ip_for(&self, namespace: &str, name: &str) -> Option<Ipv4Addr> {
        let mut last_ips = self.last_ips.lock().unwrap_or_else(PoisonError::into_inner);
        let service = format!("{namespace}/{name}");
        let last = last_ips.get(&service).copied().filter(|ip| self.holder(&Claim::Ip(*ip)).is_none());
        let ip = last.or_else(|| self.next_free_ip())?;
        if last_ips.len() >= MAX_REMEMBERED_SERVICES && !last_ips.contains_key(&service) {
            let forgotten = last_ips.keys().next().cloned();
            forgotten.and_then(|service| last_ips.remove(&service));
        }
        last_ips.insert(service, ip);
        Some(ip)
    }

    fn next_free_ip(&self) -> Option<Ipv4Addr> {
        // without the network, the first (for `kubernetes`) and the broadcast address
        let count = (1u32 << (32 - u32::from(self.bits))) - 3;
        self.turn(&self.next_ip, count, |number| Claim::Ip(Ipv4Addr::from(self.first + 2 + number)))
            .and_then(|claim| if let Claim::Ip(ip) = claim { Some(ip) } else { None })
    }

    /// A free node port, or none when all are taken.
    pub fn node_port(&self) -> Option<u16> {
        let count = PORTS.end() - PORTS.start() + 1;
        let port = |number| Claim::NodePort(u16::try_from(PORTS.start() + number).unwrap_or(u16::MAX));
        self.turn(&self.next_port, count, port)
            .and_then(|claim| if let Claim::NodePort(port) = claim { Some(port) } else { None })
    }

    /// The Service that has it.
    pub fn holder(&self, claim: &Claim) -> Option<ObjectKey> {
        self.holder.get().and_then(|holder| holder(claim))
    }

    /// Whether an address is of the range.
    pub fn contains(&self, ip: Ipv4Addr) -> bool {
        let size = 1u32 << (32 - u32::from(self.bits));
        (self.first + 1..self.first + size - 1).contains(&u32::from(ip))
    }

    /// Whether a port is of the range of node ports.
    pub fn contains_port(port: i64) -> bool {
        u32::try_from(port).is_ok_and(|port| PORTS.contains(&port))
    }

    fn turn(&self, next: &AtomicU32, count: u32, claim: impl Fn(u32) -> Claim) -> Option<Claim> {
        (0..count)
            .map(|_| claim(next.fetch_add(1, Ordering::Relaxed) % count))
            .find(|claim| self.holder(claim).is_none())
    }
}

impl Default for Addresses {
    fn default() -> Self {
        let (network, bits) = Self::DEFAULT;
        Self::new(network, bits)
    }
}

/// The range, as in messages.
impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.first), self.bits)
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Addresses({self})")
    }
}
