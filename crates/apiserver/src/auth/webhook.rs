//! Asking others who somebody is and what they may do: `--authentication-token-webhook-config-file` and
//! `--authorization-webhook-config-file`.
//!
//! The files are kubeconfigs, as in kube-apiserver: the current context says where, whom to believe and who to be. Reviews are of v1. What
//! kube-apiserver leaves dark is traced here: each call is a client span, and the context goes along. Answers are remembered for
//! kube-apiserver's own times, so that a webhook is not asked for every request; errors are not. Not done: exec and OIDC credentials,
//! `insecure-skip-tls-verify`, retries.

pub mod access;
mod cache;
mod config;
pub mod tokens;

use std::{path::Path, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Uri, header};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::timeout;

use crate::{client::Client, trace::outgoing};

pub use self::config::Error;

/// kube-apiserver's own patience.
const PATIENCE: Duration = Duration::from_secs(30);
/// No review is longer.
const ANSWER: usize = 1 << 20;

/// One who answers reviews.
#[derive(Clone, Debug)]
pub struct Webhook {
    client: Client,
    url: Uri,
    authorization: Option<HeaderValue>,
}

impl Webhook {
    /// The one that a kubeconfig names.
    ///
    /// # Errors
    /// If the file cannot be read or used.
    pub fn load(path: &Path) -> Result<Self, Error> {
        config::load(path)
    }

    /// Sends a review and gives the one that comes back.
    async fn review(&self, review: &Value) -> Result<Value, String> {
        let mut request = Request::post(self.url.clone()).header(header::CONTENT_TYPE, "application/json");
        request = request.header(header::ACCEPT, "application/json, */*");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.clone());
        }
        let request = request.body(Full::new(Bytes::from(review.to_string()))).map_err(|error| error.to_string())?;
        let parent = outgoing::current();
        let answer = match timeout(PATIENCE, outgoing::send(&parent, &self.client, request)).await {
            Ok(answer) => answer.map_err(|error| format!("Post {:?}: {error}", self.url.to_string()))?,
            Err(_) => return Err(format!("Post {:?}: context deadline exceeded", self.url.to_string())),
        };
        if !answer.head.status.is_success() {
            return Err(format!("webhook answered {}", answer.head.status));
        }
        let back: Value = serde_json::from_slice(&answer.body).map_err(|_| "webhook answered no review".to_owned())?;
        let same = ["apiVersion", "kind"].iter().all(|key| back.get(*key) == review.get(*key));
        if same { Ok(back) } else { Err("webhook answered another kind of review".to_owned()) }
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
