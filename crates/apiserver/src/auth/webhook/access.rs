//! SubjectAccessReviews: may they do this?

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::{
    Webhook,
    cache::{Cache, key},
    text,
};
use crate::auth::{Attributes, Authorizer, Decision};

/// kube-apiserver's own times (`--authorization-webhook-cache-authorized-ttl` and `…-unauthorized-ttl`).
const ALLOWED: Duration = Duration::from_secs(300);
const REFUSED: Duration = Duration::from_secs(30);

/// Decides as a webhook decides. One that cannot be asked has no opinion.
#[derive(Debug)]
pub struct AccessWebhook {
    webhook: Webhook,
    known: Cache<Decision>,
}

impl AccessWebhook {
    /// Asks this one.
    pub fn new(webhook: Webhook) -> Self {
        Self { webhook, known: Cache::default() }
    }

    async fn ask(&self, attributes: &Attributes<'_>) -> Decision {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec(attributes),
        });
        let question = key(review.to_string().as_bytes());
        if let Some(known) = self.known.get(&question) {
            return known;
        }
        match self.webhook.review(&review).await {
            Ok(answer) => {
                let decision = decision(&answer);
                self.known.put(question, decision.clone(), if decision.is_allowed() { ALLOWED } else { REFUSED });
                decision
            }
            Err(error) => {
                tracing::warn!(error, "the authorization webhook cannot be asked");
                Decision::no_opinion("")
            }
        }
    }
}

impl Authorizer for AccessWebhook {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(self.ask(attributes))
    }
}

fn spec(attributes: &Attributes<'_>) -> Value {
    let user = attributes.user;
    let groups: Vec<&str> = user.groups.iter().map(|group| &**group).collect();
    let mut spec = filled([("user", &*user.name), ("uid", &*user.uid)]);
    spec.insert("groups".into(), json!(groups));
    if !user.extra.is_empty() {
        spec.insert("extra".into(), json!(*user.extra));
    }
    let about = match attributes.path {
        Some(path) => ("nonResourceAttributes", filled([("path", path), ("verb", attributes.verb)])),
        None => (
            "resourceAttributes",
            filled([
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

/// What is empty is left out.
fn filled<const N: usize>(pairs: [(&str, &str); N]) -> Map<String, Value> {
    pairs.into_iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| (key.into(), value.into())).collect()
}

pub(crate) fn decision(answer: &Value) -> Decision {
    let flag = |pointer: &str| answer.pointer(pointer).and_then(Value::as_bool) == Some(true);
    let reason = text(answer, "/status/reason");
    match (flag("/status/allowed"), flag("/status/denied")) {
        // Both at once is no answer.
        (true, false) => Decision::allow(reason),
        (false, true) => Decision::deny(reason),
        _ => Decision::no_opinion(reason),
    }
}
