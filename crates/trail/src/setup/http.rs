//! OTLP over HTTP with hyper.

use std::{fmt, io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_http::{HttpClient, HttpError};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio::runtime::Handle;

use super::exporter::ExportStats;
use crate::errors::error_chain;

/// The response to an export has only a few bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// The upper limit of a request; `OTEL_EXPORTER_OTLP_TIMEOUT` is usually shorter.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// An HTTP client that works on a runtime of its own, independent of the caller's.
pub(super) struct OtlpHttpClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
    stats: Arc<ExportStats>,
}

impl OtlpHttpClient {
    /// Creates a client that trusts these certificate authorities, or those of the system.
    pub(super) fn new(authorities: Option<&[u8]>, runtime: Handle, exports: Arc<ExportStats>) -> io::Result<Self> {
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(root_certificates(authorities)?)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), runtime, stats: exports })
    }
}

fn root_certificates(authorities: Option<&[u8]>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = authorities else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    if roots.is_empty() {
        return Err(io::Error::other("the file contains no certificate"));
    }
    Ok(roots)
}

impl fmt::Debug for OtlpHttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Http")
    }
}

#[async_trait::async_trait]
impl HttpClient for OtlpHttpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.client.request(request.map(Full::new));
        let exchange = async move {
            let (parts, body) = sent.await?.into_parts();
            let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await?.to_bytes();
            Ok(Response::from_parts(parts, body))
        };
        let answer = self.runtime.spawn(async move { tokio::time::timeout(REQUEST_TIMEOUT, exchange).await? }).await?;
        answer.inspect_err(|error: &HttpError| self.stats.note_cause(error_chain(&**error)))
    }
}
