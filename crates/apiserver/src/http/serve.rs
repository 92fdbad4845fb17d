//! Accepts connections and serves them until the server stops.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::Body;
use crate::auth::{User, x509};

/// A client that is slower than this to shake hands is none.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Headers come in one go from every real client.
const HEADERS: Duration = Duration::from_secs(30);
/// kube-apiserver's own limit.
const STREAMS: u32 = 250;
/// Room for the largest request (3 MiB) in few window updates.
const WINDOW: u32 = 1 << 20;
/// All headers of a request over HTTP/2, the path among them. No longer path can be read, so that one is answered (431) rather than
/// reset; over HTTP/1.1 it is 414.
const HEADER_BYTES: u32 = 64 << 10;
/// What waits on one stream for a client that does not read.
const SEND_BUFFER: usize = 128 << 10;
/// A client that has gone without a word is missed after this time, so that its watches end.
const PING: Duration = Duration::from_secs(30);
/// Requests under way may end within this time when the server stops.
const DRAIN: Duration = Duration::from_secs(5);
/// After an error of accept, such as too many open files, a moment to recover.
const PAUSE: Duration = Duration::from_millis(50);

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Whom its certificate names, which was verified against the CA; none if it showed none, or one that names nobody.
    pub user: Option<User>,
}

/// Whoever answers requests.
pub trait Service: Send + Sync + 'static {
    /// Answers one.
    fn call(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: Arc<Peer>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// A listening server. It stops when it is told to or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Begins to serve on a socket that is bound already.
    ///
    /// At most so many connections are served at once; one more is closed at once.
    pub fn start<S: Service>(
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        service: Arc<S>,
        connections: usize,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(accept(listener, TlsAcceptor::from(tls), service, connections, stopped));
        Ok(Self { address, stop, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets requests under way end within a limit, and ends the rest.
    pub async fn stop(self) {
        // Without a receiver it has ended already.
        let _ = self.stop.send(true);
        let mut task = self.task;
        if timeout(DRAIN, &mut task).await.is_err() {
            task.abort();
        }
    }
}

async fn accept<S: Service>(
    listener: TcpListener,
    tls: TlsAcceptor,
    service: Arc<S>,
    most: usize,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut full = false;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    // Those that have ended count no longer.
                    while connections.try_join_next().is_some() {}
                    if refuses(connections.len() >= most, &mut full, most) {
                        continue;
                    }
                    let connection = connect(stream, address, tls.clone(), Arc::clone(&service), stopped.clone());
                    connections.spawn(connection);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Whether the server is full. That is logged once, until it is no longer so.
fn refuses(full: bool, before: &mut bool, most: usize) -> bool {
    if full && !*before {
        tracing::warn!(most, "too many connections: new ones are closed");
    }
    *before = full;
    full
}

async fn connect<S: Service>(
    stream: TcpStream,
    address: SocketAddr,
    tls: TlsAcceptor,
    service: Arc<S>,
    stopped: watch::Receiver<bool>,
) {
    // Answers are written whole, so that waiting for more only delays them.
    let _ = stream.set_nodelay(true);
    match timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve(stream, address, service, stopped).await,
        Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake failed"),
        Err(_) => tracing::debug!(%address, "TLS handshake took too long"),
    }
}

async fn serve<S: Service>(
    stream: TlsStream<TcpStream>,
    address: SocketAddr,
    service: Arc<S>,
    stopped: watch::Receiver<bool>,
) {
    let (_, session) = stream.get_ref();
    let http2 = session.alpn_protocol() == Some(b"h2");
    let user = session.peer_certificates().and_then(|chain| chain.first()).and_then(|leaf| x509::user(leaf));
    let peer = Arc::new(Peer { address, user });
    let service = service_fn(move |request| {
        let (service, peer) = (Arc::clone(&service), Arc::clone(&peer));
        async move { Ok::<_, Infallible>(service.call(request, peer).await) }
    });
    let stream = TokioIo::new(stream);
    if http2 {
        let mut builder = conn::http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).max_concurrent_streams(STREAMS).initial_stream_window_size(WINDOW);
        builder.initial_connection_window_size(WINDOW * 4).max_header_list_size(HEADER_BYTES);
        builder.max_send_buf_size(SEND_BUFFER).keep_alive_interval(PING).keep_alive_timeout(PING);
        let connection = builder.serve_connection(stream, service);
        run(connection, |connection| connection.graceful_shutdown(), stopped).await;
    } else {
        let mut builder = conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADERS);
        let connection = builder.serve_connection(stream, service);
        run(connection, |connection| connection.graceful_shutdown(), stopped).await;
    }
}

async fn run<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    shut_down: impl Fn(Pin<&mut C>),
    mut stopped: watch::Receiver<bool>,
) {
    let mut connection = std::pin::pin!(connection);
    let stopping = tokio::select! {
        // A client that goes away is no event.
        _ = connection.as_mut() => return,
        stopping = stopped.wait_for(|stopped| *stopped) => stopping.is_ok(),
    };
    // If the server itself is gone, so is everything that would answer.
    if stopping {
        shut_down(connection.as_mut());
        let _ = connection.await;
    }
}
