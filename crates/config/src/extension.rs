//! Extensions: services of the collector itself, such as health and credentials.

mod basic;
mod bearer;
mod file_storage;
mod health;
mod oauth2;

pub use self::{
    basic::{BasicAuth, BasicClientCredentials, Htpasswd},
    bearer::BearerTokenAuth,
    file_storage::FileStorage,
    health::{HealthBodies, HealthCheck, PipelineCheck},
    oauth2::OAuth2Client,
};
use crate::{
    component::{ExtensionSettings, component_table},
    decode::{ConnectionSide, foreign_names},
};

component_table! {
    pub enum ExtensionConfig: ExtensionSettings {
        section: "extensions",
        noun: "extension",
        foreign_names: foreign_names::EXTENSIONS,
    }
    HealthCheck(HealthCheck) = ["health_check"], feature "extension-health-check";
    BasicAuth(BasicAuth) = ["basicauth"], feature "extension-auth";
    BearerTokenAuth(BearerTokenAuth) = ["bearertokenauth"], feature "extension-auth";
    OAuth2Client(OAuth2Client) = ["oauth2client"], feature "extension-auth";
    FileStorage(FileStorage) = ["file_storage"], feature "extension-file-storage";
}

/// Help for a document that needs an authenticator for this side of a connection.
pub(crate) fn authenticator_help(side: ConnectionSide) -> &'static str {
    match side {
        ConnectionSide::Server => "for a server use `basicauth` with `htpasswd`, or `bearertokenauth`",
        ConnectionSide::Client => {
            "for a client use `basicauth` with `client_auth`, `bearertokenauth` or `oauth2client`"
        }
    }
}

impl ExtensionConfig {
    /// Whether it authenticates this side of connections.
    pub(crate) fn authenticates(&self, side: ConnectionSide) -> bool {
        self.settings().authenticates(side)
    }

    /// Whether components may keep their state in it.
    pub(crate) fn keeps_state(&self) -> bool {
        self.settings().keeps_state()
    }
}
