//! Connections to a destination: TCP, then TLS where it is configured, then HTTP.
//!
//! A client made here dials the one address that it was made for, whatever authority a request names, so that
//! `authority`, `Host` and `server_name_override` can differ from where the connection goes.

mod endpoint;
mod fault;
mod first;
mod stream;

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

pub(crate) use endpoint::{Endpoint, server_name};
pub(crate) use fault::{fault, said};
pub(crate) use first::FirstWord;
use stream::Stream;

use super::{encode::Payload, tls};
use crate::components::BuildError;

/// HTTP/2 as TLS names it.
pub(crate) const H2: &[u8] = b"h2";
/// HTTP/1.1 as TLS names it.
const HTTP_1_1: &[u8] = b"http/1.1";

/// An HTTP client for one destination; clones share its connections.
pub(crate) type Client = legacy::Client<Connector, Payload>;

/// As long as gRPC gives a connection to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A peer that went without a word is noticed after this long without an acknowledgement; the kernel's own limit of
/// some fifteen minutes would hold up a pipeline for as long.
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(30);
/// As often as Go's dialer, which the Collector uses.
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
/// As long as Go's HTTP client keeps a connection that nobody uses.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Answers are small and bounded, so a small window costs no time and keeps what a destination can make us hold small.
const STREAM_WINDOW: u32 = 64 << 10;
/// Room for the answers of all requests that are under way at once.
const CONNECTION_WINDOW: u32 = 1 << 20;
/// gRPC does not ping more often, and servers close connections that do.
const MIN_PING_INTERVAL: Duration = Duration::from_secs(10);
/// gRPC's default for an answer to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// No address answered.
    #[error(transparent)]
    Tcp(Box<dyn StdError + Send + Sync>),
    /// The two ends do not agree on TLS, or one does not trust the other.
    #[error("TLS handshake failed")]
    Tls(#[source] std::io::Error),
    /// The other end hung up on the first word of TLS, without one of its own.
    #[error("TLS handshake failed")]
    Wordless(#[source] std::io::Error),
}

/// Dials one destination.
#[derive(Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    dial: Uri,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    first: FirstWord,
}

impl Connector {
    /// A connector to `endpoint`; with `tls` the server must be who `name` says.
    pub(crate) fn new(endpoint: &Endpoint, tls: Option<(Arc<ClientConfig>, ServerName<'static>)>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(TCP_KEEPALIVE));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(USER_TIMEOUT));
        let first = FirstWord::default();
        let tls = tls.map(|(config, name)| (TlsConnector::from(first.witness(config)), name));
        Self { tcp, dial: endpoint.dial(), tls, first }
    }

    /// A connector for a URL: its scheme decides whether there is TLS, and the settings how.
    pub(crate) fn for_url(endpoint: &Endpoint, secure: bool, settings: &ClientTls) -> Result<Self, BuildError> {
        if !secure {
            return Ok(Self::new(endpoint, None));
        }
        let settings = ClientTls { insecure: false, ..settings.clone() };
        let name = settings.server_name_override.as_deref().filter(|name| !name.is_empty());
        let proves = server_name(name.unwrap_or(endpoint.host()))?;
        let config = tls::client_config(&settings, &[H2, HTTP_1_1])?;
        Ok(Self::new(endpoint, config.map(|config| (config, proves))))
    }

    /// What the destination lets us know about TLS.
    pub(crate) fn first_word(&self) -> FirstWord {
        self.first.clone()
    }

    async fn connect(mut self) -> Result<Stream, ConnectError> {
        self.first.forget();
        let tcp = self.tcp.call(self.dial).await.map_err(|error| ConnectError::Tcp(Box::new(error)))?;
        let Some((connector, name)) = self.tls else { return Ok(Stream::plain(tcp, self.first)) };
        let tls = first::handshake(connector.connect(name, tcp.into_inner())).await?;
        Ok(Stream::tls(tls, self.first))
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

/// A client that speaks HTTP/2 and nothing else, as gRPC does. All requests share one connection.
pub(crate) fn http2_client(connector: Connector, keepalive: Option<&ClientKeepalive>) -> Client {
    let mut builder = builder();
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
pub(crate) fn http_client(connector: Connector) -> Client {
    builder().pool_idle_timeout(IDLE_TIMEOUT).build(connector)
}

fn builder() -> legacy::Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW);
    builder
}

/// What went wrong, from the outermost cause that says something to the innermost.
pub(crate) fn explain(error: &(dyn StdError + 'static)) -> String {
    let mut text = String::new();
    let mut last = String::new();
    // hyper-util's own words ("client error (Connect)") say less than their cause.
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
