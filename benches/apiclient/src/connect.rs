//! Connections: HTTP/1.1 over TLS, with a client certificate.

use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use http::{Request, header, request::Builder};
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::credentials::AdminCredentials;

/// A server to connect to.
pub(crate) struct ServerTarget {
    address: String,
    name: ServerName<'static>,
    tls: TlsConnector,
}

pub(crate) type ApiConnection = SendRequest<Full<Bytes>>;

impl ServerTarget {
    pub(crate) fn new(credentials: AdminCredentials) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&credentials.authority) {
            roots.add(certificate?)?;
        }
        let chain = CertificateDer::pem_slice_iter(&credentials.certificate).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(&credentials.key)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let (host, _) = credentials.address.rsplit_once(':').context("the URL of the server has no port")?;
        let name = ServerName::try_from(host.to_owned())?;
        Ok(Self { name, tls: TlsConnector::from(Arc::new(config)), address: credentials.address })
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<ApiConnection> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let stream = self.tls.connect(self.name.clone(), stream).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // The connection ends with its sender.
        tokio::spawn(connection);
        Ok(sender)
    }
}

/// A request with the headers of every Kubernetes client.
pub(crate) fn request_builder(path: &str) -> Builder {
    Request::builder()
        .uri(path)
        .header(header::HOST, "127.0.0.1")
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, "kubewake-apiclient/0.1")
}
