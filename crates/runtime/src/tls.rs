//! TLS for servers and clients.
//!
//! *Guaranteed*: the cryptography provider is named here and not installed for the process, so that a program
//! that embeds a crate of this workspace keeps its own choice. A handshake has a deadline.
//!
//! *Not done*: reading certificates. Their sources differ (files and text of a document, Secrets, generated
//! pairs), and an error names the source; each caller reads its own and ends the builder with it. Nor the
//! verifier of the API server for webhooks, which accepts a trusted certificate that is no authority, as Go does
//! (`kubernetes/apiserver/client`).

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, ServerConfig, SignatureScheme, WantsVerifier,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

#[cfg(test)]
mod tests;

/// The cryptography provider, whatever the process has installed.
pub fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The beginning of a server's settings: TLS 1.2 and 1.3.
///
/// # Errors
/// If the provider supports neither version, which does not happen.
pub fn server_builder() -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, Error> {
    ServerConfig::builder_with_provider(crypto_provider()).with_safe_default_protocol_versions()
}

/// The beginning of a client's settings: TLS 1.2 and 1.3.
///
/// # Errors
/// If the provider supports neither version, which does not happen.
pub fn client_builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    ClientConfig::builder_with_provider(crypto_provider()).with_safe_default_protocol_versions()
}

/// The names of application protocols, as settings hold them.
pub fn alpn_protocols(names: &[&[u8]]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.to_vec()).collect()
}

/// The TLS session of an accepted connection; none if the handshake fails or takes longer than the limit.
pub async fn accept(
    stream: TcpStream,
    peer: SocketAddr,
    config: Arc<ServerConfig>,
    limit: Duration,
) -> Option<TlsStream<TcpStream>> {
    match timeout(limit, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::debug!(%peer, "TLS handshake timed out");
            None
        }
    }
}

/// Accepts every server certificate, but still verifies that the server has its key: the connection is as
/// private as it can be with an unknown peer.
pub fn unverified_server(provider: Arc<CryptoProvider>) -> Arc<dyn ServerCertVerifier> {
    Arc::new(UnverifiedServer(provider))
}

#[derive(Debug)]
struct UnverifiedServer(Arc<CryptoProvider>);

impl ServerCertVerifier for UnverifiedServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
