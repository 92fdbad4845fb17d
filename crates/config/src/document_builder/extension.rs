//! `extensions`

use super::{
    ClientTlsSection, TextSource,
    yaml::{YamlMap, YamlValue},
};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
pub enum ExtensionSection {
    HealthCheck(TextSource),
    BasicAuth {
        username: TextSource,
        password: TextSource,
    },
    BearerTokenAuth {
        token: TextSource,
    },
    /// `oauth2client`
    OAuth2Client {
        client_id: TextSource,
        client_secret: TextSource,
        token_url: TextSource,
        scopes: Vec<String>,
        endpoint_params: BTreeMap<String, String>,
        tls: Option<ClientTlsSection>,
    },
}

impl ExtensionSection {
    pub(super) fn to_value(&self) -> YamlValue {
        match self {
            Self::HealthCheck(endpoint) => YamlMap::default().with_field("endpoint", endpoint),
            Self::BasicAuth { username, password } => YamlMap::default().with_field(
                "client_auth",
                YamlMap::default().with_field("username", username).with_field("password", password),
            ),
            Self::BearerTokenAuth { token } => YamlMap::default().with_field("token", token),
            Self::OAuth2Client { client_id, client_secret, token_url, scopes, endpoint_params, tls } => {
                let params: Option<YamlMap> = (!endpoint_params.is_empty())
                    .then(|| endpoint_params.iter().map(|(name, value)| (name, list(value))).collect());
                YamlMap::default()
                    .with_field("client_id", client_id)
                    .with_field("client_secret", client_secret)
                    .with_field("token_url", token_url)
                    .with_list("scopes", scopes)
                    .with_optional("endpoint_params", params)
                    .with_optional("tls", tls.as_ref().map(ClientTlsSection::to_value))
            }
        }
        .into()
    }
}

/// A list even for one item: a single text would be split at commas.
fn list(text: &String) -> YamlValue {
    YamlValue::List(vec![text.into()])
}
