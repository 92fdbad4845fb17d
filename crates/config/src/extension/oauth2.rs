//! `oauth2client`.

use std::{path::PathBuf, time::Duration};

use crate::{
    ConfigText, SecretString,
    component::{ComponentSettings, ExtensionSettings},
    decode::{ConnectionSide, Cursor, DecodeReport, FieldReader, scalar},
    encode::{YamlMap, YamlValue},
    network::{ClientTls, tls},
    yaml::NodeValue,
};

/// `oauth2client`
#[derive(Clone, Debug, PartialEq)]
pub struct OAuth2Client {
    pub client_id: ConfigText,
    pub client_id_file: Option<PathBuf>,
    pub client_secret: SecretString,
    pub client_secret_file: Option<PathBuf>,
    pub token_url: ConfigText,
    pub scopes: Vec<String>,
    pub endpoint_params: Vec<(String, String)>,
    /// `timeout` of a token request
    pub timeout: Option<Duration>,
    /// `expiry_buffer`: a token is renewed this long before it expires.
    pub expiry_buffer: Duration,
    /// `tls` towards the token endpoint
    pub tls: ClientTls,
}

const DEFAULT_EXPIRY_BUFFER: Duration = Duration::from_secs(300);

impl Default for OAuth2Client {
    fn default() -> Self {
        Self {
            client_id: ConfigText::default(),
            client_id_file: None,
            client_secret: SecretString::default(),
            client_secret_file: None,
            token_url: ConfigText::default(),
            scopes: Vec::new(),
            endpoint_params: Vec::new(),
            timeout: None,
            expiry_buffer: DEFAULT_EXPIRY_BUFFER,
            tls: ClientTls::default(),
        }
    }
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
            client_id: fields.text("client_id").unwrap_or_default().into(),
            client_id_file: fields.path("client_id_file"),
            client_secret: fields.get("client_secret", scalar::secret).unwrap_or_default(),
            client_secret_file: fields.path("client_secret_file"),
            token_url: fields.text("token_url").unwrap_or_default().into(),
            scopes: fields.get("scopes", scalar::texts).unwrap_or_default(),
            endpoint_params: fields.get("endpoint_params", endpoint_params).unwrap_or_default(),
            timeout: fields.get("timeout", scalar::loose_duration).filter(|timeout| !timeout.is_zero()),
            expiry_buffer: fields.get_or("expiry_buffer", DEFAULT_EXPIRY_BUFFER, scalar::loose_duration),
            tls: fields.get("tls", tls::client).unwrap_or_default(),
        };
        oauth2_complete(&fields, &client);
        fields.finish();
        Some(client)
    }

    fn encode(&self) -> YamlMap {
        YamlMap::default()
            .with_optional("client_id", Some(&self.client_id).filter(|text| !text.is_empty()))
            .with_optional("client_id_file", self.client_id_file.as_deref())
            .with_optional("client_secret", Some(&self.client_secret).filter(|text| !text.is_empty()))
            .with_optional("client_secret_file", self.client_secret_file.as_deref())
            .with_field("token_url", &self.token_url)
            .with_list("scopes", &self.scopes)
            .with_section("endpoint_params", encode_params(&self.endpoint_params))
            .with_optional("timeout", self.timeout)
            .with_changed("expiry_buffer", self.expiry_buffer, DEFAULT_EXPIRY_BUFFER)
            .with_section("tls", self.tls.encode())
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

/// Each parameter with a list, also of one value: a single text would be split at commas.
fn encode_params(params: &[(String, String)]) -> YamlMap {
    let same_name = |(one, _): &(String, String), (other, _): &(String, String)| one == other;
    let lists = params.chunk_by(same_name).filter_map(|chunk| {
        let (name, _) = chunk.first()?;
        Some((name, YamlValue::List(chunk.iter().map(|(_, value)| value.into()).collect())))
    });
    lists.collect()
}
