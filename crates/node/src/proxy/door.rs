//! One address on which connections to a port of a Service arrive.

use std::{
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    backends::Backends,
    relay::{Pipes, relay},
};

/// Connections at once, of all Services together. Each is two open files.
const CONNECTIONS: usize = 8192;

/// How many connections the kernel keeps for us until we accept them.
const BACKLOG: u32 = 1024;

/// An endpoint of this machine that takes longer to accept has too much to do.
const CONNECT: Duration = Duration::from_secs(5);

/// After an error of `accept` itself, as when there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// What all doors share: the connections that came in by them.
pub(super) struct Hall {
    connections: Mutex<JoinSet<()>>,
    room: Arc<Semaphore>,
    pipes: Arc<Pipes>,
}

impl Default for Hall {
    fn default() -> Self {
        Self { connections: Mutex::default(), room: Arc::new(Semaphore::new(CONNECTIONS)), pipes: Arc::default() }
    }
}

/// A socket. Without endpoints it is bound but does not listen, so that the kernel refuses connections.
pub(super) struct Door {
    address: SocketAddr,
    hall: Arc<Hall>,
    state: State,
}

enum State {
    /// Nothing is bound yet.
    New,
    /// The address is ours, and connections are refused.
    Closed(TcpSocket),
    /// Connections are accepted.
    Open(Open),
}

/// Accepts until it is dropped; the connections live on.
struct Open {
    listener: Arc<TcpListener>,
    backends: watch::Sender<Arc<Backends>>,
    task: JoinSet<()>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort_all();
        // The task gives up the socket when the runtime comes to it, but the address must be free now. So it stops listening.
        let _ = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Read);
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Door({})", self.address)
    }
}

impl Door {
    /// At an address, which nobody has asked for yet.
    pub(super) fn new(address: SocketAddr, hall: &Arc<Hall>) -> Self {
        Self { address, hall: Arc::clone(hall), state: State::New }
    }

    /// Leads to these endpoints from now on. After an error the door is of no use.
    pub(super) fn lead_to(&mut self, backends: &Arc<Backends>) -> io::Result<()> {
        let state = std::mem::replace(&mut self.state, State::New);
        self.state = match state {
            State::New if backends.is_empty() => State::Closed(bind(self.address)?),
            State::New => self.open(bind(self.address)?, backends)?,
            State::Closed(socket) if backends.is_empty() => State::Closed(socket),
            State::Closed(socket) => self.open(socket, backends)?,
            State::Open(open) if backends.is_empty() => {
                drop(open);
                State::Closed(bind(self.address)?)
            }
            State::Open(open) => {
                // Whose turn it is stays as it is while the endpoints do.
                open.backends.send_if_modified(|held| {
                    let news = !held.is_same(backends);
                    if news {
                        *held = Arc::clone(backends);
                    }
                    news
                });
                State::Open(open)
            }
        };
        Ok(())
    }

    fn open(&self, socket: TcpSocket, backends: &Arc<Backends>) -> io::Result<State> {
        let listener = Arc::new(socket.listen(BACKLOG)?);
        let (sender, receiver) = watch::channel(Arc::clone(backends));
        let mut task = JoinSet::new();
        task.spawn(accept(Arc::clone(&listener), receiver, Arc::clone(&self.hall)));
        Ok(State::Open(Open { listener, backends: sender, task }))
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn accept(listener: Arc<TcpListener>, backends: watch::Receiver<Arc<Backends>>, hall: Arc<Hall>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                // Without room, it waits, and those after it wait in the kernel.
                let Ok(place) = Arc::clone(&hall.room).acquire_owned().await else { return };
                let (backends, pipes) = (Arc::clone(&backends.borrow()), Arc::clone(&hall.pipes));
                hall.spawn(async move {
                    if let Some(server) = connect(&client, &backends).await {
                        relay(client, server, &pipes).await;
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(address = ?listener.local_addr(), %error, "a connection cannot be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

impl Hall {
    fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.spawn(connection);
    }
}

/// Connects to the endpoint whose turn it is, or to the next one that accepts. Without any, the client is told so by a reset.
async fn connect(client: &TcpStream, backends: &Backends) -> Option<TcpStream> {
    for address in backends.in_turn() {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(server)) => return Some(server),
            Ok(Err(error)) => tracing::debug!(%address, %error, "an endpoint is passed over"),
            Err(_) => tracing::debug!(%address, "an endpoint does not accept"),
        }
    }
    let _ = client.set_zero_linger();
    None
}
