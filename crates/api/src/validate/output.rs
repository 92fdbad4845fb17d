//! `spec.output`

use std::collections::HashSet;

use super::{
    context::{ResolvedText, ValidationContext},
    endpoint, names, sending, tls,
};
use crate::{
    ConditionReason, Signal, ValueReference,
    destination::{BackendKind, PipelineDestination},
    v1alpha1::{self, OtlpProtocol, RequestHeader, ValueType},
    valid_pipeline::{DocumentText, ValidAuthentication, ValidBackend, ValidOAuth2, ValidOutput},
};

/// The destination of a pipeline for its status.
pub(super) fn backend(destination: &PipelineDestination) -> String {
    match (&destination.endpoint.value, ValueReference::from_value(&destination.endpoint)) {
        // Text with an `@` may hold credentials, and is not shown although it will be refused.
        (Some(text), None) if text.contains('@') => "***".to_owned(),
        (Some(text), None) => {
            let address = text.trim().split('?').next().unwrap_or_default();
            address.chars().filter(|c| !c.is_control()).take(128).collect()
        }
        (_, Some(reference)) => reference.to_string(),
        _ => String::new(),
    }
}

pub(super) fn output(
    check: &mut ValidationContext<'_>,
    signal: Signal,
    destination: &PipelineDestination,
) -> Option<ValidOutput> {
    let place = destination.path();
    let target = target(check, signal, destination);
    let secure = target.as_ref().and_then(|target| target.secure);
    let tls = tls::tls(check, &format!("{place}.tls"), "tls", destination.tls.as_ref(), secure);
    let authentication = destination.authentication.as_ref().map(|given| authentication(check, &place, given));
    let headers = headers(check, destination);
    let sending = sending::output_settings(check, destination);
    let backend = backend_settings(check, destination);
    warn_plaintext_credentials(check, destination, secure);
    let target = target?;
    Some(ValidOutput {
        backend: backend?,
        endpoint: target.endpoint,
        tls: tls?,
        authentication: match authentication {
            Some(authentication) => Some(authentication?),
            None => None,
        },
        headers: headers?,
        sending,
    })
}

/// The settings that only this kind of backend has.
fn backend_settings(check: &mut ValidationContext<'_>, destination: &PipelineDestination) -> Option<ValidBackend> {
    let place = destination.path();
    names::check_templates(check, destination);
    Some(match &destination.backend {
        BackendKind::Otlp { protocol, .. } => ValidBackend::Otlp(*protocol),
        BackendKind::Loki { tenant, labels, allow_record_attributes } => ValidBackend::Loki {
            tenant: tenant.clone(),
            labels: labels.clone(),
            allow_record_attributes: allow_record_attributes.clone(),
        },
        BackendKind::Elasticsearch { api_key, documents, mapping } => {
            if api_key.is_some() && destination.authentication.is_some() {
                let message = "set either `apiKey` or `authentication`";
                check.refuse(format!("{place}.apiKey"), ConditionReason::SpecInvalid, message);
            }
            let api_key = api_key.as_ref().map(|key| secret(check, &format!("{place}.apiKey"), "api-key", key));
            ValidBackend::Elasticsearch {
                api_key: match api_key {
                    Some(key) => Some(key?),
                    None => None,
                },
                documents: documents.clone(),
                mapping: *mapping,
            }
        }
        BackendKind::Opensearch { documents, mapping } => {
            ValidBackend::Opensearch { documents: documents.clone(), mapping: *mapping }
        }
        BackendKind::Http(options) => ValidBackend::Http(*options),
    })
}

struct OutputTarget {
    endpoint: DocumentText,
    secure: Option<bool>,
}

fn target(
    check: &mut ValidationContext<'_>,
    signal: Signal,
    destination: &PipelineDestination,
) -> Option<OutputTarget> {
    let place = format!("{}.endpoint", destination.path());
    if let BackendKind::Otlp { protocol, path: Some(path) } = &destination.backend {
        request_path(check, &format!("{}.path", destination.path()), *protocol, path);
    }
    let ResolvedText { text, revision } = check.text(&place, &destination.endpoint)?;
    let text = text.trim();
    let checked = match &destination.backend {
        BackendKind::Otlp { protocol: OtlpProtocol::Grpc, .. } => {
            endpoint::grpc(text).map(|address| (address.authority, address.secure))
        }
        BackendKind::Otlp { protocol: OtlpProtocol::Http, path } => endpoint::url(text)
            .map(|secure| (join_url_path(text, path.as_deref().unwrap_or(default_path(signal))), Some(secure))),
        BackendKind::Elasticsearch { .. } | BackendKind::Opensearch { .. } if text.contains('?') => {
            Err("has a query, which requests for documents would replace".to_owned())
        }
        BackendKind::Loki { .. }
        | BackendKind::Elasticsearch { .. }
        | BackendKind::Opensearch { .. }
        | BackendKind::Http(_) => endpoint::url(text).map(|secure| (text.to_owned(), Some(secure))),
    };
    let (endpoint, secure) = match checked {
        Ok(checked) => checked,
        Err(message) => {
            check.refuse(place, ConditionReason::EndpointInvalid, message);
            return None;
        }
    };
    // A query may hold a credential.
    let endpoint = match revision {
        None if !endpoint.contains('?') => DocumentText::Inline(endpoint),
        revision => check.secret_text("endpoint", endpoint, revision.as_deref()),
    };
    Some(OutputTarget { endpoint, secure })
}

