//! The host and port of a destination.

use http::{Uri, uri::Authority};
use rustls::pki_types::ServerName;

use crate::components::BuildError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort {
    authority: Authority,
    port: u16,
}

impl HostPort {
    /// From `host:port`; without a port it is `default_port`.
    pub(crate) fn parse(text: &str, default_port: u16) -> Result<Self, BuildError> {
        let bad = || BuildError(format!("endpoint \"{}\" is not a host and a port", without_userinfo(text)));
        let authority: Authority = without_userinfo(text).parse().map_err(|_| bad())?;
        let host = authority.host();
        let port = match authority.as_str().strip_prefix(host) {
            Some("") => default_port,
            _ => authority.port_u16().ok_or_else(bad)?,
        };
        if host.is_empty() {
            return Err(bad());
        }
        Ok(Self { authority: format!("{host}:{port}").parse().map_err(|_| bad())?, port })
    }

    /// The host without the brackets of an IPv6 address.
    pub(crate) fn host(&self) -> &str {
        without_brackets(self.authority.host())
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The URI for the connector to dial. Its scheme means nothing: the connector decides about TLS.
    pub(super) fn dial_uri(&self) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(http::uri::Scheme::HTTP);
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        // All three parts are present, so `from_parts` cannot fail.
        Uri::from_parts(parts).unwrap_or_default()
    }
}

/// The name that a server must prove, from a host name, an address or `host:port`.
pub(crate) fn server_name(text: &str) -> Result<ServerName<'static>, BuildError> {
    if let Ok(name) = ServerName::try_from(without_brackets(text)) {
        return Ok(name.to_owned());
    }
    let host = text.parse::<Authority>().ok();
    let host = host.as_ref().map_or(text, |authority| without_brackets(authority.host()));
    ServerName::try_from(host)
        .map(|name| name.to_owned())
        .map_err(|_| BuildError(format!("\"{host}\" is not a valid server name for TLS")))
}

fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// A password before the host must not appear in a message.
fn without_userinfo(text: &str) -> &str {
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}
