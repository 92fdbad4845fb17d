//! Requests a token from the token endpoint.

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
use kubewake_config::{SecretString, model::OAuth2Client};
use serde_json::Value;
use tokio::time::Instant;

use super::AccessToken;
use crate::{
    components::BuildError,
    extension::AuthError,
    net::{
        compress::RequestBody,
        connect::{self, DestinationClient, DestinationConnector, HostPort},
        request::{self, BoundedResponse, credential},
    },
};

/// Timeout where the settings set none: an endpoint that never answers must not block a pipeline for good.
const DEFAULT_FETCH_TIMEOUT: Duration = Duration::from_secs(60);
/// A token with a longer announced lifetime counts as one that does not expire.
const MAX_TOKEN_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Requests tokens from one endpoint.
pub(super) struct TokenFetcher {
    client: DestinationClient,
    uri: Uri,
    endpoint: String,
    id: String,
    secret: SecretString,
    form: SecretString,
    timeout: Duration,
    /// The endpoint expects the secret in the form. As in Go, the header is tried first; what worked is
    /// remembered.
    in_form: AtomicBool,
}

enum TokenRequestError {
    /// The endpoint refused the request.
    Refused(AuthError),
    Other(AuthError),
}

impl TokenFetcher {
    pub(super) fn new(settings: &OAuth2Client) -> Result<Self, BuildError> {
        let uri: Uri = settings.token_url.parse().map_err(|_| BuildError("token_url is not a URL".into()))?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(BuildError("token_url begins with neither http:// nor https://".into())),
        };
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let endpoint = HostPort::parse(authority, if secure { 443 } else { 80 })?;
        let connector = DestinationConnector::for_url(&endpoint, secure, &settings.tls)?;
        Ok(Self {
            client: connect::http_client(connector),
            endpoint: format!("{}{}", endpoint.authority(), uri.path()),
            uri,
            id: credential::file_or_inline(&settings.client_id, settings.client_id_file.as_deref())?,
            secret: SecretString::new(credential::file_or_inline(
                settings.client_secret.reveal(),
                settings.client_secret_file.as_deref(),
            )?),
            form: build_form(settings),
            timeout: settings.timeout.unwrap_or(DEFAULT_FETCH_TIMEOUT),
            in_form: AtomicBool::new(false),
        })
    }

    pub(super) async fn fetch_token(&self) -> Result<AccessToken, AuthError> {
        let work = async {
            let in_form = self.in_form.load(Ordering::Relaxed);
            match self.request_token(in_form).await {
                Err(TokenRequestError::Refused(_)) if !in_form => {
                    let token = self.request_token(true).await?;
                    self.in_form.store(true, Ordering::Relaxed);
                    Ok(token)
                }
                result => Ok(result?),
            }
        };
        let late = || AuthError(format!("{} returned no token within {:?}", self.endpoint, self.timeout));
        tokio::time::timeout(self.timeout, work).await.unwrap_or_else(|_| Err(late()))
    }

    async fn request_token(&self, in_form: bool) -> Result<AccessToken, TokenRequestError> {
        let request = self.build_request(in_form).map_err(TokenRequestError::Other)?;
        let failed = |error: &(dyn std::error::Error + 'static)| {
            TokenRequestError::Other(AuthError(format!("{}: {}", self.endpoint, connect::error_chain(error))))
        };
        let response = self.client.request(request).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let answer = BoundedResponse::read(response.into_body()).await.map_err(|error| failed(&error))?;
        read_response(&self.endpoint, status, &answer.bytes)
    }

    fn build_request(&self, in_form: bool) -> Result<Request<RequestBody>, AuthError> {
        let id = escape(&self.id);
        let secret = escape(self.secret.reveal());
        let mut form = self.form.reveal().to_owned();
        if in_form {
            form.push_str(&format!("&client_id={id}&client_secret={secret}"));
        }
        let mut request = Request::new(RequestBody::from(Bytes::from(form)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(request::USER_AGENT));
        if !in_form {
            let login = STANDARD.encode(format!("{id}:{secret}"));
            let value = request::sensitive_value(&format!("Basic {login}"));
            headers.insert(
                AUTHORIZATION,
                value.ok_or_else(|| AuthError("the credentials contain invalid characters".into()))?,
            );
        }
        Ok(request)
    }
}

/// Reads the response of an endpoint. Errors contain nothing of its body except a protocol error code.
fn read_response(endpoint: &str, status: StatusCode, body: &[u8]) -> Result<AccessToken, TokenRequestError> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if !status.is_success() {
        let error = AuthError(format!("{endpoint}: HTTP {}{}", status.as_u16(), reason(&body)));
        return Err(if status.is_client_error() {
            TokenRequestError::Refused(error)
        } else {
            TokenRequestError::Other(error)
        });
    }
    parse_token(&body).ok_or_else(|| {
        let reason = reason(&body);
        TokenRequestError::Refused(AuthError(format!("{endpoint}: the response contains no token{reason}")))
    })
}

/// The header value that a response yields, and its lifetime.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_token(status: StatusCode, body: &[u8]) -> Result<(HeaderValue, Option<Duration>), AuthError> {
    let token = read_response("idp.example:443/token", status, body)?;
    Ok((token.value, token.expires.map(|end| end - token.since)))
}

impl From<TokenRequestError> for AuthError {
    fn from(failure: TokenRequestError) -> Self {
        match failure {
            TokenRequestError::Refused(error) | TokenRequestError::Other(error) => error,
        }
    }
}

fn build_form(settings: &OAuth2Client) -> SecretString {
    let scopes = Some(settings.scopes.join(" ")).filter(|scopes| !scopes.is_empty());
    let mut fields = vec![("grant_type", "client_credentials")];
    fields.extend(scopes.as_deref().map(|scopes| ("scope", scopes)));
    fields.extend(settings.endpoint_params.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let fields = fields.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value)));
    SecretString::new(fields.collect::<Vec<_>>().join("&"))
}

/// Escapes a text for `application/x-www-form-urlencoded`.
fn escape(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn parse_token(body: &Value) -> Option<AccessToken> {
    let token = body.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    let scheme = match body.get("token_type").and_then(Value::as_str).unwrap_or_default() {
        scheme if scheme.is_empty() || scheme.eq_ignore_ascii_case("bearer") => "Bearer",
        scheme => scheme,
    };
    let since = Instant::now();
    let life = body.get("expires_in").and_then(seconds).filter(|life| *life != 0).map(Duration::from_secs);
    let expires = life.filter(|life| *life <= MAX_TOKEN_LIFETIME).map(|life| since + life);
    Some(AccessToken { value: request::sensitive_value(&format!("{scheme} {token}"))?, since, expires })
}

/// Reads `expires_in`, which some endpoints write as a string.
fn seconds(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The protocol's error code. The description beside it is free text that may repeat the request.
fn reason(body: &Value) -> String {
    let code = body.get("error").and_then(Value::as_str).unwrap_or_default();
    let is_code = |c: char| c.is_ascii_lowercase() || c == '_';
    let known = !code.is_empty() && code.len() <= 40 && code.chars().all(is_code);
    if known { format!(" ({code})") } else { String::new() }
}
