//! Listening sockets and the connections that come in on them.
//!
//! *Guarantees.* A [`ConnectionListener`] accepts until it is shut down. Shutdown stops accepting at once, lets
//! the requests in progress end, and reports when the last connection is gone. An error of one connection, or
//! of `accept` itself, never ends the listener. The number of connections is bounded.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::components::BuildError;

/// Concurrent connections of one listener. Each may hold a window of unread data, so there must be a limit;
/// this one is more than a node's workloads open.
const MAX_CONNECTIONS: usize = 10_000;

/// Connections that the kernel queues until they are accepted.
const ACCEPT_BACKLOG: u32 = 1024;

/// A peer that disappeared is noticed after a minute or two.
const TCP_KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15)).with_retries(4);

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

/// Maps the addresses of one sender to the first of them: a sender with IPv6 has a whole /64 network to send
/// from.
pub fn sender_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ListenerStage {
    Open,
    ShuttingDown,
    Aborted,
}

/// Notifies a connection of the shutdown of its listener.
#[derive(Clone)]
pub struct ShutdownSignal(watch::Receiver<ListenerStage>);

impl ShutdownSignal {
    /// Ends when the listener shuts down.
    pub async fn wait(&mut self) {
        // An error means that the listener was dropped, which is a shutdown too.
        let _ = self.0.wait_for(|stage| *stage >= ListenerStage::ShuttingDown).await;
    }

    /// For tests of connections without a listener: a shutdown function and its signal.
    #[cfg(test)]
    pub(crate) fn for_test() -> (impl FnOnce(), Self) {
        let (stage, told) = watch::channel(ListenerStage::Open);
        (move || drop(stage), Self(told))
    }

    async fn wait_abort(&mut self) {
        // A listener that was dropped can no longer abort: its connections end by themselves.
        if self.0.wait_for(|stage| *stage == ListenerStage::Aborted).await.is_err() {
            std::future::pending().await
        }
    }
}

/// An accepting socket with its connections.
pub struct ConnectionListener {
    address: SocketAddr,
    stage: watch::Sender<ListenerStage>,
}

impl ConnectionListener {
    /// Starts to accept. `serve` runs for each connection, in a separate task.
    pub fn start<F, S>(listener: Arc<TcpListener>, serve: F) -> io::Result<Self>
    where
        F: Fn(TcpStream, SocketAddr, ShutdownSignal) -> S + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr()?;
        let (stage, receiver) = watch::channel(ListenerStage::Open);
        tokio::spawn(run_listener(listener, ShutdownSignal(receiver), serve));
        Ok(Self { address, stage })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, and signals the connections to end.
    pub fn shutdown(&self) {
        self.advance(ListenerStage::ShuttingDown);
    }

    /// Ends the remaining connections immediately.
    pub fn abort(&self) {
        self.advance(ListenerStage::Aborted);
    }

    /// Ends when the last connection is gone. Call [`ConnectionListener::shutdown`] first.
    pub async fn wait_closed(&self) {
        self.stage.closed().await;
    }

    fn advance(&self, to: ListenerStage) {
        self.stage.send_if_modified(|at| std::mem::replace(at, to.max(*at)) < to);
    }
}

impl Drop for ConnectionListener {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Accepts until the shutdown, and then waits for the connections.
async fn run_listener<F, S>(listener: Arc<TcpListener>, mut closing: ShutdownSignal, serve: F)
where
    F: Fn(TcpStream, SocketAddr, ShutdownSignal) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    accept_until_shutdown(listener, &mut closing, serve, &mut connections).await;
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = ended => {}
        // The remaining connections are dropped with the set.
        () = closing.wait_abort() => {}
    }
}

async fn accept_until_shutdown<F, S>(
    listener: Arc<TcpListener>,
    closing: &mut ShutdownSignal,
    serve: F,
    connections: &mut JoinSet<()>,
) where
    F: Fn(TcpStream, SocketAddr, ShutdownSignal) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let told = closing.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            () = closing.wait() => return,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Responses are small and latency matters.
                let _ = stream.set_nodelay(true);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&TCP_KEEPALIVE);
                connections.spawn(serve(stream, peer, told.clone()));
            }
            Err(error) => pause_after_accept_error(&error).await,
        }
    }
}

/// A failed `accept` concerns one connection, unless the process ran out of file descriptors: then only waiting
/// helps.
async fn pause_after_accept_error(error: &io::Error) {
    let per_connection = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    if !per_connection.contains(&error.kind()) {
        tracing::warn!(%error, "failed to accept connections");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests;
