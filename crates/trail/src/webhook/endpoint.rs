//! How API servers reach a webhook: what its registration says, and the names that its certificate must have.

use std::{collections::BTreeSet, net::SocketAddr};

use http::Uri;
use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};

/// How API servers reach a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// By an address.
    Url {
        /// Host and port.
        authority: String,
        /// The host alone, without the brackets of IPv6.
        host: String,
    },
    /// By a Service of the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port, not that of its pods.
        port: u16,
    },
}

/// Why no API server can call there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEndpoint {
    /// Another scheme, or no host.
    #[error("it must begin with https:// and a host, since an API server calls over TLS only")]
    Scheme,
    /// The API server would refuse it.
    #[error("it may have no user and no query")]
    Extra,
    /// The webhook chooses its paths itself.
    #[error("its path is {0}")]
    Path(&'static str),
}

impl Endpoint {
    /// What listens on this address of this machine. None for the wildcard, which nobody can call.
    #[must_use]
    pub fn listening(address: SocketAddr) -> Option<Self> {
        let reachable = !address.ip().is_unspecified();
        reachable.then(|| Self::Url { authority: address.to_string(), host: address.ip().to_string() })
    }

    /// An address that somebody wrote down, with or without the path at which the webhook listens.
    pub fn at(url: &Uri, path: &'static str) -> Result<Self, BadEndpoint> {
        let authority = url.authority().filter(|_| url.scheme_str() == Some("https")).ok_or(BadEndpoint::Scheme)?;
        if authority.as_str().contains('@') || url.query().is_some() {
            return Err(BadEndpoint::Extra);
        }
        if !["", "/", path].contains(&url.path()) {
            return Err(BadEndpoint::Path(path));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        Ok(Self::Url { authority: authority.to_string(), host })
    }

    /// A Service of the cluster.
    #[must_use]
    pub fn service(namespace: &str, name: &str, port: u16) -> Self {
        Self::Service { namespace: namespace.to_owned(), name: name.to_owned(), port }
    }

    /// What a registration says of the webhook at this path. The `caBundle` is the registration's to fill in.
    #[must_use]
    pub fn client_config(&self, path: &str) -> WebhookClientConfig {
        match self {
            Self::Url { authority, .. } => WebhookClientConfig {
                url: Some(format!("https://{authority}{path}")),
                ..WebhookClientConfig::default()
            },
            Self::Service { namespace, name, port } => {
                let (namespace, name) = (namespace.clone(), name.clone());
                let service = ServiceReference { namespace, name, path: Some(path.into()), port: Some((*port).into()) };
                WebhookClientConfig { service: Some(service), ..WebhookClientConfig::default() }
            }
        }
    }

    /// The names that the certificate must have.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        match self {
            Self::Url { host, .. } => BTreeSet::from([host.clone()]),
            Self::Service { namespace, name, .. } => {
                BTreeSet::from([format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")])
            }
        }
    }
}