fn default_path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/v1/traces",
        Signal::Logs => "/v1/logs",
        Signal::Metrics => "/v1/metrics",
    }
}

/// Appends a path to a URL, before its query if it has one.
fn join_url_path(url: &str, path: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, query)) => (url, format!("?{query}")),
        None => (url, String::new()),
    };
    format!("{}/{}{query}", url.trim_end_matches('/'), path.trim_start_matches('/'))
}

fn request_path(check: &mut ValidationContext<'_>, place: &str, protocol: OtlpProtocol, path: &str) {
    if protocol != OtlpProtocol::Http {
        check.refuse(place, ConditionReason::EndpointInvalid, "is only allowed with `protocol: http`");
    }
    if path.is_empty() {
        check.refuse(place, ConditionReason::EndpointInvalid, "is empty; write a path such as /v1/traces");
    }
    let is_of_path = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '<' | '>' | '`');
    if let Some((index, c)) = path.chars().enumerate().find(|(_, c)| !is_of_path(*c)) {
        let encoded: String = c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect();
        let message = match c {
            '?' => format!("has a query at position {} (`?`): append the query to the endpoint", index + 1),
            '#' => format!("has a fragment at position {} (`#`), which is never sent", index + 1),
            c => format!("has the invalid character `{}` at position {}: write {encoded}", c.escape_debug(), index + 1),
        };
        check.refuse(place, ConditionReason::EndpointInvalid, message);
    }
}

/// Warns about credentials that are sent without TLS.
fn warn_plaintext_credentials(
    check: &mut ValidationContext<'_>,
    destination: &PipelineDestination,
    secure: Option<bool>,
) {
    let insecure = secure == Some(false) || destination.tls.as_ref().is_some_and(|tls| tls.insecure);
    let has_key = matches!(&destination.backend, BackendKind::Elasticsearch { api_key: Some(_), .. });
    let field = match (&destination.authentication, destination.headers.is_empty()) {
        (Some(_), _) => "authentication",
        (None, _) if has_key => "apiKey",
        (None, false) => "headers",
        (None, true) => return,
    };
    if insecure {
        let message = "is sent without TLS, so that others on the network can read it";
        check.warn(format!("{}.{field}", destination.path()), ConditionReason::AuthenticationInvalid, message);
    }
}

fn authentication(
    check: &mut ValidationContext<'_>,
    place: &str,
    given: &v1alpha1::AuthenticationOptions,
) -> Option<ValidAuthentication> {
    let path = format!("{place}.authentication");
    match (&given.basic, &given.bearer, &given.oauth2) {
        (Some(basic), None, None) => {
            let user = credential(check, &format!("{path}.basic.user"), "basic.user", &basic.user);
            let password = secret(check, &format!("{path}.basic.password"), "basic.password", &basic.password);
            Some(ValidAuthentication::Basic { user: user?, password: password? })
        }
        (None, Some(bearer), None) => {
            let token = secret(check, &format!("{path}.bearer.token"), "bearer.token", &bearer.token);
            Some(ValidAuthentication::Bearer { token: token? })
        }
        (None, None, Some(oauth2)) => self::oauth2(check, &format!("{path}.oauth2"), oauth2),
        _ => {
            check.refuse(path, ConditionReason::SpecInvalid, "set exactly one of `basic`, `oauth2` and `bearer`");
            None
        }
    }
}

fn oauth2(
    check: &mut ValidationContext<'_>,
    path: &str,
    oauth2: &v1alpha1::OAuth2Options,
) -> Option<ValidAuthentication> {
    let place = format!("{path}.tokenURL");
    let url = check.text(&place, &oauth2.token_url);
    let mut secure = None;
    let token_url = url.and_then(|known| match endpoint::url(known.text.trim()) {
        Ok(is_secure) => {
            secure = Some(is_secure);
            Some(check.secret_text("oauth2.token-url", known.text.trim().to_owned(), known.revision.as_deref()))
        }
        Err(message) => {
            check.refuse(place, ConditionReason::AuthenticationInvalid, message);
            None
        }
    });
    let client_id = credential(check, &format!("{path}.clientID"), "oauth2.client-id", &oauth2.client_id);
    let client_secret = secret(check, &format!("{path}.clientSecret"), "oauth2.client-secret", &oauth2.client_secret);
    let tls = tls::tls(check, &format!("{path}.tls"), "oauth2.tls", oauth2.tls.as_ref(), secure);
    if oauth2.scopes.iter().any(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
        let message = "each scope must be non-empty and without spaces";
        check.refuse(format!("{path}.scopes"), ConditionReason::AuthenticationInvalid, message);
    }
    for name in oauth2.params.keys().filter(|name| RESERVED_TOKEN_PARAMETERS.contains(&name.as_str())) {
        let message = "is reserved: the client credentials flow sets it";
        check.refuse(format!("{path}.params[{name}]"), ConditionReason::AuthenticationInvalid, message);
    }
    Some(ValidAuthentication::OAuth2(Box::new(ValidOAuth2 {
        token_url: token_url?,
        client_id: client_id?,
        client_secret: client_secret?,
        scopes: oauth2.scopes.clone(),
        params: oauth2.params.clone(),
        tls: tls?,
    })))
}

