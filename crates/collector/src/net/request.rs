//! Headers and credentials of outgoing requests, and reading of their responses.

#[cfg(feature = "extension-auth")]
pub(crate) mod credential;

#[cfg(test)]
mod tests;

use std::{fmt, ops::ControlFlow, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kubewake_config::SecretString;

use crate::{
    components::BuildError,
    core::{Code, ErrorClass, SendError},
    extension::ClientAuth,
};

pub(crate) const USER_AGENT: &str = concat!("kubewake/", env!("CARGO_PKG_VERSION"));

/// Shorter values are as likely to be words of the message itself as secrets.
const MIN_REDACTED_BYTES: usize = 4;

/// Responses are kept up to this size, as in the Collector; a `Status` or a partial success is far smaller.
const MAX_RESPONSE_BYTES_KEPT: usize = 64 << 10;
/// The rest is read and discarded, so that the connection can be reused, up to gRPC's message limit.
const MAX_RESPONSE_BYTES_READ: usize = 4 << 20;

/// The configured headers, all marked as sensitive.
pub(crate) fn configured_headers(headers: &[(String, SecretString)]) -> Result<HeaderMap, BuildError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let key = HeaderName::try_from(name).map_err(|_| BuildError(format!("\"{name}\" is not a header name")))?;
        let value = sensitive_value(value.reveal())
            .ok_or_else(|| BuildError(format!("the value of header \"{name}\" contains invalid characters")))?;
        map.append(key, value);
    }
    Ok(map)
}

/// A header value that HTTP/2 does not index and `Debug` does not show.
pub(crate) fn sensitive_value(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The authentication headers of a request.
pub(crate) type AuthHeaders = Vec<(HeaderName, HeaderValue)>;

/// Sets credentials, in place of configured values of the same headers.
pub(crate) fn apply_auth_headers(headers: &mut HeaderMap, proof: &AuthHeaders) {
    for (name, value) in proof {
        headers.insert(name, value.clone());
    }
}

pub(crate) struct CredentialProvider(Option<Arc<dyn ClientAuth>>);

impl CredentialProvider {
    /// Credentials from an extension, if one is configured.
    pub(crate) fn new(auth: Option<Arc<dyn ClientAuth>>) -> Self {
        Self(auth)
    }

    /// The current credentials. Errors are retryable, since a token endpoint may recover.
    pub(crate) async fn current(&self) -> Result<AuthHeaders, SendError> {
        let Some(auth) = &self.0 else { return Ok(Vec::new()) };
        auth.headers().await.map_err(|error| SendError {
            code: Code::Unavailable,
            class: ErrorClass::Authentication,
            backend_status: None,
            message: format!("failed to get credentials: {error}").into(),
            retry_after: None,
            retryable: true,
            partial: None,
        })
    }

    /// Called when the destination has rejected `sent`: returns other credentials to try at once, if there are
    /// any.
    pub(crate) async fn refresh_rejected(&self, sent: &AuthHeaders) -> Option<AuthHeaders> {
        let auth = self.0.as_ref()?;
        auth.invalidate();
        auth.headers().await.ok().filter(|fresh| fresh != sent)
    }
}

/// Removes sent secrets from a text that came back: some servers repeat them in their errors.
pub(crate) fn redact<'a>(mut text: String, sent: impl Iterator<Item = &'a HeaderValue>) -> String {
    for value in sent.filter(|value| value.is_sensitive()).filter_map(|value| value.to_str().ok()) {
        // `Bearer <token>`: the token alone is as secret as the whole.
        let token = value.rsplit(' ').next().unwrap_or(value);
        for secret in [value, token] {
            if secret.len() >= MIN_REDACTED_BYTES && text.contains(secret) {
                text = text.replace(secret, "***");
            }
        }
    }
    text
}

/// Reads a body up to the size limit.
pub(crate) fn response_limit() -> impl FnMut(&[u8]) -> ControlFlow<()> + Send {
    let mut bytes_read = 0;
    move |data| {
        bytes_read += data.len();
        if bytes_read > MAX_RESPONSE_BYTES_READ { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The body of a response, within limits.
#[derive(Debug, Default)]
pub(crate) struct BoundedResponse {
    /// The first bytes of the body.
    pub(crate) bytes: Vec<u8>,
    /// Whether `bytes` is the whole body.
    pub(crate) complete: bool,
    pub(crate) trailers: Option<HeaderMap>,
}

impl BoundedResponse {
    /// Reads a body to its end, or until the size limit.
    pub(crate) async fn read(body: Incoming) -> Result<Self, hyper::Error> {
        Self::read_with(body, &mut response_limit()).await
    }

    /// Reads a body until its end, or until `read`, which gets each piece, has enough.
    pub(crate) async fn read_with(
        mut body: Incoming,
        read: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<Self, hyper::Error> {
        let mut answer = Self { complete: true, ..Self::default() };
        let mut bytes_read = 0;
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(data) => {
                    bytes_read += data.len();
                    answer.complete &= bytes_read <= MAX_RESPONSE_BYTES_KEPT;
                    if answer.complete {
                        answer.bytes.extend_from_slice(&data);
                    }
                    if read(&data).is_break() {
                        break;
                    }
                }
                Err(frame) => answer.trailers = frame.into_trailers().ok(),
            }
        }
        Ok(answer)
    }

    /// Whether the body contains these bytes.
    pub(crate) fn contains(&self, words: &[u8]) -> bool {
        self.bytes.windows(words.len()).any(|said| said == words)
    }

    /// Whether the body is nginx's response to a client without a certificate, which it sends after the
    /// handshake.
    pub(crate) fn wants_certificate(&self) -> bool {
        self.contains(b"No required SSL certificate was sent")
    }
}

impl fmt::Debug for CredentialProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Credentials(***)" } else { "Credentials(none)" })
    }
}
