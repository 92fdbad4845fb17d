//! Certificates made for a test.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::Cluster;

/// Who signs.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub cert: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// A new one, which nobody trusts yet.
    pub fn new(name: &str) -> Self {
        let mut params = named(name, Vec::new());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Its own certificate, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Signs one for a server where the cluster reaches this machine, or for a client of it.
    pub fn sign(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), Cluster::host()];
        let cert = named(name, names).signed_by(&key, &self.issuer).unwrap().pem();
        Identity { cert, key: key.serialize_pem() }
    }
}

fn named(name: &str, alternatives: Vec<String>) -> CertificateParams {
    let mut params = CertificateParams::new(alternatives).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
