//! `spec.output.otlp`

use std::collections::HashSet;

use super::{
    check::{Check, Known},
    endpoint, sending, tls,
};
use crate::{
    Reason, Reference, Signal,
    v1alpha1::{self, Header, Otlp, Protocol, ValueType},
    valid::{Authentication, OAuth2, Output, Piece},
};

const PATH: &str = "spec.output.otlp";

/// Where a pipeline sends to, as a status may say it.
pub(super) fn backend(otlp: &Otlp) -> String {
    match (&otlp.endpoint.value, Reference::of(&otlp.endpoint)) {
        // What may be credentials is not shown, although it will be refused.
        (Some(text), None) if text.contains('@') => "***".to_owned(),
        (Some(text), None) => {
            let address = text.trim().split('?').next().unwrap_or_default();
            address.chars().filter(|c| !c.is_control()).take(128).collect()
        }
        (_, Some(reference)) => reference.to_string(),
        _ => String::new(),
    }
}

pub(super) fn output(check: &mut Check<'_>, signal: Signal, otlp: &Otlp) -> Option<Output> {
    let target = target(check, signal, otlp);
    let secure = target.as_ref().and_then(|target| target.secure);
    let tls = tls::tls(check, &format!("{PATH}.tls"), "tls", otlp.tls.as_ref(), secure);
    let authentication = otlp.authentication.as_ref().map(|given| authentication(check, given));
    let headers = headers(check, otlp);
    let sending = sending::of_output(check, otlp);
    plain_text(check, otlp, secure);
    let target = target?;
    Some(Output {
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

struct Target {
    endpoint: Piece,
    secure: Option<bool>,
}

fn target(check: &mut Check<'_>, signal: Signal, otlp: &Otlp) -> Option<Target> {
    let path = format!("{PATH}.endpoint");
    request_path(check, otlp);
    let Known { text, revision } = check.text(&path, &otlp.endpoint)?;
    let text = text.trim();
    let checked = match otlp.protocol {
        Protocol::Grpc => endpoint::grpc(text).map(|address| (address.authority, address.secure)),
        Protocol::Http => endpoint::url(text).map(|secure| (text.to_owned(), Some(secure))),
    };
    let (mut endpoint, secure) = match checked {
        Ok(checked) => checked,
        Err(message) => {
            check.refuse(path, Reason::EndpointInvalid, message);
            return None;
        }
    };
    if otlp.protocol == Protocol::Http {
        endpoint = joined(&endpoint, otlp.path.as_deref().unwrap_or(default_path(signal)));
    }
    // A query may be a credential.
    let endpoint = match revision {
        None if !endpoint.contains('?') => Piece::Open(endpoint),
        revision => check.hidden("endpoint", endpoint, revision.as_deref()),
    };
    Some(Target { endpoint, secure })
}

fn default_path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/v1/traces",
        Signal::Logs => "/v1/logs",
        Signal::Metrics => "/v1/metrics",
    }
}

/// A path behind a URL, before its query if it has one.
fn joined(url: &str, path: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, query)) => (url, format!("?{query}")),
        None => (url, String::new()),
    };
    format!("{}/{}{query}", url.trim_end_matches('/'), path.trim_start_matches('/'))
}

fn request_path(check: &mut Check<'_>, otlp: &Otlp) {
    let Some(path) = &otlp.path else { return };
    let place = format!("{PATH}.path");
    if otlp.protocol != Protocol::Http {
        check.refuse(&place, Reason::EndpointInvalid, "has a meaning only with `protocol: http`");
    }
    if path.is_empty() {
        check.refuse(&place, Reason::EndpointInvalid, "is empty; write a path such as /v1/traces");
    }
    let is_of_path = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '<' | '>' | '`');
    if let Some((index, c)) = path.chars().enumerate().find(|(_, c)| !is_of_path(*c)) {
        let encoded: String = c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect();
        let message = match c {
            '?' => format!("has a query, from character {} on (`?`): write the query behind the endpoint", index + 1),
            '#' => format!("has a fragment, from character {} on (`#`), which is never sent", index + 1),
            c => format!(
                "has `{}` as character {}, which a path cannot have: write {encoded}",
                c.escape_debug(),
                index + 1
            ),
        };
        check.refuse(place, Reason::EndpointInvalid, message);
    }
}

