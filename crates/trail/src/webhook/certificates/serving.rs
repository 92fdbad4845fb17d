//! TLS with the certificate of now.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::{
    ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::Generation;

/// Why a certificate cannot be shown. Says nothing of the key.
#[derive(Debug, thiserror::Error)]
#[error("the certificate and its key cannot be used")]
pub struct Unusable(#[source] Box<dyn std::error::Error + Send + Sync>);

/// What a webhook shows to whoever connects. It changes while connections are open and new ones come.
#[derive(Debug, Default)]
pub struct Serving {
    now: RwLock<Option<Arc<CertifiedKey>>>,
}

impl Serving {
    /// Shows this one from now on. If it cannot be used, the old one stays.
    pub fn show(&self, generation: &Generation) -> Result<(), Unusable> {
        let key = certified(generation).map_err(Unusable)?;
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(key));
        Ok(())
    }

    /// TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1; clients bring no certificate.
    pub fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, rustls::Error> {
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let mut config =
            builder.with_no_client_auth().with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Generation {
    /// Whether its certificate can be shown, and its authority be believed.
    pub(super) fn is_usable(&self) -> bool {
        certified(self).is_ok() && CertificateDer::from_pem_slice(self.authority.as_bytes()).is_ok()
    }
}

/// The cryptography of TLS, whatever the process has installed.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A certificate with its key, if they belong together.
fn certified(generation: &Generation) -> Result<CertifiedKey, Box<dyn std::error::Error + Send + Sync>> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(generation.certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(generation.key.as_bytes())?;
    Ok(CertifiedKey::from_der(chain, key, &provider())?)
}
