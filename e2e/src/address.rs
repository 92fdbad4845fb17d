//! Addresses that nobody uses.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

/// Below the range from which the kernel takes the ports of clients, so that no connection of another test is given
/// one between our look and its use.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// An address on the loopback interface that is free, and is given out once in this process.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin at different places.
    let begin = (std::process::id() % u32::from(COUNT)) as u16;
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + (begin + step) % COUNT));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("all of {COUNT} ports are in use");
}