/// Credentials that everybody on the way can read.
fn plain_text(check: &mut Check<'_>, otlp: &Otlp, secure: Option<bool>) {
    let insecure = secure == Some(false) || otlp.tls.as_ref().is_some_and(|tls| tls.insecure);
    let field = match (&otlp.authentication, otlp.headers.is_empty()) {
        (Some(_), _) => "authentication",
        (None, false) => "headers",
        (None, true) => return,
    };
    if insecure {
        let message = "is sent without TLS: whoever is on the way can read it";
        check.warn(format!("{PATH}.{field}"), Reason::AuthenticationInvalid, message);
    }
}

fn authentication(check: &mut Check<'_>, given: &v1alpha1::Authentication) -> Option<Authentication> {
    let path = format!("{PATH}.authentication");
    match (&given.basic, &given.bearer, &given.oauth2) {
        (Some(basic), None, None) => {
            let user = credential(check, &format!("{path}.basic.user"), "basic.user", &basic.user);
            let password = secret(check, &format!("{path}.basic.password"), "basic.password", &basic.password);
            Some(Authentication::Basic { user: user?, password: password? })
        }
        (None, Some(bearer), None) => {
            let token = secret(check, &format!("{path}.bearer.token"), "bearer.token", &bearer.token);
            Some(Authentication::Bearer { token: token? })
        }
        (None, None, Some(oauth2)) => self::oauth2(check, &format!("{path}.oauth2"), oauth2),
        _ => {
            check.refuse(path, Reason::SpecInvalid, "set exactly one of `basic`, `oauth2` and `bearer`");
            None
        }
    }
}

fn oauth2(check: &mut Check<'_>, path: &str, oauth2: &v1alpha1::OAuth2) -> Option<Authentication> {
    let place = format!("{path}.tokenURL");
    let url = check.text(&place, &oauth2.token_url);
    let mut secure = None;
    let token_url = url.and_then(|known| match endpoint::url(known.text.trim()) {
        Ok(is_secure) => {
            secure = Some(is_secure);
            Some(check.hidden("oauth2.token-url", known.text.trim().to_owned(), known.revision.as_deref()))
        }
        Err(message) => {
            check.refuse(place, Reason::AuthenticationInvalid, message);
            None
        }
    });
    let client_id = credential(check, &format!("{path}.clientID"), "oauth2.client-id", &oauth2.client_id);
    let client_secret = secret(check, &format!("{path}.clientSecret"), "oauth2.client-secret", &oauth2.client_secret);
    let tls = tls::tls(check, &format!("{path}.tls"), "oauth2.tls", oauth2.tls.as_ref(), secure);
    if oauth2.scopes.iter().any(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
        let message = "each is a word of its own: none is empty or has a space in it";
        check.refuse(format!("{path}.scopes"), Reason::AuthenticationInvalid, message);
    }
    for name in oauth2.params.keys().filter(|name| RESERVED.contains(&name.as_str())) {
        let message = "is set already, by the flow itself";
        check.refuse(format!("{path}.params[{name}]"), Reason::AuthenticationInvalid, message);
    }
    Some(Authentication::OAuth2(Box::new(OAuth2 {
        token_url: token_url?,
        client_id: client_id?,
        client_secret: client_secret?,
        scopes: oauth2.scopes.clone(),
        params: oauth2.params.clone(),
        tls: tls?,
    })))
}

/// What a request for a token says in any case.
const RESERVED: [&str; 4] = ["grant_type", "client_id", "client_secret", "scope"];

