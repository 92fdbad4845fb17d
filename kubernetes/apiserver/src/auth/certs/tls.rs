//! The server's TLS settings.

use std::{path::Path, sync::Arc};

use arc_swap::ArcSwap;
use kubewake_runtime::tls::{alpn_protocols, crypto_provider, server_builder};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};

use super::{CertificatePair, ServerCertificateError, secret_files};

/// The current serving certificate. It can be replaced while connections are open.
#[derive(Debug)]
pub struct ServingCertificate {
    now: ArcSwap<CertifiedKey>,
}

impl ServingCertificate {
    pub fn new(pair: &CertificatePair) -> Result<Arc<Self>, ServerCertificateError> {
        Ok(Arc::new(Self { now: ArcSwap::from_pointee(certified_key(pair)?) }))
    }

    /// Replaces the certificate. If the new one cannot be used, the old one stays.
    pub fn replace(&self, pair: &CertificatePair) -> Result<(), ServerCertificateError> {
        self.now.store(Arc::new(certified_key(pair)?));
        Ok(())
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now.load_full())
    }
}

impl CertificatePair {
    /// Reads a given certificate and its key.
    pub fn load(chain: &Path, key: &Path) -> Result<Self, ServerCertificateError> {
        let pair = Self { chain: read(chain)?, key: read(key)? };
        certified_key(&pair)?;
        Ok(pair)
    }
}

/// TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1. Client certificates are optional and must be signed by one of the
/// `client_cas` (PEM, perhaps several in one).
pub fn server_config<'a>(
    serving: Arc<ServingCertificate>,
    client_cas: impl IntoIterator<Item = &'a str>,
) -> Result<Arc<ServerConfig>, ServerCertificateError> {
    let mut roots = RootCertStore::empty();
    for pem in client_cas {
        for certificate in certificates(pem, "the CA for client certificates")? {
            roots.add(certificate)?;
        }
    }
    let builder = server_builder()?;
    let builder = if roots.is_empty() {
        builder.with_no_client_auth()
    } else {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), crypto_provider());
        builder.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
    };
    let mut config = builder.with_cert_resolver(serving);
    config.alpn_protocols = alpn_protocols(&[b"h2", b"http/1.1"]);
    Ok(Arc::new(config))
}

/// A certificate with its key, if they match.
pub(super) fn certified_key(pair: &CertificatePair) -> Result<CertifiedKey, ServerCertificateError> {
    let chain = certificates(&pair.chain, "the certificate")?;
    let what = || "the private key".to_owned();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())
        .map_err(|source| ServerCertificateError::Pem { what: what(), source })?;
    Ok(CertifiedKey::from_der(chain, key, &crypto_provider())?)
}

fn certificates(pem: &str, what: &str) -> Result<Vec<CertificateDer<'static>>, ServerCertificateError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(|source| ServerCertificateError::Pem { what: what.to_owned(), source })?;
    if all.is_empty() { Err(ServerCertificateError::NoCertificate { what: what.to_owned() }) } else { Ok(all) }
}

fn read(path: &Path) -> Result<String, ServerCertificateError> {
    let shown = || path.display().to_string();
    let text = secret_files::read(path).map_err(|source| ServerCertificateError::Read { path: shown(), source })?;
    text.ok_or_else(|| ServerCertificateError::NoCertificate { what: shown() })
}
