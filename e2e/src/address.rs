//! Addresses that nobody uses.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the range from which the kernel takes the ports of clients, so that no connection of another test is given
/// one between our look and its use.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;
/// How far apart processes with neighbouring ids begin. It is the golden ratio's part of all ports, so that those of dozens of
/// processes are hundreds of ports apart.
const STRIDE: u32 = 12_361;

/// An address on the loopback interface that is free, and is given out once in this process.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id().wrapping_mul(STRIDE) % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + (begin + step) % COUNT));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("all of {COUNT} ports are in use");
}
