//! `spec.output.otlp`

use std::collections::HashSet;

use super::{
    context::{ResolvedText, ValidationContext},
    endpoint, sending, tls,
};
use crate::{
    ConditionReason, Signal, ValueReference,
    v1alpha1::{self, OtlpOutput, OtlpProtocol, RequestHeader, ValueType},
    valid_pipeline::{DocumentText, ValidAuthentication, ValidOAuth2, ValidOutput},
};

const OTLP_PATH: &str = "spec.output.otlp";

/// The destination of a pipeline for its status.
pub(super) fn backend(otlp: &OtlpOutput) -> String {
    match (&otlp.endpoint.value, ValueReference::from_value(&otlp.endpoint)) {
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

pub(super) fn output(check: &mut ValidationContext<'_>, signal: Signal, otlp: &OtlpOutput) -> Option<ValidOutput> {
    let target = target(check, signal, otlp);
    let secure = target.as_ref().and_then(|target| target.secure);
    let tls = tls::tls(check, &format!("{OTLP_PATH}.tls"), "tls", otlp.tls.as_ref(), secure);
    let authentication = otlp.authentication.as_ref().map(|given| authentication(check, given));
    let headers = headers(check, otlp);
    let sending = sending::output_settings(check, otlp);
    warn_plaintext_credentials(check, otlp, secure);
    let target = target?;
    Some(ValidOutput {
        protocol: otlp.protocol,
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

struct OutputTarget {
    endpoint: DocumentText,
    secure: Option<bool>,
}

fn target(check: &mut ValidationContext<'_>, signal: Signal, otlp: &OtlpOutput) -> Option<OutputTarget> {
    let path = format!("{OTLP_PATH}.endpoint");
    request_path(check, otlp);
    let ResolvedText { text, revision } = check.text(&path, &otlp.endpoint)?;
    let text = text.trim();
    let checked = match otlp.protocol {
        OtlpProtocol::Grpc => endpoint::grpc(text).map(|address| (address.authority, address.secure)),
        OtlpProtocol::Http => endpoint::url(text).map(|secure| (text.to_owned(), Some(secure))),
    };
    let (mut endpoint, secure) = match checked {
        Ok(checked) => checked,
        Err(message) => {
            check.refuse(path, ConditionReason::EndpointInvalid, message);
            return None;
        }
    };
    if otlp.protocol == OtlpProtocol::Http {
        endpoint = join_url_path(&endpoint, otlp.path.as_deref().unwrap_or(default_path(signal)));
    }
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

fn request_path(check: &mut ValidationContext<'_>, otlp: &OtlpOutput) {
    let Some(path) = &otlp.path else { return };
    let place = format!("{OTLP_PATH}.path");
    if otlp.protocol != OtlpProtocol::Http {
        check.refuse(&place, ConditionReason::EndpointInvalid, "is only allowed with `protocol: http`");
    }
    if path.is_empty() {
        check.refuse(&place, ConditionReason::EndpointInvalid, "is empty; write a path such as /v1/traces");
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
fn warn_plaintext_credentials(check: &mut ValidationContext<'_>, otlp: &OtlpOutput, secure: Option<bool>) {
    let insecure = secure == Some(false) || otlp.tls.as_ref().is_some_and(|tls| tls.insecure);
    let field = match (&otlp.authentication, otlp.headers.is_empty()) {
        (Some(_), _) => "authentication",
        (None, false) => "headers",
        (None, true) => return,
    };
    if insecure {
        let message = "is sent without TLS, so that others on the network can read it";
        check.warn(format!("{OTLP_PATH}.{field}"), ConditionReason::AuthenticationInvalid, message);
    }
}

fn authentication(
    check: &mut ValidationContext<'_>,
    given: &v1alpha1::AuthenticationOptions,
) -> Option<ValidAuthentication> {
    let path = format!("{OTLP_PATH}.authentication");
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

fn headers(check: &mut ValidationContext<'_>, otlp: &OtlpOutput) -> Option<Vec<(String, DocumentText)>> {
    let mut seen = HashSet::new();
    let mut headers = Some(Vec::new());
    for (index, header) in otlp.headers.iter().enumerate() {
        let path = format!("{OTLP_PATH}.headers[{index}]");
        let name = header.name.to_ascii_lowercase();
        if name == "authorization" && otlp.authentication.is_some() {
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
