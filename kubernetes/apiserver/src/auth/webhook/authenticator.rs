//! Token authentication by webhook: TokenReviews.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{
    WebhookClient,
    response_cache::{ResponseCache, cache_key},
    text,
};
use crate::auth::{
    UserInfo,
    authenticate::{TokenAuthenticator, TokenIdentity, intersect_audiences},
    user::UserExtra,
};

const TOKEN_CACHE_TTL: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct WebhookTokenAuthenticator {
    webhook: WebhookClient,
    audiences: Arc<[String]>,
    known: ResponseCache<Option<TokenIdentity>>,
}

impl WebhookTokenAuthenticator {
    /// `audiences` are the server's own.
    pub fn new(webhook: WebhookClient, audiences: Arc<[String]>) -> Self {
        Self { webhook, audiences, known: ResponseCache::default() }
    }

    async fn review_token(&self, token: &str, audiences: Option<&[String]>) -> Result<Option<TokenIdentity>, String> {
        let wanted = audiences.unwrap_or(&self.audiences);
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": { "token": token, "audiences": wanted },
        });
        let question = cache_key(review.to_string().as_bytes());
        if let Some(known) = self.known.get(&question) {
            return Ok(known);
        }
        let answer = self.webhook.post_review(&review).await?;
        let identity = identity_from_review(&answer, wanted, &self.audiences)?;
        self.known.put(question, identity.clone(), TOKEN_CACHE_TTL);
        Ok(identity)
    }
}

/// The identity in a response. `own` are the server's audiences.
pub(crate) fn identity_from_review(
    answer: &Value,
    wanted: &[String],
    own: &Arc<[String]>,
) -> Result<Option<TokenIdentity>, String> {
    let status = answer.get("status").unwrap_or(&Value::Null);
    if status.get("authenticated").and_then(Value::as_bool) != Some(true) {
        return match text(status, "/error") {
            "" => Ok(None),
            error => Err(error.to_owned()),
        };
    }
    // A webhook that does not return audiences decides for the server's own.
    let said: Arc<[String]> = match texts(status.get("audiences")) {
        none if none.is_empty() => Arc::clone(own),
        some => some.into(),
    };
    let audiences = intersect_audiences(&said, Some(wanted)).unwrap_or_default();
    if audiences.is_empty() && !wanted.is_empty() {
        return Ok(None);
    }
    Ok(Some(TokenIdentity { user: user(status.get("user").unwrap_or(&Value::Null)), audiences }))
}

impl TokenAuthenticator for WebhookTokenAuthenticator {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<TokenIdentity>, String>> {
        Box::pin(self.review_token(token, audiences))
    }
}

fn user(from: &Value) -> UserInfo {
    let groups = texts(from.get("groups"));
    let extra = from.get("extra").and_then(Value::as_object).into_iter().flatten();
    let extra: UserExtra = extra.map(|(key, values)| (key.clone(), texts(Some(values)))).collect();
    let user = UserInfo::new(text(from, "/username"), groups.iter().map(String::as_str)).with_uid(text(from, "/uid"));
    UserInfo { extra: Arc::new(extra), ..user }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let all = list.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}
