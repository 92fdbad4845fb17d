//! Authentication and authorization by webhook: `--authentication-token-webhook-config-file` and
//! `--authorization-webhook-config-file`.
//!
//! The files are kubeconfigs, as in kube-apiserver: the current context has the address, the trusted CA and the
//! client credentials. Reviews are of v1. Unlike in kube-apiserver, calls are traced: each is a client span and
//! propagates the context. Responses are cached for kube-apiserver's TTLs; errors are not. Not done: exec and
//! OIDC credentials, `insecure-skip-tls-verify`, retries.

pub mod authenticator;
pub mod authorizer;
mod config;
mod response_cache;

use std::{path::Path, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Uri, header};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::timeout;

use crate::{client::HttpClient, trace::outgoing};

pub use self::config::WebhookConfigError;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_RESPONSE_BYTES: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct WebhookClient {
    client: HttpClient,
    url: Uri,
    authorization: Option<HeaderValue>,
}

impl WebhookClient {
    /// The webhook of a kubeconfig.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub fn load(path: &Path) -> Result<Self, WebhookConfigError> {
        config::load(path)
    }

    /// Posts a review and returns the one in the response.
    async fn post_review(&self, review: &Value) -> Result<Value, String> {
        let mut request = Request::post(self.url.clone()).header(header::CONTENT_TYPE, "application/json");
        request = request.header(header::ACCEPT, "application/json, */*");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        let request = request.body(Full::new(Bytes::from(review.to_string()))).map_err(|error| error.to_string())?;
        let parent = outgoing::current_span();
        let answer = match timeout(REQUEST_TIMEOUT, outgoing::send_traced(&parent, &self.client, request)).await {
            Ok(answer) => answer.map_err(|error| format!("Post {:?}: {error}", self.url.to_string()))?,
            Err(_) => return Err(format!("Post {:?}: context deadline exceeded", self.url.to_string())),
        };
        if !answer.head.status.is_success() {
            return Err(format!("webhook responded with status {}", answer.head.status));
        }
        let back: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| "the response of the webhook is not a review".to_owned())?;
        let same = ["apiVersion", "kind"].iter().all(|key| back.get(*key) == review.get(*key));
        if same {
            Ok(back)
        } else {
            Err("the response of the webhook has another apiVersion or kind than the request".to_owned())
        }
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
