//! The server's TLS settings.

use std::{path::Path, sync::Arc};

use arc_swap::ArcSwap;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier},
    sign::CertifiedKey,
};

use super::{Error, Pair, files};

/// The serving certificate of now. It can be replaced while connections are open and new ones come.
#[derive(Debug)]
pub struct Serving {
    now: ArcSwap<CertifiedKey>,
}

impl Serving {
    /// Serves this one.
    pub fn new(pair: &Pair) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self { now: ArcSwap::from_pointee(certified(pair)?) }))
    }

    /// Serves another one from now on. If it cannot be used, the old one stays.
    pub fn replace(&self, pair: &Pair) -> Result<(), Error> {
        self.now.store(Arc::new(certified(pair)?));
        Ok(())
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now.load_full())
    }
}

impl Pair {
    /// Reads a certificate and its key that somebody gave.
    pub fn load(chain: &Path, key: &Path) -> Result<Self, Error> {
        let pair = Self { chain: read(chain)?, key: read(key)? };
        certified(&pair)?;
        Ok(pair)
    }
}

/// TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1. A client need not bring a certificate; one that it brings must be signed by one of the
/// `client_cas` (PEM, perhaps several in one).
pub fn server_config<'a>(
    serving: Arc<Serving>,
    client_cas: impl IntoIterator<Item = &'a str>,
) -> Result<Arc<ServerConfig>, Error> {
    let mut roots = RootCertStore::empty();
    for pem in client_cas {
        for certificate in certificates(pem, "the CA for client certificates")? {
            roots.add(certificate)?;
        }
    }
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let builder = if roots.is_empty() {
        builder.with_no_client_auth()
    } else {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        builder.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
    };
    let mut config = builder.with_cert_resolver(serving);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The cryptography that is used for TLS, whatever the process has installed.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A certificate with its key, if they belong together.
pub(super) fn certified(pair: &Pair) -> Result<CertifiedKey, Error> {
    let chain = certificates(&pair.chain, "the certificate")?;
    let what = || "the private key".to_owned();
    let key =
        PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(|source| Error::Pem { what: what(), source })?;
    Ok(CertifiedKey::from_der(chain, key, &provider())?)
}

fn certificates(pem: &str, what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(|source| Error::Pem { what: what.to_owned(), source })?;
    if all.is_empty() { Err(Error::NoCertificate { what: what.to_owned() }) } else { Ok(all) }
}

fn read(path: &Path) -> Result<String, Error> {
    let shown = || path.display().to_string();
    let text = files::read(path).map_err(|source| Error::Read { path: shown(), source })?;
    text.ok_or_else(|| Error::NoCertificate { what: shown() })
}
