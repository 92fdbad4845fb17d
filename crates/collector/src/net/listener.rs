//! Listening sockets, and the limits of the connections that come in on them.
//!
//! The accept loop is that of [`kubewake_runtime::listener`].

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
};

pub use kubewake_runtime::listener::{ConnectionListener, ShutdownSignal};
use kubewake_runtime::listener::{DropPolicy, FullPolicy, ListenerOptions};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::components::BuildError;

/// Concurrent connections of one receiver. Each may hold a window of unread data, so there must be a limit;
/// this one is more than a node's workloads open.
pub const MAX_RECEIVER_CONNECTIONS: usize = 10_000;

/// Connections that the kernel queues until they are accepted.
const ACCEPT_BACKLOG: u32 = 1024;

/// Listens on `endpoint` (`host:port`; without a host: on all addresses).
pub fn bind(endpoint: &str) -> Result<TcpListener, BuildError> {
    let address = resolve_endpoint(endpoint)?;
    let listen = |address: SocketAddr| -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(ACCEPT_BACKLOG)
    };
    listen(address)
        .map_err(|error| BuildError(format!("failed to listen on {endpoint}: {}", describe_bind_error(&error))))
}

/// The address that an endpoint names.
pub(super) fn resolve_endpoint(endpoint: &str) -> Result<SocketAddr, BuildError> {
    let Some((host, port)) = endpoint.rsplit_once(':') else {
        return Err(BuildError(format!("failed to listen on {endpoint}: missing port in address; write host:port")));
    };
    // Without a host: every address. The wildcard of IPv6 takes IPv4 too, if there is IPv6.
    let host = match host {
        "" if ipv6_works() => "[::]",
        "" => "0.0.0.0",
        host => host,
    };
    let addresses = format!("{host}:{port}").to_socket_addrs();
    let addresses: Vec<_> =
        addresses.map_err(|error| BuildError(format!("failed to listen on {endpoint}: {error}")))?.collect();
    // `localhost` may resolve to both; clients try IPv4 first.
    let first = addresses.iter().find(|a| a.is_ipv4()).or(addresses.first());
    first.copied().ok_or_else(|| BuildError(format!("failed to listen on {endpoint}: the host name has no address")))
}

fn ipv6_works() -> bool {
    TcpSocket::new_v6().is_ok_and(|socket| socket.bind(SocketAddr::from(([0u16; 8], 0))).is_ok())
}

pub(super) fn address_in_use_error(endpoint: &str) -> BuildError {
    BuildError(format!("failed to listen on {endpoint}: {}", describe_bind_error(&io::ErrorKind::AddrInUse.into())))
}

fn describe_bind_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is in use by another listener".into(),
        io::ErrorKind::PermissionDenied => "permission denied (ports below 1024 need a privilege)".into(),
        io::ErrorKind::AddrNotAvailable => "the address does not belong to this machine".into(),
        _ => error.to_string(),
    }
}

/// Starts to accept. `serve` runs for each connection, in a separate task; a connection beyond the limit waits.
pub fn start_listener<F, S>(
    listener: Arc<TcpListener>,
    max_connections: usize,
    serve: F,
) -> io::Result<ConnectionListener>
where
    F: Fn(TcpStream, SocketAddr, ShutdownSignal) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let options = ListenerOptions { max_connections, when_full: FullPolicy::Queue, when_dropped: DropPolicy::Drain };
    ConnectionListener::start(listener, options, serve)
}

/// Maps the addresses of one sender to the first of them: a sender with IPv6 has a whole /64 network to send
/// from.
pub fn sender_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests;
