//! TLS settings as rustls configurations.
//!
//! Files are read on every call, so a caller that sees a file change calls again and gets the new certificate.
//! An error names the file and the problem, and never repeats the contents.

#[cfg(feature = "client")]
mod client;
mod pem;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kubewake_config::model::{KeyPair, PemSource, ServerTls, TlsVersion};
use kubewake_runtime::tls::{alpn_protocols, crypto_provider};
use rustls::{
    ServerConfig, SupportedProtocolVersion,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    version::{TLS12, TLS13},
};

#[cfg(feature = "client")]
pub(crate) use self::client::client_config;
use crate::components::BuildError;

/// The TLS settings of a server; with `client_ca`, only clients with a certificate of that authority are
/// admitted.
pub(crate) fn server_config(tls: &ServerTls, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, BuildError> {
    let (chain, key) = pem::read_key_pair(&tls.identity)?;
    let builder = ServerConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(versions(tls.min_version))
        .map_err(unusable_versions)?;
    let builder = match &tls.client_ca {
        None => builder.with_no_client_auth(),
        Some(ca) => builder.with_client_cert_verifier(client_verifier(ca)?),
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| key_pair_error(&tls.identity, &error))?;
    config.alpn_protocols = alpn_protocols(alpn);
    Ok(Arc::new(config))
}

fn client_verifier(ca: &PemSource) -> Result<Arc<dyn ClientCertVerifier>, BuildError> {
    let roots = Arc::new(pem::read_roots(ca)?);
    WebPkiClientVerifier::builder_with_provider(roots, crypto_provider())
        .build()
        .map_err(|error| BuildError(format!("failed to verify clients against {}: {error}", pem::source_name(ca))))
}

fn key_pair_error(identity: &KeyPair, error: &rustls::Error) -> BuildError {
    let cert = pem::source_name(&identity.cert);
    let key = pem::source_name(&identity.key);
    BuildError(format!("the certificate in {cert} and the key in {key} cannot be used together: {error}"))
}

fn unusable_versions(error: rustls::Error) -> BuildError {
    BuildError(format!("tls::min_version cannot be used: {error}"))
}

fn versions(min: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    static TLS_1_2_AND_LATER: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    static TLS_1_3_AND_LATER: [&SupportedProtocolVersion; 1] = [&TLS13];
    match min {
        TlsVersion::V1_2 => &TLS_1_2_AND_LATER,
        TlsVersion::V1_3 => &TLS_1_3_AND_LATER,
    }
}
