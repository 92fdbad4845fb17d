//! The side of a client.

use std::sync::Arc;

use kubewake_config::model::{ClientTls, KeyPair};
use kubewake_runtime::tls::{alpn_protocols, crypto_provider, unverified_server};
use rustls::{ClientConfig, RootCertStore, client::WantsClientCert};

use super::{key_pair_error, pem, unusable_versions, versions};
use crate::components::BuildError;

/// The TLS settings of a client; `None` without TLS.
///
/// As in the Collector, `insecure` together with a `ca` still means TLS: a configured root is meant to be used.
pub(crate) fn client_config(tls: &ClientTls, alpn: &[&[u8]]) -> Result<Option<Arc<ClientConfig>>, BuildError> {
    if tls.insecure && tls.ca.is_none() {
        return Ok(None);
    }
    let provider = crypto_provider();
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions(tls.min_version))
        .map_err(unusable_versions)?;
    let builder = if tls.insecure_skip_verify {
        builder.dangerous().with_custom_certificate_verifier(unverified_server(provider))
    } else {
        builder.with_root_certificates(roots(tls)?)
    };
    let mut config = with_identity(builder, tls.identity.as_ref())?;
    config.alpn_protocols = alpn_protocols(alpn);
    Ok(Some(Arc::new(config)))
}

fn with_identity(
    builder: rustls::ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<&KeyPair>,
) -> Result<ClientConfig, BuildError> {
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let (chain, key) = pem::read_key_pair(identity)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| key_pair_error(identity, &error))
        }
    }
}

/// The trusted roots of a client: `ca`, the system's roots, or both.
fn roots(tls: &ClientTls) -> Result<RootCertStore, BuildError> {
    let mut store = match &tls.ca {
        Some(ca) => pem::read_roots(ca)?,
        None => RootCertStore::empty(),
    };
    if tls.ca.is_none() || tls.include_system_roots {
        // One unreadable file among the system's roots is no reason to trust none of them.
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if store.is_empty() {
        return Err(BuildError("the system has no root certificates: set tls::ca_file".into()));
    }
    Ok(store)
}
