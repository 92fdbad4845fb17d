//! The request for a token.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT},
};
use kubewake_config::{Secret, model::OAuth2Client};
use serde_json::Value;
use tokio::time::Instant;

use super::Token;
use crate::{
    components::BuildError,
    extension::AuthError,
    net::{
        connect::{self, Client, Connector, Endpoint},
        encode::Payload,
        request::{self, Answer, credential},
    },
};

/// For settings that ask for no limit: an endpoint that never answers must not hold up a pipeline for good.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// A token that is said to live longer is as good as one that does not expire.
const MAX_LIFE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Asks one endpoint for tokens.
pub(super) struct Fetch {
    client: Client,
    uri: Uri,
    endpoint: String,
    id: String,
    secret: Secret,
    form: Secret,
    timeout: Duration,
    /// The endpoint wants the secret in the form. As Go does, the header is tried first, and what worked is remembered.
    in_form: AtomicBool,
}

enum Failure {
    /// The endpoint refused what it was asked.
    Refused(AuthError),
    Other(AuthError),
}

impl Fetch {
    pub(super) fn new(settings: &OAuth2Client) -> Result<Self, BuildError> {
        let uri: Uri = settings.token_url.parse().map_err(|_| BuildError("token_url is not a URL".into()))?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(BuildError("token_url begins with neither http:// nor https://".into())),
        };
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let endpoint = Endpoint::parse(authority, if secure { 443 } else { 80 })?;
        let connector = Connector::for_url(&endpoint, secure, &settings.tls)?;
        Ok(Self {
            client: connect::http_client(connector),
            endpoint: format!("{}{}", endpoint.authority(), uri.path()),
            uri,
            id: credential::value(&settings.client_id, settings.client_id_file.as_deref())?,
            secret: Secret::new(credential::value(
                settings.client_secret.reveal(),
                settings.client_secret_file.as_deref(),
            )?),
            form: form(settings),
            timeout: settings.timeout.unwrap_or(MAX_TIMEOUT),
            in_form: AtomicBool::new(false),
        })
    }

    /// A new token.
    pub(super) async fn token(&self) -> Result<Token, AuthError> {
        let work = async {
            let in_form = self.in_form.load(Ordering::Relaxed);
            match self.ask(in_form).await {
                Err(Failure::Refused(_)) if !in_form => {
                    let token = self.ask(true).await?;
                    self.in_form.store(true, Ordering::Relaxed);
                    Ok(token)
                }
                result => Ok(result?),
            }
        };
        let late = || AuthError(format!("{} gave no token within {:?}", self.endpoint, self.timeout));
        tokio::time::timeout(self.timeout, work).await.unwrap_or_else(|_| Err(late()))
    }

    async fn ask(&self, in_form: bool) -> Result<Token, Failure> {
        let request = self.request(in_form).map_err(Failure::Other)?;
        let failed = |error: &(dyn std::error::Error + 'static)| {
            Failure::Other(AuthError(format!("{}: {}", self.endpoint, connect::explain(error))))
        };
        let response = self.client.request(request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let answer = Answer::read(response.into_body()).await.map_err(|error| failed(&error))?;
        read(&self.endpoint, status, &answer.bytes)
    }

    fn request(&self, in_form: bool) -> Result<Request<Payload>, AuthError> {
        let (id, secret) = (escape(&self.id), escape(self.secret.reveal()));
        let mut form = self.form.reveal().to_owned();
        if in_form {
            form.push_str(&format!("&client_id={id}&client_secret={secret}"));
        }
        let mut request = Request::new(Payload::from(Bytes::from(form)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(request::USER_AGENT));
        if !in_form {
            let login = STANDARD.encode(format!("{id}:{secret}"));
            let value = request::sensitive(&format!("Basic {login}"));
            headers.insert(AUTHORIZATION, value.ok_or_else(|| AuthError("the credentials cannot be sent".into()))?);
        }
        Ok(request)
    }
}

/// What an endpoint answered. Errors hold nothing of the body but a code of the protocol.
fn read(endpoint: &str, status: StatusCode, body: &[u8]) -> Result<Token, Failure> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if !status.is_success() {
        let error = AuthError(format!("{endpoint}: HTTP {}{}", status.as_u16(), reason(&body)));
        return Err(if status.is_client_error() { Failure::Refused(error) } else { Failure::Other(error) });
    }
    token(&body).ok_or_else(|| {
        let reason = reason(&body);
        Failure::Refused(AuthError(format!("{endpoint}: the answer holds no token{reason}")))
    })
}

/// The header that an answer gives, and how long it lives.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_token(status: StatusCode, body: &[u8]) -> Result<(HeaderValue, Option<Duration>), AuthError> {
    let token = read("idp.example:443/token", status, body)?;
    Ok((token.value, token.expires.map(|end| end - token.since)))
}

impl From<Failure> for AuthError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) | Failure::Other(error) => error,
        }
    }
}

fn form(settings: &OAuth2Client) -> Secret {
    let scopes = Some(settings.scopes.join(" ")).filter(|scopes| !scopes.is_empty());
    let mut fields = vec![("grant_type", "client_credentials")];
    fields.extend(scopes.as_deref().map(|scopes| ("scope", scopes)));
    fields.extend(settings.endpoint_params.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let fields = fields.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value)));
    Secret::new(fields.collect::<Vec<_>>().join("&"))
}

/// As a form writes it.
fn escape(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn token(body: &Value) -> Option<Token> {
    let token = body.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    let scheme = match body.get("token_type").and_then(Value::as_str).unwrap_or_default() {
        scheme if scheme.is_empty() || scheme.eq_ignore_ascii_case("bearer") => "Bearer",
        scheme => scheme,
    };
    let since = Instant::now();
    let life = body.get("expires_in").and_then(seconds).filter(|life| *life != 0).map(Duration::from_secs);
    let expires = life.filter(|life| *life <= MAX_LIFE).map(|life| since + life);
    Some(Token { value: request::sensitive(&format!("{scheme} {token}"))?, since, expires })
}

/// Some endpoints write the number in a string.
fn seconds(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The error code of the protocol. The description beside it is free text that may repeat what was sent.
fn reason(body: &Value) -> String {
    let code = body.get("error").and_then(Value::as_str).unwrap_or_default();
    let is_code = |c: char| c.is_ascii_lowercase() || c == '_';
    let known = !code.is_empty() && code.len() <= 40 && code.chars().all(is_code);
    if known { format!(" ({code})") } else { String::new() }
}
