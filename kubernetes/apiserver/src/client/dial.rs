//! Dials addresses: TCP or a Unix socket, then TLS if configured.

use std::{
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use kubewake_runtime::tls::client_builder;
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::server_verifier::ServerVerifier;

/// The time limit of connecting, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DialAddress {
    /// A host name or an address, and a port.
    Tcp(String, u16),
    /// A Unix socket in the file system.
    Unix(String),
    /// A Unix socket in the abstract namespace.
    Abstract(String),
}

/// The trusted CAs, the server name, and the client certificate.
#[derive(Clone)]
pub struct TlsClientConfig {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// Why a TLS configuration is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TlsConfigError {
    /// A PEM text without a certificate or key.
    #[error("{what} is not valid PEM")]
    Pem { what: &'static str },
    /// The name is not a valid server name.
    #[error("{0:?} is not a valid server name")]
    Name(String),
    /// The cryptography provider supports no version of TLS.
    #[error("failed to set up TLS: {0}")]
    Provider(rustls::Error),
    /// There are no trusted certificates.
    #[error("failed to load trusted certificates: {0}")]
    Roots(String),
    /// Certificate and key do not match.
    #[error("invalid client certificate or key: {0}")]
    Identity(rustls::Error),
}

#[derive(Clone, Debug)]
pub struct AddressConnector {
    address: Arc<DialAddress>,
    tls: Option<TlsClientConfig>,
}

impl TlsClientConfig {
    /// Trusts certificates for `name` that `ca` (PEM) has signed; without `ca`, the system's roots. `identity`
    /// is a client certificate and its key (PEM).
    pub fn new(
        ca: Option<&[u8]>,
        name: &str,
        identity: Option<(&[u8], &[u8])>,
        alpn: &[&[u8]],
    ) -> Result<Self, TlsConfigError> {
        let builder = client_builder().map_err(TlsConfigError::Provider)?;
        let verifier = ServerVerifier::new(roots(ca)?, builder.crypto_provider())?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate, "the client certificate")?;
                let key =
                    PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsConfigError::Pem { what: "the client key" })?;
                builder.with_client_auth_cert(chain, key).map_err(TlsConfigError::Identity)?
            }
        };
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).map_err(|_| TlsConfigError::Name(name.to_owned()))?;
        Ok(Self { config: Arc::new(config), name })
    }
}

fn roots(ca: Option<&[u8]>) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    match ca {
        Some(ca) => certificates(ca, "the CA bundle"),
        None => Ok(rustls_native_certs::load_native_certs().certs),
    }
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    all.ok().filter(|all| !all.is_empty()).ok_or(TlsConfigError::Pem { what })
}

impl fmt::Debug for TlsClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust").field("name", &self.name).finish_non_exhaustive()
    }
}

impl AddressConnector {
    /// A connector; with `tls` the server must present a trusted certificate.
    pub fn new(address: DialAddress, tls: Option<TlsClientConfig>) -> Self {
        Self { address: Arc::new(address), tls }
    }

    async fn dial(self) -> io::Result<ClientStream> {
        let stream: Box<dyn AsyncSocket> = match &*self.address {
            DialAddress::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            DialAddress::Unix(path) => Box::new(UnixStream::connect(path).await?),
            DialAddress::Abstract(name) => Box::new(connect_abstract(name).await?),
        };
        let Some(trust) = self.tls else { return Ok(ClientStream::new(stream, false)) };
        let stream = TlsConnector::from(trust.config).connect(trust.name, stream).await?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(ClientStream::new(Box::new(stream), http2))
    }
}

#[cfg(target_os = "linux")]
async fn connect_abstract(name: &str) -> io::Result<UnixStream> {
    use std::os::{linux::net::SocketAddrExt, unix::net};
    let address = net::SocketAddr::from_abstract_name(name)?;
    let stream = net::UnixStream::connect_addr(&address)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

#[cfg(not(target_os = "linux"))]
async fn connect_abstract(_: &str) -> io::Result<UnixStream> {
    Err(io::Error::other("abstract sockets exist on Linux only"))
}

impl tower_service::Service<Uri> for AddressConnector {
    type Response = ClientStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<ClientStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dial = timeout(CONNECT_TIMEOUT, self.clone().dial());
        Box::pin(async { dial.await.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "i/o timeout"))) })
    }
}

trait AsyncSocket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> AsyncSocket for T {}

pub struct ClientStream {
    io: TokioIo<Box<dyn AsyncSocket>>,
    http2: bool,
}

impl ClientStream {
    fn new(io: Box<dyn AsyncSocket>, http2: bool) -> Self {
        Self { io: TokioIo::new(io), http2 }
    }
}

impl fmt::Debug for ClientStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("http2", &self.http2).finish_non_exhaustive()
    }
}

impl Connection for ClientStream {
    fn connected(&self) -> Connected {
        if self.http2 { Connected::new().negotiated_h2() } else { Connected::new() }
    }
}

impl Read for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, to)
    }
}

impl Write for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
