//! Listening sockets and the connections that come in on them.
//!
//! *Guarantees.* A [`Door`] accepts until it is closed; closing it stops accepting at once, lets the requests under way
//! end, and reports when the last connection is gone. An error of one connection, or of `accept` itself, never ends
//! the door. The number of connections is bounded.

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

/// Connections that one door serves at once. Each may hold a window of unread data, so that there must be a limit;
/// this one is beyond what a node's workloads open.
const MAX_CONNECTIONS: usize = 10_000;

/// How many connections the kernel keeps for us until we accept them.
const BACKLOG: u32 = 1024;

/// A peer that is gone without a word is noticed after a minute or two.
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15)).with_retries(4);

/// Listens on `endpoint` (`host:port`; without a host: on all addresses).
pub fn bind(endpoint: &str) -> Result<TcpListener, BuildError> {
    let address = resolve(endpoint)?;
    let listen = |address: SocketAddr| -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen(address).map_err(|error| BuildError(format!("cannot listen on {endpoint}: {}", explain(&error))))
}

/// The address that an endpoint names.
pub(super) fn resolve(endpoint: &str) -> Result<SocketAddr, BuildError> {
    let Some((host, port)) = endpoint.rsplit_once(':') else {
        return Err(BuildError(format!("cannot listen on {endpoint}: missing port in address; write host:port")));
    };
    // Without a host: every address. The wildcard of IPv6 takes IPv4 too, where there is IPv6.
    let host = match host {
        "" if ipv6_works() => "[::]",
        "" => "0.0.0.0",
        host => host,
    };
    let addresses = format!("{host}:{port}").to_socket_addrs();
    let addresses: Vec<_> =
        addresses.map_err(|error| BuildError(format!("cannot listen on {endpoint}: {error}")))?.collect();
    // `localhost` names both; IPv4 is what clients try first.
    let first = addresses.iter().find(|a| a.is_ipv4()).or(addresses.first());
    first.copied().ok_or_else(|| BuildError(format!("cannot listen on {endpoint}: the name has no address")))
}

fn ipv6_works() -> bool {
    TcpSocket::new_v6().is_ok_and(|socket| socket.bind(SocketAddr::from(([0u16; 8], 0))).is_ok())
}

/// The address is taken.
pub(super) fn busy(endpoint: &str) -> BuildError {
    BuildError(format!("cannot listen on {endpoint}: {}", explain(&io::ErrorKind::AddrInUse.into())))
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "the address is in use by another listener".into(),
        io::ErrorKind::PermissionDenied => "permission denied (ports below 1024 need a privilege)".into(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".into(),
        _ => error.to_string(),
    }
}

/// The addresses that one sender has, by the first of them: a sender with IPv6 has a whole network of 64 bits to send from.
pub fn sender_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
    }
}

/// What a door does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Open,
    Closing,
    Cut,
}

/// Tells a connection that the door is closing.
#[derive(Clone)]
pub struct Closing(watch::Receiver<Stage>);

impl Closing {
    /// Ends when the door closes.
    pub async fn wait(&mut self) {
        // An error means that the door is gone, which is closing too.
        let _ = self.0.wait_for(|stage| *stage >= Stage::Closing).await;
    }

    /// For tests of connections without a door: what closes them, and what tells them.
    #[cfg(test)]
    pub(crate) fn by_hand() -> (impl FnOnce(), Self) {
        let (stage, told) = watch::channel(Stage::Open);
        (move || drop(stage), Self(told))
    }

    async fn cut(&mut self) {
        // A door that is gone can no longer be told to cut: its connections end by themselves.
        if self.0.wait_for(|stage| *stage == Stage::Cut).await.is_err() {
            std::future::pending().await
        }
    }
}

/// An accepting socket with its connections.
pub struct Door {
    address: SocketAddr,
    stage: watch::Sender<Stage>,
}

impl Door {
    /// Starts to accept. `serve` runs for each connection, in a task of its own.
    pub fn open<F, S>(listener: Arc<TcpListener>, serve: F) -> io::Result<Self>
    where
        F: Fn(TcpStream, SocketAddr, Closing) -> S + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr()?;
        let (stage, receiver) = watch::channel(Stage::Open);
        tokio::spawn(attend(listener, Closing(receiver), serve));
        Ok(Self { address, stage })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, and tells the connections to end.
    pub fn close(&self) {
        self.advance(Stage::Closing);
    }

    /// Ends the connections that are still there, whatever they are at.
    pub fn cut(&self) {
        self.advance(Stage::Cut);
    }

    /// Ends when the last connection is gone. Call [`Door::close`] first.
    pub async fn closed(&self) {
        self.stage.closed().await;
    }

    fn advance(&self, to: Stage) {
        self.stage.send_if_modified(|at| std::mem::replace(at, to.max(*at)) < to);
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.close();
    }
}

/// Accepts until the door closes, and then waits for the connections.
async fn attend<F, S>(listener: Arc<TcpListener>, mut closing: Closing, serve: F)
where
    F: Fn(TcpStream, SocketAddr, Closing) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    accept(listener, &mut closing, serve, &mut connections).await;
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = ended => {}
        // Those that are left go with the set.
        () = closing.cut() => {}
    }
}

async fn accept<F, S>(listener: Arc<TcpListener>, closing: &mut Closing, serve: F, connections: &mut JoinSet<()>)
where
    F: Fn(TcpStream, SocketAddr, Closing) -> S,
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
                // Answers are small and wanted at once.
                let _ = stream.set_nodelay(true);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE);
                connections.spawn(serve(stream, peer, told.clone()));
            }
            Err(error) => pause_after(&error).await,
        }
    }
}

/// A failed `accept` concerns one connection, unless we ran out of file descriptors: then only time helps.
async fn pause_after(error: &io::Error) {
    let per_connection = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    if !per_connection.contains(&error.kind()) {
        tracing::warn!(%error, "cannot accept connections");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests;
