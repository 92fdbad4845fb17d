//! A low-level client: TLS with the administrator's certificate, and raw bytes or HTTP over it.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http2::SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewake_apiserver::{auth::kubeconfig::ClientCredentials, server::ApiServer};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A connection on which nothing was sent yet.
pub async fn connect(server: &ApiServer, protocol: &str) -> TlsStream<TcpStream> {
    let kubeconfig = server.kubeconfig();
    let mut roots = RootCertStore::empty();
    let authority = kubeconfig.certificate_authority.unwrap();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let ClientCredentials::Certificate(pair) = kubeconfig.credentials else {
        panic!("the administrator has a certificate")
    };
    let chain = CertificateDer::pem_slice_iter(pair.chain.as_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let stream = TcpStream::connect(server.address()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let name = ServerName::from(server.address().ip());
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// Sends bytes, and returns everything that is received until the server closes the connection.
pub async fn exchange(server: &ApiServer, bytes: &[u8]) -> String {
    let mut stream = connect(server, "http/1.1").await;
    // A server that refuses early closes early.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[derive(Clone)]
pub struct Http2(SendRequest<Full<Bytes>>);

impl Http2 {
    pub async fn new(server: &ApiServer) -> Self {
        let stream = TokioIo::new(connect(server, "h2").await);
        let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a request; the body of its response is not read yet.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        let mut sender = self.0.clone();
        sender.ready().await?;
        sender.send_request(request).await
    }

    /// Sends a request and reads the whole response.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> (StatusCode, Bytes) {
        let answer = self.send(request(method, path, content_type, body)).await.unwrap();
        let status = answer.status();
        (status, answer.into_body().collect().await.unwrap().to_bytes())
    }
}

pub fn request(method: &str, path: &str, content_type: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    if !content_type.is_empty() {
        request = request.header("content-type", content_type);
    }
    request.body(Full::new(body.into())).unwrap()
}