/// Parameters that every token request has.
const RESERVED_TOKEN_PARAMETERS: [&str; 4] = ["grant_type", "client_id", "client_secret", "scope"];

/// A text that must not be in a document.
fn credential(check: &mut ValidationContext<'_>, path: &str, field: &str, value: &ValueType) -> Option<DocumentText> {
    let ResolvedText { text, revision } = check.text(path, value)?;
    if text.chars().any(char::is_control) {
        check.refuse(path, ConditionReason::AuthenticationInvalid, "contains control characters, which cannot be sent");
        return None;
    }
    if field == "basic.user" && text.contains(':') {
        check.refuse(path, ConditionReason::AuthenticationInvalid, "contains `:`, which is not allowed in a user name");
        return None;
    }
    Some(check.secret_text(field, text, revision.as_deref()))
}

/// A [`credential`], with a warning if it is in the resource itself.
fn secret(check: &mut ValidationContext<'_>, path: &str, field: &str, value: &ValueType) -> Option<DocumentText> {
    if value.value.is_some() {
        warn_inline_secret(check, path);
    }
    credential(check, path, field, value)
}

fn warn_inline_secret(check: &mut ValidationContext<'_>, path: &str) {
    let message = "is readable by everyone who can read the resource: reference a Secret instead";
    check.warn(path, ConditionReason::AuthenticationInvalid, message);
}

/// Words in names of headers whose values are usually secrets.
const SECRET_HEADER_WORDS: [&str; 5] = ["auth", "token", "secret", "password", "api-key"];

fn headers(
    check: &mut ValidationContext<'_>,
    destination: &PipelineDestination,
) -> Option<Vec<(String, DocumentText)>> {
    let mut seen = HashSet::new();
    let mut headers = Some(Vec::new());
    let has_key = matches!(&destination.backend, BackendKind::Elasticsearch { api_key: Some(_), .. });
    let sets_authorization = destination.authentication.is_some() || has_key;
    for (index, header) in destination.headers.iter().enumerate() {
        let path = format!("{}.headers[{index}]", destination.path());
        let name = header.name.to_ascii_lowercase();
        if name == "authorization" && sets_authorization {
            let message = "is also set by `authentication`: remove one of the two";
            check.refuse(format!("{path}.name"), ConditionReason::AuthenticationInvalid, message);
        }
        if !seen.insert(name.clone()) {
            let message = "is a duplicate; header names are case-insensitive";
            check.refuse(format!("{path}.name"), ConditionReason::AuthenticationInvalid, message);
        }
        if is_protocol_header(&name) {
            let message = "is set by the protocol, and has no effect here: remove it";
            check.warn(format!("{path}.name"), ConditionReason::SpecInvalid, message);
        }
        if header.value.is_some() && SECRET_HEADER_WORDS.iter().any(|word| name.contains(word)) {
            warn_inline_secret(check, &path);
        }
        let piece = self::header(check, &path, index, header);
        headers = headers.zip(piece).map(|(mut headers, piece)| {
            headers.push((header.name.clone(), piece));
            headers
        });
    }
    headers
}

/// Whether the protocol itself sets this header, by the content of a request.
fn is_protocol_header(name: &str) -> bool {
    const PROTOCOL_HEADERS: [&str; 6] =
        ["content-type", "content-encoding", "content-length", "transfer-encoding", "te", "connection"];
    PROTOCOL_HEADERS.contains(&name) || name.starts_with("grpc-")
}

fn header(check: &mut ValidationContext<'_>, path: &str, index: usize, header: &RequestHeader) -> Option<DocumentText> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if header.name.is_empty() || !header.name.bytes().all(token) {
        let message = "has characters that are not allowed in a header name";
        check.refuse(format!("{path}.name"), ConditionReason::AuthenticationInvalid, message);
    }
    let prefix = header.prefix.as_deref().map(str::trim).filter(|prefix| !prefix.is_empty());
    let is_sendable = |text: &str| !text.chars().any(|c| c.is_control() && c != '\t');
    if !prefix.is_none_or(is_sendable) {
        let message = "contains control characters, which cannot be sent";
        check.refuse(format!("{path}.prefix"), ConditionReason::AuthenticationInvalid, message);
    }
    let ResolvedText { text, revision } = check.text(path, &header.source())?;
    if !is_sendable(&text) {
        check.refuse(path, ConditionReason::AuthenticationInvalid, "contains control characters, which cannot be sent");
        return None;
    }
    let value = match prefix {
        Some(prefix) => format!("{prefix} {text}"),
        None => text,
    };
    Some(check.secret_text(&format!("header-{index}"), value, revision.as_deref()))
}
