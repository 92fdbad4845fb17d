//! A listener for one address of a Service port.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use kubewake_runtime::lock::Mutex;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    backends::ServiceBackends,
    relay::{PipePool, relay},
};

/// The limit of connections for all Services together. Each takes two file descriptors.
const MAX_CONNECTIONS: usize = 8192;

/// The number of connections that the kernel queues until they are accepted.
const LISTEN_BACKLOG: u32 = 1024;

/// An endpoint on this machine that takes longer to accept is overloaded.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The delay after an error of `accept` itself, such as with too many open files.
const ACCEPT_ERROR_DELAY: Duration = Duration::from_millis(100);

/// The state that all listeners share: their connections.
pub(super) struct ConnectionSet {
    tasks: Mutex<JoinSet<()>>,
    permits: Arc<Semaphore>,
    pipes: Arc<PipePool>,
}

impl Default for ConnectionSet {
    fn default() -> Self {
        Self { tasks: Mutex::default(), permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)), pipes: Arc::default() }
    }
}

/// A socket. Without endpoints it is bound but does not listen, so that the kernel refuses connections.
pub(super) struct PortListener {
    address: SocketAddr,
    connections: Arc<ConnectionSet>,
    state: ListenerState,
}

enum ListenerState {
    New,
    /// The address is reserved, and connections are refused.
    Refusing(TcpSocket),
    Accepting(AcceptingListener),
}

/// Accepts until it is dropped; its connections continue.
struct AcceptingListener {
    listener: Arc<TcpListener>,
    backends: watch::Sender<Arc<ServiceBackends>>,
    task: JoinSet<()>,
}

impl Drop for AcceptingListener {
    fn drop(&mut self) {
        self.task.abort_all();
        // The task releases the socket only when the runtime polls it, but the address must be free now. So it
        // stops listening first.
        let _ = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Read);
    }
}

impl fmt::Debug for PortListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Door({})", self.address)
    }
}

impl PortListener {
    /// Creates a listener for an address, which is not bound yet.
    pub(super) fn new(address: SocketAddr, hall: &Arc<ConnectionSet>) -> Self {
        Self { address, connections: Arc::clone(hall), state: ListenerState::New }
    }

    /// Sets the endpoints. After an error the listener is unusable.
    pub(super) fn set_backends(&mut self, backends: &Arc<ServiceBackends>) -> io::Result<()> {
        let state = std::mem::replace(&mut self.state, ListenerState::New);
        self.state = match state {
            ListenerState::New if backends.is_empty() => ListenerState::Refusing(bind(self.address)?),
            ListenerState::New => self.start_accepting(bind(self.address)?, backends)?,
            ListenerState::Refusing(socket) if backends.is_empty() => ListenerState::Refusing(socket),
            ListenerState::Refusing(socket) => self.start_accepting(socket, backends)?,
            ListenerState::Accepting(open) if backends.is_empty() => {
                drop(open);
                ListenerState::Refusing(bind(self.address)?)
            }
            ListenerState::Accepting(open) => {
                // Unchanged endpoints keep their position.
                open.backends.send_if_modified(|held| {
                    let news = !held.is_same(backends);
                    if news {
                        *held = Arc::clone(backends);
                    }
                    news
                });
                ListenerState::Accepting(open)
            }
        };
        Ok(())
    }

    fn start_accepting(&self, socket: TcpSocket, backends: &Arc<ServiceBackends>) -> io::Result<ListenerState> {
        let listener = Arc::new(socket.listen(LISTEN_BACKLOG)?);
        let (sender, receiver) = watch::channel(Arc::clone(backends));
        let mut task = JoinSet::new();
        task.spawn(accept_connections(Arc::clone(&listener), receiver, Arc::clone(&self.connections)));
        Ok(ListenerState::Accepting(AcceptingListener { listener, backends: sender, task }))
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn accept_connections(
    listener: Arc<TcpListener>,
    backends: watch::Receiver<Arc<ServiceBackends>>,
    hall: Arc<ConnectionSet>,
) {
    loop {
        match listener.accept().await {
            Ok((client, peer)) => {
                // At the limit this connection waits, and later ones wait in the kernel.
                let Ok(place) = Arc::clone(&hall.permits).acquire_owned().await else { return };
                let backends = Arc::clone(&backends.borrow());
                let pipes = Arc::clone(&hall.pipes);
                hall.spawn(async move {
                    if let Some(server) = connect_backend(&client, peer.ip(), &backends).await {
                        relay(client, server, &pipes).await;
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(address = ?listener.local_addr(), %error, "failed to accept a connection");
                sleep(ACCEPT_ERROR_DELAY).await;
            }
        }
    }
}

impl ConnectionSet {
    fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let mut connections = self.tasks.lock();
        while connections.try_join_next().is_some() {}
        connections.spawn(connection);
    }
}

/// Connects to the next endpoint that accepts. Without one, the client's connection is reset.
async fn connect_backend(client: &TcpStream, peer: IpAddr, backends: &ServiceBackends) -> Option<TcpStream> {
    for address in backends.in_turn() {
        match timeout(CONNECT_TIMEOUT, connect_as_peer(peer, address)).await {
            Ok(Ok(server)) => return Some(server),
            Ok(Err(error)) => {
                tracing::debug!(%address, %error, "failed to connect to an endpoint, trying the next one")
            }
            Err(_) => tracing::debug!(%address, "timed out connecting to an endpoint, trying the next one"),
        }
    }
    let _ = client.set_zero_linger();
    None
}

/// Connects from the address of the client, so that an endpoint sees the calling pod, as behind kube-proxy. An
/// address outside of the loopback network cannot be kept, and 127.0.0.1 is the kernel's own choice.
async fn connect_as_peer(peer: IpAddr, backend: SocketAddr) -> io::Result<TcpStream> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = (peer, backend.ip()) else {
        return TcpStream::connect(backend).await;
    };
    if !source.is_loopback() || source == Ipv4Addr::LOCALHOST || !destination.is_loopback() {
        return TcpStream::connect(backend).await;
    }
    bind(SocketAddr::new(peer, 0))?.connect(backend).await
}
