//! `oauth2client`.

use std::{path::PathBuf, time::Duration};

use crate::{
    SecretString,
    component::{ComponentSettings, ExtensionSettings},
    decode::{ConnectionSide, Cursor, DecodeReport, FieldReader, scalar},
    network::{ClientTls, tls},
    yaml::NodeValue,
};

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

impl ComponentSettings for OAuth2Client {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let grants = [("client_credentials", true), ("", true), ("urn:ietf:params:oauth:grant-type:jwt-bearer", false)];
        let grant = fields.get("grant_type", |at, report| scalar::keyword(at, report, &grants));
        if grant == Some(false) {
            let place = fields.cursor_at("grant_type");
            report.error(
                &place,
                "this `grant_type` is not supported by this build",
                Some("use client_credentials".into()),
            );
        }
        fields.unsupported(&[
            "client_certificate_key_id",
            "client_certificate_key",
            "client_certificate_key_file",
            "signature_algorithm",
            "iss",
            "audience",
            "claims",
        ]);
        let client = OAuth2Client {
            client_id: fields.text("client_id").unwrap_or_default(),
            client_id_file: fields.path("client_id_file"),
            client_secret: fields.get("client_secret", scalar::secret).unwrap_or_default(),
            client_secret_file: fields.path("client_secret_file"),
            token_url: fields.text("token_url").unwrap_or_default(),
            scopes: fields.get("scopes", scalar::texts).unwrap_or_default(),
            endpoint_params: fields.get("endpoint_params", endpoint_params).unwrap_or_default(),
            timeout: fields.get("timeout", scalar::loose_duration).filter(|timeout| !timeout.is_zero()),
            expiry_buffer: fields.get_or("expiry_buffer", Duration::from_secs(300), scalar::loose_duration),
            tls: fields.get("tls", tls::client).unwrap_or_default(),
        };
        oauth2_complete(&fields, &client);
        fields.finish();
        Some(client)
    }

    fn files(&self) -> Vec<PathBuf> {
        let own = self.client_id_file.iter().chain(&self.client_secret_file).cloned();
        own.chain(self.tls.files()).collect()
    }
}

impl ExtensionSettings for OAuth2Client {
    fn authenticates(&self, side: ConnectionSide) -> bool {
        side == ConnectionSide::Client
    }
}

fn oauth2_complete(fields: &FieldReader<'_, '_>, client: &OAuth2Client) {
    if client.client_id.is_empty() && client.client_id_file.is_none() && !fields.failed("client_id_file") {
        fields.require(
            "client_id",
            "the extension has no client id",
            Some("set `client_id` or `client_id_file`".into()),
        );
    }
    let secretless = client.client_secret.is_empty() && client.client_secret_file.is_none();
    if secretless && !fields.failed("client_secret_file") {
        let help = "set `client_secret` or `client_secret_file`";
        fields.require("client_secret", "the extension has no client secret", Some(help.into()));
    }
    if client.token_url.is_empty() {
        fields.require(
            "token_url",
            "the extension has no `token_url`",
            Some("set `token_url` to the token endpoint".into()),
        );
    }
}

/// Each parameter has one value or a list of them.
fn endpoint_params(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<(String, String)>> {
    let NodeValue::Map(entries) = &at.node.value else {
        return scalar::wrong_type(at, report, "a map", None);
    };
    report.mark_keys_public(entries);
    let mut params = Vec::new();
    for entry in entries {
        let values = scalar::texts(&at.entry(entry), report).unwrap_or_default();
        params.extend(values.into_iter().map(|value| (entry.key.text.clone(), value)));
    }
    Some(params)
}
