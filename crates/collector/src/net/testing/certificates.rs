//! Certificates that live as long as a test.

use kubewake_config::{
    SecretString,
    model::{KeyPair, PemSource, ServerTls, TlsVersion},
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair as Key};

/// A private root of trust.
pub(crate) struct Authority(CertifiedIssuer<'static, Key>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, Key::generate().unwrap()).unwrap())
    }

    /// The root certificate to trust.
    pub(crate) fn root(&self) -> PemSource {
        PemSource::Inline(SecretString::new(self.0.pem()))
    }

    /// A certificate for a server or a client of this name.
    pub(crate) fn issue(&self, name: &str) -> KeyPair {
        let key = Key::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let cert = params.signed_by(&key, &self.0).unwrap();
        let inline = |text| PemSource::Inline(SecretString::new(text));
        KeyPair { cert: inline(cert.pem()), key: inline(key.serialize_pem()) }
    }

    /// A server of this name that admits any client.
    pub(crate) fn server(&self, name: &str) -> ServerTls {
        ServerTls { identity: self.issue(name), client_ca: None, min_version: TlsVersion::V1_2, reload_interval: None }
    }
}
