//! TokenReviews: whose token is this?

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    Webhook,
    cache::{Cache, key},
    text,
};
use crate::auth::{
    User,
    authenticate::{Authenticator, Identity, audiences_for},
    user::Extra,
};

/// kube-apiserver's own time (`--authentication-token-webhook-cache-ttl`).
const REMEMBERED: Duration = Duration::from_secs(120);

/// Knows the tokens that a webhook knows.
#[derive(Debug)]
pub struct TokenWebhook {
    webhook: Webhook,
    /// The server's own.
    audiences: Arc<[String]>,
    known: Cache<Option<Identity>>,
}

impl TokenWebhook {
    /// Asks this one. `audiences` are the server's own.
    pub fn new(webhook: Webhook, audiences: Arc<[String]>) -> Self {
        Self { webhook, audiences, known: Cache::default() }
    }

    async fn ask(&self, token: &str, audiences: Option<&[String]>) -> Result<Option<Identity>, String> {
        let wanted = audiences.unwrap_or(&self.audiences);
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": { "token": token, "audiences": wanted },
        });
        let question = key(review.to_string().as_bytes());
        if let Some(known) = self.known.get(&question) {
            return Ok(known);
        }
        let answer = self.webhook.review(&review).await?;
        let identity = identity(&answer, wanted, &self.audiences)?;
        self.known.put(question, identity.clone(), REMEMBERED);
        Ok(identity)
    }
}

/// Whose token it is by an answer. `own` are the server's audiences.
pub(crate) fn identity(answer: &Value, wanted: &[String], own: &Arc<[String]>) -> Result<Option<Identity>, String> {
    let status = answer.get("status").unwrap_or(&Value::Null);
    if status.get("authenticated").and_then(Value::as_bool) != Some(true) {
        return match text(status, "/error") {
            "" => Ok(None),
            error => Err(error.to_owned()),
        };
    }
    // A webhook that knows nothing of audiences answers for the server's own.
    let said: Arc<[String]> = match texts(status.get("audiences")) {
        none if none.is_empty() => Arc::clone(own),
        some => some.into(),
    };
    let audiences = audiences_for(&said, Some(wanted)).unwrap_or_default();
    if audiences.is_empty() && !wanted.is_empty() {
        return Ok(None);
    }
    Ok(Some(Identity { user: user(status.get("user").unwrap_or(&Value::Null)), audiences }))
}

impl Authenticator for TokenWebhook {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<Identity>, String>> {
        Box::pin(self.ask(token, audiences))
    }
}

fn user(from: &Value) -> User {
    let groups = texts(from.get("groups"));
    let extra = from.get("extra").and_then(Value::as_object).into_iter().flatten();
    let extra: Extra = extra.map(|(key, values)| (key.clone(), texts(Some(values)))).collect();
    let user = User::new(text(from, "/username"), groups.iter().map(String::as_str)).with_uid(text(from, "/uid"));
    User { extra: Arc::new(extra), ..user }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let all = list.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}
