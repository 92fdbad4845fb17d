//! Accepts connections and serves them until the server stops.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kubewake_runtime::{
    listener::{ConnectionListener, DropPolicy, FullPolicy, ListenerOptions, ShutdownSignal, serve_until_shutdown},
    tls,
};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;

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
pub struct HttpsServer(ConnectionListener);

impl HttpsServer {
    /// Starts serving on a bound socket.
    ///
    /// The number of connections is limited; further ones are closed at once.
    pub fn start<S: HttpService>(
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        service: Arc<S>,
        max_connections: usize,
    ) -> io::Result<Self> {
        let options = ListenerOptions {
            max_connections,
            when_full: FullPolicy::Close,
            // When the server is dropped, nothing can answer.
            when_dropped: DropPolicy::Abort,
        };
        let listener = ConnectionListener::start(Arc::new(listener), options, move |stream, address, closing| {
            let tls = Arc::clone(&tls);
            let service = Arc::clone(&service);
            async move {
                if let Some(stream) = tls::accept(stream, address, tls, TLS_HANDSHAKE_TIMEOUT).await {
                    serve(stream, address, service, closing).await;
                }
            }
        });
        listener.map(Self)
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Accepts no more connections, lets active requests end within `DRAIN_TIMEOUT`, and closes the rest.
    pub async fn stop(self) {
        self.0.drain(DRAIN_TIMEOUT).await;
    }
}

async fn serve<S: HttpService>(
    stream: TlsStream<TcpStream>,
    address: SocketAddr,
    service: Arc<S>,
    mut closing: ShutdownSignal,
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
        // A client that disconnects is not an error.
        let _ = serve_until_shutdown(connection, |connection| connection.graceful_shutdown(), &mut closing).await;
    } else {
        let mut builder = conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
        let connection = builder.serve_connection(stream, service);
        // A client that disconnects is not an error.
        let _ = serve_until_shutdown(connection, |connection| connection.graceful_shutdown(), &mut closing).await;
    }
}
