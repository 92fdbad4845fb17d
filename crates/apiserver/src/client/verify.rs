//! Whether the other side is who it says.

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

use super::TrustError;

/// As Go's: what webpki verifies, and a certificate that is itself among those that are trusted. Webhooks often have one that signed
/// itself, which webpki takes for an authority and not for a server.
#[derive(Debug)]
pub struct Verifier {
    inner: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    /// Believes these certificates and whom they signed.
    pub fn new(trusted: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Result<Self, TrustError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
        Ok(Self { inner: inner.map_err(|error| TrustError::Roots(error.to_string()))?, trusted })
    }

    /// Whether the certificate itself is trusted, when webpki found nothing wrong but its issuer. It has looked at the times before.
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

impl ServerCertVerifier for Verifier {
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
