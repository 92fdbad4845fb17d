//! The addresses of a cluster: a block 127.B.0.0/16 that no other cluster of this machine uses concurrently.
//!
//! ```text
//!   127.B.0.0/20    node 0: its own address is 127.B.0.1, its pods have the others
//!   127.B.16.0/20   node 1
//!     …
//!   127.B.224.0/20  node 14
//!   127.B.240.0/20  Services
//! ```
//!
//! *Guaranteed*: a block belongs to one cluster for as long as the [`AddressBlock`], one of its ranges or one
//! of their addresses is held, and is free when the process has ended, in whatever way: the block is reserved
//! by an abstract Unix socket, which the kernel closes. A released address is the last of its range to be
//! allocated again, so that clients of the old pod do not reach a new one. *Assumed*: only Kubewake uses
//! 127.16.0.0 and above. Like sockets, a block belongs to a network namespace.

use std::{
    collections::BTreeSet,
    fmt, io,
    net::Ipv4Addr,
    ops::RangeInclusive,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    sync::Arc,
};

use kubewake_runtime::lock::Mutex;

/// The blocks that clusters use. Lower addresses are used by systems themselves (127.0.0.53, 127.0.1.1); the
/// highest is the broadcast address.
const BLOCK_NUMBERS: RangeInclusive<u8> = 16..=250;

/// The prefix length of the range of a node or of Services: there are 16 ranges in a block.
const RANGE_PREFIX_LENGTH: u8 = 20;

/// The number of values of the third byte in one range.
const THIRD_OCTETS_PER_RANGE: u8 = 16;

/// The number of ranges for nodes. The last range of a block is for Services.
pub const MAX_NODES: u8 = 15;

#[derive(Clone, Debug)]
pub struct AddressBlock {
    number: u8,
    nodes: Vec<NodeRange>,
}

impl AddressBlock {
    /// Reserves a block: the preferred one (the B of 127.B.0.0/16) if it is free, else any other.
    pub fn acquire(preferred: Option<u8>) -> io::Result<Self> {
        let first = *BLOCK_NUMBERS.start();
        let last = *BLOCK_NUMBERS.end();
        // A random start avoids that clusters which start at the same time compete for the same block.
        let begin = preferred.unwrap_or_else(|| fastrand::u8(BLOCK_NUMBERS));
        if !BLOCK_NUMBERS.contains(&begin) {
            let message =
                format!("127.{begin}.0.0/16 is not a valid address block of a cluster: choose from {first} to {last}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        for number in (begin..=last).chain(first..begin) {
            match bind_block_socket(number) {
                Ok(claim) => return Ok(Self::new(number, Arc::new(claim))),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
        let message = format!(
            "all addresses from 127.{first}.0.0 to 127.{last}.255.255 are in use by other clusters on this machine; stop one of them"
        );
        Err(io::Error::new(io::ErrorKind::AddrInUse, message))
    }

    fn new(number: u8, claim: Arc<UnixListener>) -> Self {
        let node = |index| NodeRange {
            network: Ipv4Addr::new(127, number, index * THIRD_OCTETS_PER_RANGE, 0),
            leases: Arc::new(AddressLeases { pods: Mutex::default(), _claim: Arc::clone(&claim) }),
        };
        Self { number, nodes: (0..MAX_NODES).map(node).collect() }
    }

    /// The B of 127.B.0.0/16. A cluster that restarts with existing Services needs the same one.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The network of Service addresses and its prefix length.
    pub fn services(&self) -> (Ipv4Addr, u8) {
        (Ipv4Addr::new(127, self.number, MAX_NODES * THIRD_OCTETS_PER_RANGE, 0), RANGE_PREFIX_LENGTH)
    }

    /// The range of a node, counted from 0, below [`MAX_NODES`]. The same index gives the same range.
    pub fn node(&self, index: usize) -> Option<NodeRange> {
        self.nodes.get(index).cloned()
    }
}

/// Reserves the block for this machine. Pods do not inherit the socket: it is closed on exec.
fn bind_block_socket(number: u8) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("kubewake-cluster-127.{number}"))?)
}

/// The addresses of one node and its pods. Clones share their state.
#[derive(Clone, Debug)]
pub struct NodeRange {
    network: Ipv4Addr,
    leases: Arc<AddressLeases>,
}

#[derive(Debug)]
struct AddressLeases {
    pods: Mutex<PodAddresses>,
    _claim: Arc<UnixListener>,
}

/// Allocated addresses, as offsets from the network address.
#[derive(Debug, Default)]
struct PodAddresses {
    taken: BTreeSet<u32>,
    /// The last allocated offset.
    last: u32,
}

/// The number of addresses in a range.
const ADDRESSES_PER_RANGE: u32 = 1 << (32 - RANGE_PREFIX_LENGTH);

/// The offset of the node's own address. The addresses of pods follow.
const NODE_ADDRESS_OFFSET: u32 = 1;

impl NodeRange {
    /// The node's own address, its `InternalIP`.
    pub fn address(&self) -> Ipv4Addr {
        self.nth_address(NODE_ADDRESS_OFFSET)
    }

    /// The network and its prefix length, as in `podCIDR`.
    pub fn network(&self) -> (Ipv4Addr, u8) {
        (self.network, RANGE_PREFIX_LENGTH)
    }

    /// Allocates an address for a pod: the next free one after the last allocated. None when all are in use.
    pub fn allocate(&self) -> Option<PodAddress> {
        let mut pods = self.leases.pods.lock();
        let from = pods.last.max(NODE_ADDRESS_OFFSET) + 1;
        let number = (from..ADDRESSES_PER_RANGE)
            .chain(NODE_ADDRESS_OFFSET + 1..from)
            .find(|number| is_plain_host_address(*number) && !pods.taken.contains(number))?;
        pods.taken.insert(number);
        pods.last = number;
        Some(PodAddress { ip: self.nth_address(number), number, leases: Arc::clone(&self.leases) })
    }

    fn nth_address(&self, number: u32) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.network) + number)
    }
}

/// Some programs take an address that ends in 0 or 255 for a network or broadcast address.
fn is_plain_host_address(number: u32) -> bool {
    !matches!(number % 256, 0 | 255)
}

/// The address of one pod, released on drop.
pub struct PodAddress {
    ip: Ipv4Addr,
    number: u32,
    leases: Arc<AddressLeases>,
}

impl PodAddress {
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
        self.leases.pods.lock().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
