//! Authorization by webhook: SubjectAccessReviews.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{
    WebhookClient,
    response_cache::{ResponseCache, cache_key},
    text,
};
use crate::auth::{AuthorizationAttributes, AuthorizationDecision, Authorizer};

/// The TTLs of kube-apiserver (`--authorization-webhook-cache-authorized-ttl` and `…-unauthorized-ttl`).
const AUTHORIZED_CACHE_TTL: Duration = Duration::from_secs(300);
const UNAUTHORIZED_CACHE_TTL: Duration = Duration::from_secs(30);

/// Authorizes by webhook. A call that fails is no opinion.
#[derive(Debug)]
pub struct WebhookAuthorizer {
    webhook: WebhookClient,
    known: ResponseCache<AuthorizationDecision>,
}

impl WebhookAuthorizer {
    pub fn new(webhook: WebhookClient) -> Self {
        Self { webhook, known: ResponseCache::default() }
    }

    async fn review_access(&self, attributes: &AuthorizationAttributes<'_>) -> AuthorizationDecision {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": access_review_spec(attributes),
        });
        let question = cache_key(review.to_string().as_bytes());
        if let Some(known) = self.known.get(&question) {
            return known;
        }
        match self.webhook.post_review(&review).await {
            Ok(answer) => {
                let decision = decision_from_review(&answer);
                self.known.put(
                    question,
                    decision.clone(),
                    if decision.is_allowed() { AUTHORIZED_CACHE_TTL } else { UNAUTHORIZED_CACHE_TTL },
                );
                decision
            }
            Err(error) => {
                tracing::warn!(error, "failed to call the authorization webhook");
                AuthorizationDecision::no_opinion("")
            }
        }
    }
}

impl Authorizer for WebhookAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a AuthorizationAttributes<'a>) -> BoxFuture<'a, AuthorizationDecision> {
        Box::pin(self.review_access(attributes))
    }
}

fn access_review_spec(attributes: &AuthorizationAttributes<'_>) -> Value {
    let user = attributes.user;
    let groups: Vec<&str> = user.groups.iter().map(|group| &**group).collect();
    let mut spec = non_empty_fields([("user", &*user.name), ("uid", &*user.uid)]);
    spec.insert("groups".into(), json!(groups));
    if !user.extra.is_empty() {
        spec.insert("extra".into(), json!(*user.extra));
    }
    let about = match attributes.path {
        Some(path) => ("nonResourceAttributes", non_empty_fields([("path", path), ("verb", attributes.verb)])),
        None => (
            "resourceAttributes",
            non_empty_fields([
                ("namespace", attributes.namespace),
                ("verb", attributes.verb),
                ("group", attributes.group),
                ("version", attributes.version),
                ("resource", attributes.resource),
                ("subresource", attributes.subresource),
                ("name", attributes.name),
            ]),
        ),
    };
    spec.insert(about.0.into(), about.1.into());
    spec.into()
}

/// The fields that are not empty.
fn non_empty_fields<const N: usize>(pairs: [(&str, &str); N]) -> Map<String, Value> {
    pairs.into_iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| (key.into(), value.into())).collect()
}

pub(crate) fn decision_from_review(answer: &Value) -> AuthorizationDecision {
    let flag = |pointer: &str| answer.pointer(pointer).and_then(Value::as_bool) == Some(true);
    let reason = text(answer, "/status/reason");
    match (flag("/status/allowed"), flag("/status/denied")) {
        // Allowed and denied at once is invalid.
        (true, false) => AuthorizationDecision::allow(reason),
        (false, true) => AuthorizationDecision::deny(reason),
        _ => AuthorizationDecision::no_opinion(reason),
    }
}
