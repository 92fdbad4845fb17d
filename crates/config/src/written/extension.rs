//! `extensions`

use super::{
    Text, Tls,
    yaml::{Map, Value},
};
use std::collections::BTreeMap;

/// An extension.
#[derive(Clone, Debug, PartialEq)]
pub enum Extension {
    /// `health_check`, with its `endpoint`.
    HealthCheck(Text),
    /// `basicauth` of a client
    BasicAuth {
        /// `client_auth: username`
        username: Text,
        /// `client_auth: password`
        password: Text,
    },
    /// `bearertokenauth`
    BearerTokenAuth {
        /// `token`
        token: Text,
    },
    /// `oauth2client`
    OAuth2Client {
        /// `client_id`
        client_id: Text,
        /// `client_secret`
        client_secret: Text,
        /// `token_url`
        token_url: Text,
        /// `scopes`
        scopes: Vec<String>,
        /// `endpoint_params`
        endpoint_params: BTreeMap<String, String>,
        /// `tls`
        tls: Option<Tls>,
    },
}

impl Extension {
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::HealthCheck(endpoint) => Map::default().with("endpoint", endpoint),
            Self::BasicAuth { username, password } => {
                Map::default().with("client_auth", Map::default().with("username", username).with("password", password))
            }
            Self::BearerTokenAuth { token } => Map::default().with("token", token),
            Self::OAuth2Client { client_id, client_secret, token_url, scopes, endpoint_params, tls } => {
                let params: Option<Map> = (!endpoint_params.is_empty())
                    .then(|| endpoint_params.iter().map(|(name, value)| (name, list(value))).collect());
                Map::default()
                    .with("client_id", client_id)
                    .with("client_secret", client_secret)
                    .with("token_url", token_url)
                    .list("scopes", scopes)
                    .maybe("endpoint_params", params)
                    .maybe("tls", tls.as_ref().map(Tls::to_value))
            }
        }
        .into()
    }
}

/// A single text would be cut at its commas.
fn list(text: &String) -> Value {
    Value::List(vec![text.into()])
}
