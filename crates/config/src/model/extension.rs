//! Extensions.

use std::{path::PathBuf, time::Duration};

use super::network::{ClientTls, ServerTls};
use crate::Secret;

/// A configured extension.
#[derive(Clone, Debug, PartialEq)]
pub enum Extension {
    /// `health_check`
    HealthCheck(HealthCheck),
    /// `basicauth`
    BasicAuth(BasicAuth),
    /// `bearertokenauth`
    BearerTokenAuth(BearerTokenAuth),
    /// `oauth2client`
    OAuth2Client(OAuth2Client),
}

/// `health_check`
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    /// Where it listens.
    pub endpoint: String,
    /// `path` of the health answer.
    pub path: String,
    /// `tls`
    pub tls: Option<ServerTls>,
    /// `check_collector_pipeline`
    pub pipeline_check: PipelineCheck,
    /// `response_body`; `None`: the document that the Collector answers with.
    pub response_body: Option<HealthBodies>,
}

/// `response_body`: what is said instead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthBodies {
    /// `healthy`
    pub healthy: String,
    /// `unhealthy`
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
    /// Checks who comes.
    Server(Htpasswd),
    /// Says who we are.
    Client(ClientCredentials),
}

/// `htpasswd`
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Htpasswd {
    /// `file`
    pub file: Option<PathBuf>,
    /// `inline`; its entries win over the file's.
    pub inline: Option<Secret>,
}

/// `client_auth`; a file wins over text.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ClientCredentials {
    /// `username`
    pub username: String,
    /// `username_file`
    pub username_file: Option<PathBuf>,
    /// `password`
    pub password: Secret,
    /// `password_file`
    pub password_file: Option<PathBuf>,
}

/// `bearertokenauth`
#[derive(Clone, Debug, PartialEq)]
pub struct BearerTokenAuth {
    /// `header`
    pub header: String,
    /// `scheme`
    pub scheme: String,
    /// `token` and `tokens`: a client sends the first, a server takes any.
    pub tokens: Vec<Secret>,
    /// `filename`, one token a line; wins over text and is read again when it changes.
    pub file: Option<PathBuf>,
}

/// `oauth2client`
#[derive(Clone, Debug, PartialEq)]
pub struct OAuth2Client {
    /// `client_id`
    pub client_id: String,
    /// `client_id_file`
    pub client_id_file: Option<PathBuf>,
    /// `client_secret`
    pub client_secret: Secret,
    /// `client_secret_file`
    pub client_secret_file: Option<PathBuf>,
    /// `token_url`
    pub token_url: String,
    /// `scopes`
    pub scopes: Vec<String>,
    /// `endpoint_params`
    pub endpoint_params: Vec<(String, String)>,
    /// `timeout` of a token request
    pub timeout: Option<Duration>,
    /// `expiry_buffer`: a token is renewed this long before it expires.
    pub expiry_buffer: Duration,
    /// `tls` towards the token endpoint
    pub tls: ClientTls,
}
