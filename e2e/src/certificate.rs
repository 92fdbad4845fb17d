//! Certificates for tests.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::ClusterUnderTest;

pub struct TestAuthority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct CertifiedIdentity {
    pub cert: String,
    pub key: String,
}

impl TestAuthority {
    /// A new authority, which no program trusts yet.
    pub fn new(name: &str) -> Self {
        let mut params = certificate_params(name, Vec::new());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Its own certificate, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Signs a certificate for a server on this machine, at the address where the cluster reaches it, or for a
    /// client.
    pub fn sign(&self, name: &str) -> CertifiedIdentity {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), ClusterUnderTest::host()];
        let cert = certificate_params(name, names).signed_by(&key, &self.issuer).unwrap().pem();
        CertifiedIdentity { cert, key: key.serialize_pem() }
    }
}

fn certificate_params(name: &str, alternatives: Vec<String>) -> CertificateParams {
    let mut params = CertificateParams::new(alternatives).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
