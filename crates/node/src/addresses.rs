//! The addresses of a cluster: a block 127.B.0.0/16 that no other cluster of this machine uses at the same time.
//!
//! ```text
//!   127.B.0.0/20    node 0: its own address is 127.B.0.1, its pods have the others
//!   127.B.16.0/20   node 1
//!     …
//!   127.B.224.0/20  node 14
//!   127.B.240.0/20  Services
//! ```
//!
//! *Guarantees.* A block belongs to one cluster for as long as somebody holds the [`Block`], one of its ranges or an address of
//! them, and is free when the process is gone, however it went: it is an abstract Unix socket that says who has it, and the
//! kernel closes it. An address that is given back is the last of its range to be handed out again, so that what still
//! talks to the old pod does not reach a new one. *Assumes* that nothing but Kubewake uses 127.16.0.0 and above; as sockets do,
//! a block belongs to a network namespace.

use std::{
    collections::BTreeSet,
    fmt, io,
    net::Ipv4Addr,
    ops::RangeInclusive,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    sync::{Arc, Mutex, PoisonError},
};

/// Blocks that a cluster may have. Below are addresses that systems use themselves (127.0.0.53, 127.0.1.1); above is the broadcast
/// address.
const BLOCKS: RangeInclusive<u8> = 16..=250;

/// The fixed bits of the range of a node, and of that of Services: there are 16 of them in a block.
const BITS: u8 = 20;

/// The third bytes of addresses that one range has.
const BYTES: u8 = 16;

/// How many nodes have a range. What is left is for Services.
pub const NODES: u8 = 15;

/// The block of one cluster.
#[derive(Clone, Debug)]
pub struct Block {
    number: u8,
    nodes: Vec<NodeRange>,
}

impl Block {
    /// Takes a block: the preferred one (the B of 127.B.0.0/16) if it is free, else any other.
    pub fn take(preferred: Option<u8>) -> io::Result<Self> {
        let (first, last) = (*BLOCKS.start(), *BLOCKS.end());
        // Without a preference, those who start at the same time do not all go for the same one.
        let begin = preferred.unwrap_or_else(|| fastrand::u8(BLOCKS));
        if !BLOCKS.contains(&begin) {
            let message = format!("127.{begin}.0.0/16 cannot be a cluster's: choose from {first} to {last}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        for number in (begin..=last).chain(first..begin) {
            match claim(number) {
                Ok(claim) => return Ok(Self::new(number, Arc::new(claim))),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        let message = format!(
            "other clusters of this machine have all addresses from 127.{first}.0.0 to 127.{last}.255.255; stop one of them"
        );
        Err(io::Error::new(io::ErrorKind::AddrInUse, message))
    }

    fn new(number: u8, claim: Arc<UnixListener>) -> Self {
        let node = |index| NodeRange {
            network: Ipv4Addr::new(127, number, index * BYTES, 0),
            leases: Arc::new(Leases { pods: Mutex::default(), _claim: Arc::clone(&claim) }),
        };
        Self { number, nodes: (0..NODES).map(node).collect() }
    }

    /// The B of 127.B.0.0/16. A cluster that starts again with Services it had before needs the same one.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// Where Services have their addresses: a network and how many of its bits are fixed.
    pub fn services(&self) -> (Ipv4Addr, u8) {
        (Ipv4Addr::new(127, self.number, NODES * BYTES, 0), BITS)
    }

    /// The range of a node, counted from 0. There are [`NODES`]. Whoever asks twice gets the same one.
    pub fn node(&self, index: usize) -> Option<NodeRange> {
        self.nodes.get(index).cloned()
    }
}

/// Says machine-wide that the block is taken. Pods do not inherit it: the socket is closed when they start.
fn claim(number: u8) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("kubewake-cluster-127.{number}"))?)
}

/// The addresses of one node and of the pods on it. Clones are the same range.
#[derive(Clone, Debug)]
pub struct NodeRange {
    network: Ipv4Addr,
    leases: Arc<Leases>,
}

#[derive(Debug)]
struct Leases {
    pods: Mutex<Pods>,
    _claim: Arc<UnixListener>,
}

/// Addresses as their distance from that of the network.
#[derive(Debug, Default)]
struct Pods {
    taken: BTreeSet<u32>,
    /// The one handed out last.
    last: u32,
}

/// How many addresses a range has.
const SIZE: u32 = 1 << (32 - BITS);

/// The node's own address. Pods have those that come after it.
const NODE: u32 = 1;

impl NodeRange {
    /// The node's own address, its `InternalIP`.
    pub fn address(&self) -> Ipv4Addr {
        self.at(NODE)
    }

    /// The network and how many of its bits are fixed, as in `podCIDR`.
    pub fn network(&self) -> (Ipv4Addr, u8) {
        (self.network, BITS)
    }

    /// An address for a pod, or none when all are taken: the next one after that which was handed out last.
    pub fn take(&self) -> Option<PodAddress> {
        let mut pods = self.leases.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let from = pods.last.max(NODE) + 1;
        let number =
            (from..SIZE).chain(NODE + 1..from).find(|number| is_usual(*number) && !pods.taken.contains(number))?;
        pods.taken.insert(number);
        pods.last = number;
        Some(PodAddress { ip: self.at(number), number, leases: Arc::clone(&self.leases) })
    }

    fn at(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network) + number)
    }
}

/// Some programs take an address that ends in 0 or 255 for a network or for everybody.
fn is_usual(number: u32) -> bool {
    !matches!(number % 256, 0 | 255)
}

/// The address of one pod, which is given back when this is dropped.
pub struct PodAddress {
    ip: Ipv4Addr,
    number: u32,
    leases: Arc<Leases>,
}

impl PodAddress {
    /// The address.
    pub fn ip(&self) -> Ipv4Addr {
        self.ip
    }
}

impl fmt::Debug for PodAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PodAddress({})", self.ip)
    }
}

impl Drop for PodAddress {
    fn drop(&mut self) {
        self.leases.pods.lock().unwrap_or_else(PoisonError::into_inner).taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
