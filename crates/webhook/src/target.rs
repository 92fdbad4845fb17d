//! The address of a webhook: the client configuration for API servers, and the names for its certificate.

use std::{collections::BTreeSet, net::SocketAddr};

use http::Uri;
use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};

/// The address under which API servers reach a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookTarget {
    /// A URL.
    Url {
        /// Host and port.
        authority: String,
        /// The host, without the brackets of an IPv6 address.
        host: String,
    },
    /// A Service of the cluster.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
        /// The port of the Service, not of its pods.
        port: u16,
    },
}

/// The reason why a URL is not a valid target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWebhookTarget {
    /// The scheme is not https, or there is no host.
    #[error("the URL must begin with https:// and a host, because API servers call webhooks over TLS only")]
    Scheme,
    /// The API server refuses user information and queries.
    #[error("the URL may contain no user information and no query")]
    Extra,
    /// The path is not the webhook's.
    #[error("the path of the URL must be {0}")]
    Path(&'static str),
}

impl WebhookTarget {
    /// A target on this machine; none for the wildcard address, which is not callable.
    #[must_use]
    pub fn from_listen_address(address: SocketAddr) -> Option<Self> {
        let reachable = !address.ip().is_unspecified();
        reachable.then(|| Self::Url { authority: address.to_string(), host: address.ip().to_string() })
    }

    /// Parses a URL, with or without the webhook's path.
    pub fn from_url(url: &Uri, path: &'static str) -> Result<Self, InvalidWebhookTarget> {
        let authority =
            url.authority().filter(|_| url.scheme_str() == Some("https")).ok_or(InvalidWebhookTarget::Scheme)?;
        if authority.as_str().contains('@') || url.query().is_some() {
            return Err(InvalidWebhookTarget::Extra);
        }
        if !["", "/", path].contains(&url.path()) {
            return Err(InvalidWebhookTarget::Path(path));
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        Ok(Self::Url { authority: authority.to_string(), host })
    }

    /// A target behind a Service.
    #[must_use]
    pub fn from_service(namespace: &str, name: &str, port: u16) -> Self {
        Self::Service { namespace: namespace.to_owned(), name: name.to_owned(), port }
    }

    /// The client configuration for this path. The `caBundle` is filled in by the registration.
    #[must_use]
    pub fn client_config(&self, path: &str) -> WebhookClientConfig {
        match self {
            Self::Url { authority, .. } => WebhookClientConfig {
                url: Some(format!("https://{authority}{path}")),
                ..WebhookClientConfig::default()
            },
            Self::Service { namespace, name, port } => {
                let namespace = namespace.clone();
                let name = name.clone();
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