/// A text that must not be in a document.
fn credential(check: &mut Check<'_>, path: &str, field: &str, value: &ValueType) -> Option<Piece> {
    let Known { text, revision } = check.text(path, value)?;
    if text.chars().any(char::is_control) {
        check.refuse(path, Reason::AuthenticationInvalid, "has control characters in it, which cannot be sent");
        return None;
    }
    if field == "basic.user" && text.contains(':') {
        check.refuse(path, Reason::AuthenticationInvalid, "has a `:` in it, which a user name cannot have");
        return None;
    }
    Some(check.hidden(field, text, revision.as_deref()))
}

/// As [`credential`], which is unwise to have in the resource.
fn secret(check: &mut Check<'_>, path: &str, field: &str, value: &ValueType) -> Option<Piece> {
    if value.value.is_some() {
        exposed(check, path);
    }
    credential(check, path, field, value)
}

fn exposed(check: &mut Check<'_>, path: &str) {
    let message = "stands in the resource, where everybody who may read it sees it: put it into a Secret";
    check.warn(path, Reason::AuthenticationInvalid, message);
}

/// What names of headers say whose values are secrets.
const SECRETIVE: [&str; 5] = ["auth", "token", "secret", "password", "api-key"];

fn headers(check: &mut Check<'_>, otlp: &Otlp) -> Option<Vec<(String, Piece)>> {
    let mut seen = HashSet::new();
    let mut headers = Some(Vec::new());
    for (index, header) in otlp.headers.iter().enumerate() {
        let path = format!("{PATH}.headers[{index}]");
        let name = header.name.to_ascii_lowercase();
        if name == "authorization" && otlp.authentication.is_some() {
            let message = "is what `authentication` sets: keep one of the two";
            check.refuse(format!("{path}.name"), Reason::AuthenticationInvalid, message);
        }
        if !seen.insert(name.clone()) {
            let message = "is there twice; upper and lower case are the same";
            check.refuse(format!("{path}.name"), Reason::AuthenticationInvalid, message);
        }
        if is_of_protocol(&name) {
            let message = "is what the protocol itself sets, and has no effect: leave it out";
            check.warn(format!("{path}.name"), Reason::SpecInvalid, message);
        }
        if header.value.is_some() && SECRETIVE.iter().any(|word| name.contains(word)) {
            exposed(check, &path);
        }
        let piece = self::header(check, &path, index, header);
        headers = headers.zip(piece).map(|(mut headers, piece)| {
            headers.push((header.name.clone(), piece));
            headers
        });
    }
    headers
}

/// Whether requests have it in any case, with a value that says what is in them.
fn is_of_protocol(name: &str) -> bool {
    const NAMES: [&str; 6] =
        ["content-type", "content-encoding", "content-length", "transfer-encoding", "te", "connection"];
    NAMES.contains(&name) || name.starts_with("grpc-")
}

fn header(check: &mut Check<'_>, path: &str, index: usize, header: &Header) -> Option<Piece> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if header.name.is_empty() || !header.name.bytes().all(token) {
        let message = "has characters that the name of a header cannot have";
        check.refuse(format!("{path}.name"), Reason::AuthenticationInvalid, message);
    }
    let prefix = header.prefix.as_deref().map(str::trim).filter(|prefix| !prefix.is_empty());
    let is_sendable = |text: &str| !text.chars().any(|c| c.is_control() && c != '\t');
    if !prefix.is_none_or(is_sendable) {
        let message = "has control characters in it, which cannot be sent";
        check.refuse(format!("{path}.prefix"), Reason::AuthenticationInvalid, message);
    }
    let Known { text, revision } = check.text(path, &header.source())?;
    if !is_sendable(&text) {
        check.refuse(path, Reason::AuthenticationInvalid, "has control characters in it, which cannot be sent");
        return None;
    }
    let value = match prefix {
        Some(prefix) => format!("{prefix} {text}"),
        None => text,
    };
    Some(check.hidden(&format!("header-{index}"), value, revision.as_deref()))
}
