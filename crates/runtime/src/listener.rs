//! The accept loop of servers.
//!
//! *Guaranteed*: a [`ConnectionListener`] accepts until it is shut down. Shutdown stops accepting at once, lets
//! the requests in progress end, and reports when the last connection is gone. An error of one connection, or of
//! `accept` itself, never ends the listener. The number of connections is bounded.
//!
//! *Assumed*: a connection ends by itself some time after its [`ShutdownSignal`], or its listener is aborted.
//!
//! *Not done*: anything for each request. A connection is a future of the caller, compiled together with this
//! loop, so that the collector's receivers keep their own executor and buffers ([decision 7]) and pay nothing for
//! what they share. The proxy of the embedded cluster has a loop of its own: its listeners share one bound, and a
//! socket without endpoints refuses. So does the sink of the command line, which bounds nothing on purpose.
//!
//! [decision 7]: https://github.com/kubewake/kubewake/blob/main/docs/decisions/0007-a-connection-with-its-calls-is-one-task.md

use std::{future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

#[cfg(test)]
mod tests;

/// A pause after an error of `accept` that only time mends, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// What happens to a connection beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullPolicy {
    /// It waits in the kernel's queue until another one ends: for clients that keep few connections for long.
    Queue,
    /// It is closed at once, so that its client learns that it has to go elsewhere.
    Close,
}

/// What happens to the connections of a listener that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropPolicy {
    /// They get the signal to end, and end by themselves.
    Drain,
    /// They end immediately.
    Abort,
}

/// A peer that disappeared is noticed after a minute or two, in every state of a connection: protocols have no probes
/// of their own before their first bytes.
const TCP_KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15)).with_retries(4);

#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// The limit of concurrent connections.
    pub max_connections: usize,
    pub when_full: FullPolicy,
    pub when_dropped: DropPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ListenerStage {
    Open,
    ShuttingDown,
    Aborted,
}

/// Notifies a connection of the shutdown of its listener.
#[derive(Clone, Debug)]
pub struct ShutdownSignal(watch::Receiver<ListenerStage>);

impl ShutdownSignal {
    /// A signal for a connection that has no listener, and the function that gives it.
    pub fn with_trigger() -> (impl FnOnce() + Send + 'static, Self) {
        let (stage, signal) = watch::channel(ListenerStage::Open);
        (move || drop(stage), Self(signal))
    }

    /// Ends when the listener shuts down.
    pub async fn wait(&mut self) {
        // An error means that the listener was dropped, which is a shutdown too.
        let _ = self.0.wait_for(|stage| *stage >= ListenerStage::ShuttingDown).await;
    }

    async fn wait_abort(&mut self) {
        // A listener that was dropped can no longer abort: its connections end by themselves.
        if self.0.wait_for(|stage| *stage == ListenerStage::Aborted).await.is_err() {
            std::future::pending().await
        }
    }
}

/// An accepting socket with its connections.
#[derive(Debug)]
pub struct ConnectionListener {
    address: SocketAddr,
    stage: watch::Sender<ListenerStage>,
    when_dropped: DropPolicy,
}

impl ConnectionListener {
    /// Starts to accept. `serve` runs for each connection, in a separate task.
    ///
    /// # Errors
    /// If the socket is not a bound one.
    pub fn start<F, S>(listener: Arc<TcpListener>, options: ListenerOptions, serve: F) -> io::Result<Self>
    where
        F: Fn(TcpStream, SocketAddr, ShutdownSignal) -> S + Send + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let address = listener.local_addr()?;
        let when_dropped = options.when_dropped;
        let (stage, receiver) = watch::channel(ListenerStage::Open);
        tokio::spawn(run_listener(listener, options, ShutdownSignal(receiver), serve));
        Ok(Self { address, stage, when_dropped })
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

    /// Shuts down, gives the connections this long to end, and then ends the remaining ones.
    pub async fn drain(&self, limit: Duration) {
        self.shutdown();
        if tokio::time::timeout(limit, self.wait_closed()).await.is_err() {
            self.abort();
        }
    }

    fn advance(&self, to: ListenerStage) {
        self.stage.send_if_modified(|at| std::mem::replace(at, to.max(*at)) < to);
    }
}

impl Drop for ConnectionListener {
    fn drop(&mut self) {
        match self.when_dropped {
            DropPolicy::Drain => self.shutdown(),
            DropPolicy::Abort => self.abort(),
        }
    }
}

/// Drives a connection to its end. After the signal, `begin_shutdown` tells it to end gracefully: hyper's
/// connections have a function for it.
pub async fn serve_until_shutdown<C: Future>(
    connection: C,
    begin_shutdown: impl FnOnce(Pin<&mut C>),
    closing: &mut ShutdownSignal,
) -> C::Output {
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = closing.wait() => {}
    }
    begin_shutdown(connection.as_mut());
    connection.await
}

/// Accepts until the shutdown, and then waits for the connections.
async fn run_listener<F, S>(listener: Arc<TcpListener>, options: ListenerOptions, mut closing: ShutdownSignal, serve: F)
where
    F: Fn(TcpStream, SocketAddr, ShutdownSignal) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    accept_until_shutdown(listener, &options, &mut closing, serve, &mut connections).await;
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = ended => {}
        // The remaining connections are dropped with the set.
        () = closing.wait_abort() => {}
    }
}

async fn accept_until_shutdown<F, S>(
    listener: Arc<TcpListener>,
    options: &ListenerOptions,
    closing: &mut ShutdownSignal,
    serve: F,
    connections: &mut JoinSet<()>,
) where
    F: Fn(TcpStream, SocketAddr, ShutdownSignal) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let signal = closing.clone();
    let mut closes_new = false;
    loop {
        let accepts = options.when_full == FullPolicy::Close || connections.len() < options.max_connections;
        let accepted = tokio::select! {
            biased;
            () = closing.wait() => return,
            // Ended connections no longer count.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if accepts => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(connection) => connection,
            Err(error) => {
                pause_after_accept_error(&error).await;
                continue;
            }
        };
        let is_full = connections.len() >= options.max_connections;
        if is_full && !closes_new {
            // Once each time the server becomes full.
            tracing::warn!(limit = options.max_connections, "too many connections, closing new ones");
        }
        closes_new = is_full;
        if is_full {
            continue;
        }
        // Responses are small or written as a whole, so that waiting for more data only delays them.
        let _ = stream.set_nodelay(true);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&TCP_KEEPALIVE);
        connections.spawn(serve(stream, peer, signal.clone()));
    }
}

/// A failed `accept` concerns one connection, unless the process ran out of file descriptors: then only waiting
/// helps.
async fn pause_after_accept_error(error: &io::Error) {
    let per_connection = [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset, io::ErrorKind::Interrupted];
    if !per_connection.contains(&error.kind()) {
        tracing::warn!(%error, "failed to accept connections");
        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
    }
}
