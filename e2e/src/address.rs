//! Free addresses on the loopback interface.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the range of ephemeral ports, so that no outgoing connection of another test takes one between the
/// check and its use.
const FIRST_PORT: u16 = 12_000;
const PORT_COUNT: u16 = 20_000;
/// Distance between the first ports of processes with neighbouring ids: the golden ratio of all ports, which
/// keeps dozens of processes hundreds of ports apart.
const PROCESS_PORT_STRIDE: u32 = 12_361;

/// A free address on the loopback interface. This process gets each address once.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id().wrapping_mul(PROCESS_PORT_STRIDE) % u32::from(PORT_COUNT)) as u16;
    for _ in 0..PORT_COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % PORT_COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST_PORT + (begin + step) % PORT_COUNT));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("all of {PORT_COUNT} ports are in use");
}
