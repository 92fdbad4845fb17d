//! Verifies server certificates like Go's client.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

use super::TlsConfigError;

/// Accepts what webpki verifies and, like Go, a certificate that is itself trusted. Webhooks often have a
/// self-signed one, which webpki accepts as an authority but not as a server.
#[derive(Debug)]
pub struct ServerVerifier {
    inner: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerVerifier {
    /// Trusts these certificates and those that they signed.
    pub fn new(trusted: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Result<Self, TlsConfigError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
        Ok(Self { inner: inner.map_err(|error| TlsConfigError::Roots(error.to_string()))?, trusted })
    }

    /// Whether the certificate itself is trusted, if webpki found no error but an unknown issuer. It checks
    /// validity times before.
    fn is_trusted(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        let of_issuer = match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
            Error::InvalidCertificate(CertificateError::Other(other)) => {
                other.0.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
            }
            _ => false,
        };
        of_issuer && self.trusted.iter().any(|trusted| trusted == certificate)
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if self.is_trusted(end_entity, &error) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
