//! TLS to a container without verification of its certificate.

use std::sync::{Arc, OnceLock};

use kubewake_runtime::tls::{client_builder, crypto_provider, unverified_server};
use rustls::{ClientConfig, Error, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Created on first use: most clusters have no probe over TLS.
#[derive(Debug, Default)]
pub(super) struct UnverifiedTls(OnceLock<Arc<ClientConfig>>);

impl UnverifiedTls {
    /// Establishes TLS on a connection.
    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let config = match self.0.get() {
            Some(config) => Arc::clone(config),
            None => Arc::clone(self.0.get_or_init({
                let config = client_config().map_err(|error| error.to_string())?;
                || Arc::new(config)
            })),
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        stream.map_err(|error| format!("tls: {error}"))
    }
}

fn client_config() -> Result<ClientConfig, Error> {
    let builder = client_builder()?.dangerous();
    Ok(builder.with_custom_certificate_verifier(unverified_server(crypto_provider())).with_no_client_auth())
}
