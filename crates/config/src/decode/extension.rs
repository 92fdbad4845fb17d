//! Extensions.

use std::time::Duration;

use super::{cursor::Cursor, field_reader::FieldReader, network, report::DecodeReport, scalar, tls};
use crate::{
    SecretString,
    model::{
        BasicAuth, BasicClientCredentials, BearerTokenAuth, HealthBodies, HealthCheck, Htpasswd, OAuth2Client,
        PipelineCheck,
    },
};

pub(crate) fn health_check(at: &Cursor<'_>, report: &DecodeReport) -> Option<HealthCheck> {
    let default = HealthCheck::default();
    let mut fields = FieldReader::new(at, report);
    let check = HealthCheck {
        endpoint: network::listen(&mut fields, &default.endpoint),
        path: fields.get_or("path", default.path, scalar::text),
        tls: fields.get("tls", tls::server),
        pipeline_check: fields.get("check_collector_pipeline", pipeline_check).unwrap_or_default(),
        response_body: fields.get("response_body", response_body),
    };
    if !check.path.starts_with('/') {
        report.error(&fields.cursor_at("path"), "`path` must begin with /", None);
    }
    fields.accept_without_effect(
        &["read_timeout", "read_header_timeout", "write_timeout", "idle_timeout"],
        scalar::nanoseconds,
    );
    fields.accept_without_effect(&["include_metadata", "keep_alives_enabled", "use_v2"], scalar::boolean);
    fields.accept_without_effect(&["max_request_body_size"], scalar::integer);
    fields.accept_without_effect(&["compression_algorithms"], scalar::texts);
    fields.unsupported(&["auth", "cors", "response_headers", "middlewares", "http", "grpc", "component_health"]);
    fields.finish();
    Some(check)
}

fn response_body(at: &Cursor<'_>, report: &DecodeReport) -> Option<HealthBodies> {
    let mut fields = FieldReader::new(at, report);
    let bodies = HealthBodies {
        healthy: fields.text("healthy").unwrap_or_default(),
        unhealthy: fields.text("unhealthy").unwrap_or_default(),
    };
    fields.finish();
    Some(bodies)
}

fn pipeline_check(at: &Cursor<'_>, report: &DecodeReport) -> Option<PipelineCheck> {
    let default = PipelineCheck::default();
    let mut fields = FieldReader::new(at, report);
    if fields.get("enabled", scalar::boolean) == Some(false) {
        let message = "`enabled: false` has no effect: a pipeline that is stuck is always reported";
        report.warning(&fields.cursor_at("enabled"), message, None);
    }
    let check = PipelineCheck {
        interval: fields.get_or("interval", default.interval, scalar::duration),
        failure_threshold: fields.get_or("exporter_failure_threshold", default.failure_threshold, scalar::u32),
    };
    fields.finish();
    Some(check)
}

pub(crate) fn basic_auth(at: &Cursor<'_>, report: &DecodeReport) -> Option<BasicAuth> {
    let mut fields = FieldReader::new(at, report);
    let server = fields.find_even_empty("htpasswd").map(|at| htpasswd(&at, report));
    let client = fields.find_even_empty("client_auth").map(|at| client_auth(&at, report));
    let auth = match (server, client) {
        (Some(server), None) => Some(BasicAuth::Server(server)),
        (None, Some(client)) => Some(BasicAuth::Client(client)),
        (Some(_), Some(_)) => {
            let help = "use two extensions, one with `htpasswd` for servers and one with `client_auth` for clients";
            let place = fields.cursor_at("client_auth");
            report.error(&place, "`htpasswd` and `client_auth` cannot both be set", Some(help.into()));
            None
        }
        (None, None) => {
            let help = "set `htpasswd` for a server, or `client_auth` for a client";
            fields.require("htpasswd", "the extension has no credentials", Some(help.into()));
            None
        }
    };
    fields.finish();
    auth
}

fn htpasswd(at: &Cursor<'_>, report: &DecodeReport) -> Htpasswd {
    let mut fields = FieldReader::new(at, report);
    let htpasswd = Htpasswd {
        file: fields.path("file"),
        inline: fields.get("inline", scalar::secret).filter(|text: &SecretString| !text.is_empty()),
    };
    if htpasswd.file.is_none() && htpasswd.inline.is_none() && !fields.failed("inline") {
        fields.require("file", "the extension has no credentials", Some("set `file` or `inline`".into()));
    }
    fields.finish();
    htpasswd
}

fn client_auth(at: &Cursor<'_>, report: &DecodeReport) -> BasicClientCredentials {
    let mut fields = FieldReader::new(at, report);
    let credentials = BasicClientCredentials {
        username: fields.text("username").unwrap_or_default(),
        username_file: fields.path("username_file"),
        password: fields.get("password", scalar::secret).unwrap_or_default(),
        password_file: fields.path("password_file"),
    };
    let named = !credentials.username.is_empty() || credentials.username_file.is_some();
    if !named && !fields.failed("username_file") {
        fields.require("username", "the extension has no user name", Some("set `username` or `username_file`".into()));
    }
    fields.finish();
    credentials
}

pub(crate) fn bearer_token_auth(at: &Cursor<'_>, report: &DecodeReport) -> Option<BearerTokenAuth> {
    let mut fields = FieldReader::new(at, report);
    let one = fields.get("token", token).filter(|token| !token.is_empty());
    let many = fields.get("tokens", tokens).unwrap_or_default();
    let file = fields.path("filename");
    let none = one.is_none() && many.is_empty() && file.is_none();
    if one.is_some() && !many.is_empty() {
        let place = fields.cursor_at("tokens");
        report.error(&place, "`token` and `tokens` cannot both be set", Some("keep one of the two".into()));
    } else if none && !fields.failed("tokens") && !fields.failed("filename") {
        fields.require("token", "the extension has no token", Some("set `token`, `tokens` or `filename`".into()));
    }
    let auth = BearerTokenAuth {
        header: fields.get_or("header", "Authorization".into(), scalar::text),
        scheme: fields.get_or("scheme", "Bearer".into(), scalar::text),
        tokens: if many.is_empty() { one.into_iter().collect() } else { many },
        file,
    };
    fields.finish();
    Some(auth)
}

fn token(at: &Cursor<'_>, report: &DecodeReport) -> Option<SecretString> {
    scalar::secret(at, report).filter(|token| network::check_header_value(at, report, token))
}

fn tokens(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<SecretString>> {
    match at.items() {
        Some(items) => Some(items.filter_map(|item| token(&item, report)).collect()),
        None => scalar::wrong_type(at, report, "a list", None),
    }
}

/// `oauth2client`
pub(crate) fn oauth2_client(at: &Cursor<'_>, report: &DecodeReport) -> Option<OAuth2Client> {
    let mut fields = FieldReader::new(at, report);
    let grants = [("client_credentials", true), ("", true), ("urn:ietf:params:oauth:grant-type:jwt-bearer", false)];
    let grant = fields.get("grant_type", |at, report| scalar::keyword(at, report, &grants));
    if grant == Some(false) {
        let place = fields.cursor_at("grant_type");
        report.error(&place, "this `grant_type` is not supported by this build", Some("use client_credentials".into()));
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
    let crate::yaml::NodeValue::Map(entries) = &at.node.value else {
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
