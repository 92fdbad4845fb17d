//! Serves TLS with the current certificate.

use std::sync::Arc;

use kubewake_runtime::{
    lock::RwLock,
    tls::{alpn_protocols, crypto_provider, server_builder},
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::CertificateGeneration;

/// A certificate that cannot be served. The error contains nothing of the key.
#[derive(Debug, thiserror::Error)]
#[error("failed to load the certificate and its private key")]
pub struct UnusableCertificate(#[source] Box<dyn std::error::Error + Send + Sync>);

/// The certificate that a webhook serves. It can be replaced while connections are open.
#[derive(Debug, Default)]
pub struct CertificateResolver {
    current: RwLock<Option<Arc<CertifiedKey>>>,
}

impl CertificateResolver {
    /// Serves this certificate from now on. If it cannot be used, the previous one stays.
    pub fn set_certificate(&self, generation: &CertificateGeneration) -> Result<(), UnusableCertificate> {
        let key = certified_key(generation).map_err(UnusableCertificate)?;
        *self.current.write() = Some(Arc::new(key));
        Ok(())
    }

    /// A server configuration: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, no client certificates.
    pub fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let builder = server_builder()?.with_no_client_auth();
        let mut config = builder.with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = alpn_protocols(&[b"h2", b"http/1.1"]);
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().clone()
    }
}

impl CertificateGeneration {
    /// Whether the certificate can be served and its authority can be trusted.
    pub(super) fn is_usable(&self) -> bool {
        certified_key(self).is_ok() && CertificateDer::from_pem_slice(self.authority.as_bytes()).is_ok()
    }
}

/// The certificate with its key, if they match.
fn certified_key(generation: &CertificateGeneration) -> Result<CertifiedKey, Box<dyn std::error::Error + Send + Sync>> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(generation.certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(generation.key.as_bytes())?;
    Ok(CertifiedKey::from_der(chain, key, &crypto_provider())?)
}
