//! The destination of requests.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri, uri::Scheme};

use super::{connect::HostPort, request, response_status};
use crate::components::BuildError;

/// A parsed URL. It prints without its query, which may hold a key.
pub(crate) struct DestinationUrl {
    pub(crate) endpoint: HostPort,
    pub(crate) uri: Uri,
    /// `user:password@` before the host, as an `authorization` header.
    pub(crate) login: Option<HeaderValue>,
}

impl DestinationUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, BuildError> {
        let bad = |why: &str| BuildError(format!("the URL of the destination {why}"));
        let mut parts = text.parse::<Uri>().map_err(|_| bad("is not valid"))?.into_parts();
        let port = match parts.scheme.as_ref().map(Scheme::as_str) {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err(bad("begins with neither http:// nor https://")),
        };
        let authority = parts.authority.take().ok_or_else(|| bad("has no host"))?;
        let endpoint = HostPort::parse(authority.as_str(), port)?;
        let login = authority.as_str().rsplit_once('@').and_then(|(login, _)| basic(login));
        // Without the login, and without adding a default port.
        let named = authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, host)| host);
        parts.authority = Some(named.parse().map_err(|_| bad("has no valid host"))?);
        let uri = Uri::from_parts(parts).map_err(|_| bad("is not valid"))?;
        Ok(Self { endpoint, uri, login })
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }

    /// Sets the host that requests name; connections still go to the URL's host.
    pub(crate) fn set_host(&mut self, host: &HeaderValue) -> Result<(), BuildError> {
        let bad = || BuildError("the value of header \"host\" is not a host".into());
        let mut parts = self.uri.clone().into_parts();
        parts.authority = Some(host.as_bytes().try_into().map_err(|_| bad())?);
        self.uri = Uri::from_parts(parts).map_err(|_| bad())?;
        Ok(())
    }
}

fn basic(login: &str) -> Option<HeaderValue> {
    let plain = match login.split_once(':') {
        Some((user, password)) => format!("{}:{}", decoded(user), decoded(password)),
        None => format!("{}:", decoded(login)),
    };
    request::sensitive_value(&format!("Basic {}", STANDARD.encode(plain)))
}

fn decoded(text: &str) -> String {
    response_status::percent_decoded(text.as_bytes())
}

impl fmt::Display for DestinationUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.uri.scheme_str().unwrap_or("http"), self.endpoint.authority(), self.uri.path())
    }
}
