//! Connections to a destination: TCP, then TLS where it is configured, then HTTP.
//!
//! A client dials only the address that it was made for, whatever authority a request names, so that
//! `authority`, `Host` and `server_name_override` can differ from the address of the connection.

mod connect_fault;
mod handshake_hint;
mod host_port;
mod maybe_tls_stream;

#[cfg(test)]
mod tests;

use std::{
    error::Error as StdError,
    fmt::Write as _,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kubewake_config::model::{ClientKeepalive, ClientTls};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio_rustls::TlsConnector;
use tower_service::Service;

pub(crate) use connect_fault::{backend_status, tls_fault};
pub(crate) use handshake_hint::HandshakeHint;
pub(crate) use host_port::{HostPort, server_name};
use maybe_tls_stream::MaybeTlsStream;

use super::{compress::RequestBody, tls};
use crate::components::BuildError;

/// The ALPN name of HTTP/2.
pub(crate) const ALPN_H2: &[u8] = b"h2";
/// The ALPN name of HTTP/1.1.
const ALPN_HTTP_1_1: &[u8] = b"http/1.1";

/// An HTTP client for one destination; clones share its connections.
pub(crate) type DestinationClient = legacy::Client<DestinationConnector, RequestBody>;

/// The same as gRPC's limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time without an acknowledgement after which a peer counts as gone. The kernel's own limit of some
/// fifteen minutes would hold up a pipeline for as long.
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
/// The same as Go's dialer, which the Collector uses.
const TCP_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// The same as Go's HTTP client.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Responses are small and bounded, so a small window costs no time and bounds the memory that a destination
/// can use.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// Room for the responses of all requests in flight.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// gRPC does not ping more often, and servers close connections that do.
const MIN_PING_INTERVAL: Duration = Duration::from_secs(10);
/// gRPC's default timeout of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(transparent)]
    Tcp(Box<dyn StdError + Send + Sync>),
    /// The TLS handshake failed, or one end does not trust the other.
    #[error("TLS handshake failed")]
    Tls(#[source] std::io::Error),
    /// The server closed the connection after the ClientHello, without sending anything.
    #[error("TLS handshake failed")]
    HungUp(#[source] std::io::Error),
}

#[derive(Clone)]
pub(crate) struct DestinationConnector {
    tcp: HttpConnector,
    dial_uri: Uri,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    hint: HandshakeHint,
}

impl DestinationConnector {
    /// A connector to `endpoint`; with `tls` the server must prove the given name.
    pub(crate) fn new(endpoint: &HostPort, tls: Option<(Arc<ClientConfig>, ServerName<'static>)>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(TCP_KEEPALIVE_INTERVAL));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
        let hint = HandshakeHint::default();
        let tls = tls.map(|(config, name)| (TlsConnector::from(hint.with_cert_request_recorder(config)), name));
        Self { tcp, dial_uri: endpoint.dial_uri(), tls, hint }
    }

    /// A connector for a URL: the scheme decides whether to use TLS, and the settings how.
    pub(crate) fn for_url(endpoint: &HostPort, secure: bool, settings: &ClientTls) -> Result<Self, BuildError> {
        if !secure {
            return Ok(Self::new(endpoint, None));
        }
        let settings = ClientTls { insecure: false, ..settings.clone() };
        let name = settings.server_name_override.as_deref().filter(|name| !name.is_empty());
        let proves = server_name(name.unwrap_or(endpoint.host()))?;
        let config = tls::client_config(&settings, &[ALPN_H2, ALPN_HTTP_1_1])?;
        Ok(Self::new(endpoint, config.map(|config| (config, proves))))
    }

    /// Hints of the destination about TLS.
    pub(crate) fn handshake_hint(&self) -> HandshakeHint {
        self.hint.clone()
    }

    async fn connect(mut self) -> Result<MaybeTlsStream, ConnectError> {
        self.hint.reset();
        let tcp = self.tcp.call(self.dial_uri).await.map_err(|error| ConnectError::Tcp(Box::new(error)))?;
        let Some((connector, name)) = self.tls else { return Ok(MaybeTlsStream::plain(tcp, self.hint)) };
        let tls = handshake_hint::handshake(connector.connect(name, tcp.into_inner())).await?;
        Ok(MaybeTlsStream::tls(tls, self.hint))
    }
}

impl Service<Uri> for DestinationConnector {
    type Response = MaybeTlsStream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<MaybeTlsStream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

/// A client that only speaks HTTP/2, as gRPC does. All requests share one connection.
pub(crate) fn http2_client(connector: DestinationConnector, keepalive: Option<&ClientKeepalive>) -> DestinationClient {
    let mut builder = client_builder();
    // A gRPC connection stays until one end closes it.
    builder.http2_only(true).pool_idle_timeout(None);
    if let Some(keepalive) = keepalive.filter(|keepalive| !keepalive.time.is_zero()) {
        let timeout = Some(keepalive.timeout).filter(|timeout| !timeout.is_zero()).unwrap_or(PING_TIMEOUT);
        builder
            .http2_keep_alive_interval(keepalive.time.max(MIN_PING_INTERVAL))
            .http2_keep_alive_timeout(timeout)
            .http2_keep_alive_while_idle(keepalive.permit_without_stream);
    }
    builder.build(connector)
}

/// A client that speaks HTTP/1.1, or HTTP/2 where TLS agrees on it.
pub(crate) fn http_client(connector: DestinationConnector) -> DestinationClient {
    client_builder().pool_idle_timeout(IDLE_TIMEOUT).build(connector)
}

fn client_builder() -> legacy::Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW_BYTES)
        .http2_initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder
}

/// The messages of an error and its causes, the outermost first.
pub(crate) fn error_chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    let mut last = String::new();
    // hyper-util's own message ("client error (Connect)") says less than its cause.
    let mut next = Some(error.source().unwrap_or(error));
    while let Some(cause) = next {
        let words = cause.to_string();
        if words != last {
            let separator = if text.is_empty() { "" } else { ": " };
            let _ = write!(text, "{separator}{words}");
        }
        last = words;
        next = cause.source();
    }
    text
}
