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
use crate::auth::{UserInfo, x509};

/// The time limit of a TLS handshake.
const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The time limit of request headers, which every real client sends at once.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_CONCURRENT_STREAMS: u32 = 250;
/// Fits the largest request (3 MiB) in few window updates.
const INITIAL_STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// The limit of all headers of a request over HTTP/2, including the path. No longer path can be read, so that a
/// long one is answered (431) rather than reset; over HTTP/1.1 it is 414.
const MAX_HEADER_LIST_BYTES: u32 = 64 << 10;
/// The limit of data that is buffered on one stream for a client that does not read.
const MAX_SEND_BUFFER_BYTES: usize = 128 << 10;
/// The interval at which dead clients are detected, so that their watches end.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long active requests may continue when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// A pause after an error of accept, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The client's end of a connection.
#[derive(Clone, Debug)]
pub struct ClientPeer {
    pub address: SocketAddr,
    /// The user of the client certificate, which was verified against the CA; none without a certificate, or if
    /// it names no user.
    pub user: Option<UserInfo>,
}

pub trait HttpService: Send + Sync + 'static {
    fn call(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: Arc<ClientPeer>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// A listening server. It stops on [`HttpsServer::stop`] or when dropped.
#[derive(Debug)]
pub struct HttpsServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl HttpsServer {
    /// Starts serving on a bound socket.
    ///
    /// The number of connections is limited; further ones are closed at once.
    pub fn start<S: HttpService>(
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

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more connections, lets active requests end within `DRAIN_TIMEOUT`, and closes the rest.
    pub async fn stop(self) {
        // Without a receiver the server has ended already.
        let _ = self.stop.send(true);
        let mut task = self.task;
        if timeout(DRAIN_TIMEOUT, &mut task).await.is_err() {
            task.abort();
        }
    }
}

async fn accept<S: HttpService>(
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
                    // Ended connections no longer count.
                    while connections.try_join_next().is_some() {}
                    if is_over_connection_limit(connections.len() >= most, &mut full, most) {
                        continue;
                    }
                    let connection = connect(stream, address, tls.clone(), Arc::clone(&service), stopped.clone());
                    connections.spawn(connection);
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Whether the server is full, which is logged once each time it becomes so.
fn is_over_connection_limit(full: bool, before: &mut bool, most: usize) -> bool {
    if full && !*before {
        tracing::warn!(most, "too many connections, closing new ones");
    }
    *before = full;
    full
}

async fn connect<S: HttpService>(
    stream: TcpStream,
    address: SocketAddr,
    tls: TlsAcceptor,
    service: Arc<S>,
    stopped: watch::Receiver<bool>,
) {
    // Responses are written whole, so that waiting for more data only delays them.
    let _ = stream.set_nodelay(true);
    match timeout(TLS_HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve(stream, address, service, stopped).await,
        Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake failed"),
        Err(_) => tracing::debug!(%address, "TLS handshake timed out"),
    }
}

async fn serve<S: HttpService>(
    stream: TlsStream<TcpStream>,
    address: SocketAddr,
    service: Arc<S>,
    stopped: watch::Receiver<bool>,
) {
    let (_, session) = stream.get_ref();
    let http2 = session.alpn_protocol() == Some(b"h2");
    let user =
        session.peer_certificates().and_then(|chain| chain.first()).and_then(|leaf| x509::user_from_certificate(leaf));
    let peer = Arc::new(ClientPeer { address, user });
    let service = service_fn(move |request| {
        let service = Arc::clone(&service);
        let peer = Arc::clone(&peer);
        async move { Ok::<_, Infallible>(service.call(request, peer).await) }
    });
    let stream = TokioIo::new(stream);
    if http2 {
        let mut builder = conn::http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
            .initial_stream_window_size(INITIAL_STREAM_WINDOW_BYTES);
        builder
            .initial_connection_window_size(INITIAL_STREAM_WINDOW_BYTES * 4)
            .max_header_list_size(MAX_HEADER_LIST_BYTES);
        builder
            .max_send_buf_size(MAX_SEND_BUFFER_BYTES)
            .keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_INTERVAL);
        let connection = builder.serve_connection(stream, service);
        run(connection, |connection| connection.graceful_shutdown(), stopped).await;
    } else {
        let mut builder = conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
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
        // A client that disconnects is not an error.
        _ = connection.as_mut() => return,
        stopping = stopped.wait_for(|stopped| *stopped) => stopping.is_ok(),
    };
    // If the server was dropped, nothing can answer.
    if stopping {
        shut_down(connection.as_mut());
        let _ = connection.await;
    }
}
