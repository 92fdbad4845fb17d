//! What every outgoing request carries, configured headers and credentials, and how its answer is read.

#[cfg(feature = "extension-auth")]
pub(crate) mod credential;

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use kubewake_config::Secret;

use crate::{
    components::BuildError,
    core::{Code, ErrorClass, SendError},
    extension::ClientAuth,
};

/// How we introduce ourselves.
pub(crate) const USER_AGENT: &str = concat!("kubewake/", env!("CARGO_PKG_VERSION"));

/// Shorter values are as likely to be words of the message itself as secrets.
const SHORTEST_SECRET: usize = 4;

/// Answers are read this far, as the Collector does; a `Status` or a partial success is far smaller.
const MAX_KEPT: usize = 64 << 10;
/// What is more is passed over so that the connection can be used again, up to gRPC's limit of a message.
const MAX_READ: usize = 4 << 20;

/// The configured headers, each marked as sensitive: their values are secrets to us.
pub(crate) fn configured(headers: &[(String, Secret)]) -> Result<HeaderMap, BuildError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let key = HeaderName::try_from(name).map_err(|_| BuildError(format!("\"{name}\" is not a header name")))?;
        let value = sensitive(value.reveal())
            .ok_or_else(|| BuildError(format!("the value of header \"{name}\" cannot be sent")))?;
        map.append(key, value);
    }
    Ok(map)
}

/// A header value that HTTP/2 does not index and `Debug` does not show.
pub(crate) fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The headers of a request that say who we are.
pub(crate) type Proof = Vec<(HeaderName, HeaderValue)>;

/// Puts credentials in place of whatever the configuration says in the same headers.
pub(crate) fn prove(headers: &mut HeaderMap, proof: &Proof) {
    for (name, value) in proof {
        headers.insert(name, value.clone());
    }
}

/// Where [`Proof`] comes from.
pub(crate) struct Credentials(Option<Arc<dyn ClientAuth>>);

impl Credentials {
    /// From an extension, if one is configured.
    pub(crate) fn new(auth: Option<Arc<dyn ClientAuth>>) -> Self {
        Self(auth)
    }

    /// What to send now. An error is retryable: a token endpoint that is down comes back.
    pub(crate) async fn current(&self) -> Result<Proof, SendError> {
        let Some(auth) = &self.0 else { return Ok(Vec::new()) };
        auth.headers().await.map_err(|error| SendError {
            code: Code::Unavailable,
            class: ErrorClass::Authentication,
            said: None,
            message: format!("no credentials: {error}").into(),
            retry_after: None,
            retryable: true,
        })
    }

    /// The destination refused `sent`: other credentials to try at once, if there are any by now.
    pub(crate) async fn renewed(&self, sent: &Proof) -> Option<Proof> {
        let auth = self.0.as_ref()?;
        auth.rejected();
        auth.headers().await.ok().filter(|fresh| fresh != sent)
    }
}

/// Takes what we sent in confidence out of a text that came back: some servers repeat it in their errors.
pub(crate) fn redact<'a>(mut text: String, sent: impl Iterator<Item = &'a HeaderValue>) -> String {
    for value in sent.filter(|value| value.is_sensitive()).filter_map(|value| value.to_str().ok()) {
        // `Bearer <token>`: the token alone is as secret as the whole.
        let token = value.rsplit(' ').next().unwrap_or(value);
        for secret in [value, token] {
            if secret.len() >= SHORTEST_SECRET && text.contains(secret) {
                text = text.replace(secret, "***");
            }
        }
    }
    text
}

/// The body of an answer, within limits.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The first bytes of it.
    pub(crate) bytes: Vec<u8>,
    /// Whether they are all of it.
    pub(crate) complete: bool,
    /// What came behind it.
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    /// Reads a body to its end, or until it is longer than any sensible answer.
    pub(crate) async fn read(mut body: Incoming) -> Result<Self, hyper::Error> {
        let mut answer = Self { complete: true, ..Self::default() };
        let mut read = 0;
        while let Some(frame) = body.frame().await {
            match frame?.into_data() {
                Ok(data) => {
                    read += data.len();
                    answer.complete &= read <= MAX_KEPT;
                    if answer.complete {
                        answer.bytes.extend_from_slice(&data);
                    }
                    if read > MAX_READ {
                        break;
                    }
                }
                Err(frame) => answer.trailers = frame.into_trailers().ok(),
            }
        }
        Ok(answer)
    }

    /// Whether these words are in it.
    pub(crate) fn says(&self, words: &[u8]) -> bool {
        self.bytes.windows(words.len()).any(|said| said == words)
    }

    /// Whether it is what nginx has to say to somebody without a certificate, when the handshake is over.
    pub(crate) fn wants_certificate(&self) -> bool {
        self.says(b"No required SSL certificate was sent")
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Credentials(***)" } else { "Credentials(none)" })
    }
}
