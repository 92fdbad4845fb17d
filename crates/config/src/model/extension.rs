//! Extensions.

use std::{path::PathBuf, time::Duration};

use super::network::{ClientTls, ServerTls};
use crate::SecretString;

#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    pub endpoint: String,
    /// `path` of the health answer.
    pub path: String,
    pub tls: Option<ServerTls>,
    pub pipeline_check: PipelineCheck,
    /// `response_body`; `None`: the document that the Collector answers with.
    pub response_body: Option<HealthBodies>,
}

/// `response_body`: the bodies that replace the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthBodies {
    pub healthy: String,
    pub unhealthy: String,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self {
            endpoint: "localhost:13133".into(),
            path: "/".into(),
            tls: None,
            pipeline_check: PipelineCheck::default(),
            response_body: None,
        }
    }
}

/// When a pipeline counts as stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineCheck {
    /// `interval`: it holds data and delivered nothing for this long,
    pub interval: Duration,
    /// `exporter_failure_threshold`: and failed at least this often since.
    pub failure_threshold: u32,
}

impl Default for PipelineCheck {
    fn default() -> Self {
        Self { interval: Duration::from_secs(300), failure_threshold: 5 }
    }
}

/// `basicauth`: `htpasswd` for servers, `client_auth` for clients; exactly one of them.
#[derive(Clone, Debug, PartialEq)]
pub enum BasicAuth {
    Server(Htpasswd),
    Client(BasicClientCredentials),
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Htpasswd {
    pub file: Option<PathBuf>,
    /// `inline`; its entries win over the file's.
    pub inline: Option<SecretString>,
}

/// `client_auth`; a file wins over text.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BasicClientCredentials {
    pub username: String,
    pub username_file: Option<PathBuf>,
    pub password: SecretString,
    pub password_file: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BearerTokenAuth {
    pub header: String,
    pub scheme: String,
    /// `token` and `tokens`: a client sends the first, a server takes any.
    pub tokens: Vec<SecretString>,
    /// `filename`, one token a line; wins over text and is read again when it changes.
    pub file: Option<PathBuf>,
}

/// `oauth2client`
#[derive(Clone, Debug, PartialEq)]
pub struct OAuth2Client {
    pub client_id: String,
    pub client_id_file: Option<PathBuf>,
    pub client_secret: SecretString,
    pub client_secret_file: Option<PathBuf>,
    pub token_url: String,
    pub scopes: Vec<String>,
    pub endpoint_params: Vec<(String, String)>,
    /// `timeout` of a token request
    pub timeout: Option<Duration>,
    /// `expiry_buffer`: a token is renewed this long before it expires.
    pub expiry_buffer: Duration,
    /// `tls` towards the token endpoint
    pub tls: ClientTls,
}
