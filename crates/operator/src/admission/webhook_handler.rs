//! The HTTP handler of the validating webhook.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
    routing::post,
};
use http::{Request, StatusCode, header};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use kubewake_webhook::{
    body_reader::BodyReader,
    review::{ReviewDecision, ReviewParseError, ReviewRequest},
};
use tokio::time::timeout;

use super::{
    CALL_TIMEOUT, VALIDATE_PATH, access, cluster_warnings,
    counters::{ReviewCounters, ReviewOutcome},
    reviewed_object::ReviewedObject,
};

/// One second less than the API server's timeout, so that it receives the reason.
const REQUEST_TIMEOUT: Duration = CALL_TIMEOUT.saturating_sub(Duration::from_secs(1));
/// Warnings are worth a wait, but not a long one.
const SLOT_CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// API servers pass on 4 KiB of warnings.
const MAX_WARNINGS: usize = 12;

#[derive(Debug)]
pub(super) struct WebhookHandler {
    client: OpaqueClient,
    namespace: String,
    body_reader: BodyReader,
    counters: Arc<ReviewCounters>,
}

/// A client without a representation for `Debug`.
struct OpaqueClient(Client);

impl std::fmt::Debug for OpaqueClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl WebhookHandler {
    pub(super) fn new(client: Client, namespace: &str, counters: Arc<ReviewCounters>) -> Self {
        let (client, namespace, body_reader) =
            (OpaqueClient(client), namespace.to_owned(), BodyReader::new(REQUEST_TIMEOUT));
        Self { client, namespace, body_reader, counters }
    }

    pub(super) fn router(self) -> Router {
        Router::new().route(VALIDATE_PATH, post(validate)).with_state(Arc::new(self))
    }

    /// Returns the body of the response.
    async fn handle_body(&self, body: &[u8]) -> Result<Vec<u8>, ReviewParseError> {
        let review = match ReviewRequest::parse(body) {
            Ok(review) => review,
            Err(ReviewParseError::Answerable { uid, .. }) => {
                self.counters.count(ReviewOutcome::Failed);
                return Ok(internal_error("failed to parse the AdmissionReview").to_response_body(&uid, &[]));
            }
            Err(other) => return Err(other),
        };
        let (verdict, outcome, warnings) = self.decide(&review).await;
        self.counters.count(outcome);
        if let ReviewDecision::Refuse { reason, .. } = &verdict {
            let kind = &review.kind.kind;
            let name = review.display_name();
            let user = review.user_info.username.as_deref();
            tracing::info!(kind, name, user, reason, "denied an admission request");
        }
        Ok(verdict.to_response_body(&review.uid, &warnings))
    }

    async fn decide(&self, review: &ReviewRequest) -> (ReviewDecision, ReviewOutcome, Vec<String>) {
        let case = match ReviewedObject::from_review(review, &self.namespace, Timestamp::now()) {
            Ok(Some(case)) => case,
            Ok(None) => return (ReviewDecision::pass(), ReviewOutcome::Allowed, Vec::new()),
            Err(strange) => return (ReviewDecision::invalid(strange.to_string()), ReviewOutcome::Invalid, Vec::new()),
        };
        let (forbidden, around) =
            tokio::join!(self.forbidden_objects(&review.user_info, &case), self.cluster_warnings(&case));
        let forbidden = match forbidden {
            Ok(forbidden) => forbidden,
            Err(why) => return (internal_error(why), ReviewOutcome::Failed, Vec::new()),
        };
        let (verdict, outcome) = decision_for(&case, &forbidden);
        // A refused resource gets no warnings about the cluster; the next attempt gets them.
        let around = around.into_iter().filter(|_| matches!(outcome, ReviewOutcome::Allowed));
        let warnings = case.warnings.iter().map(ToString::to_string).chain(around).take(MAX_WARNINGS).collect();
        (verdict, outcome, warnings)
    }

    async fn forbidden_objects(
        &self,
        user: &UserInfo,
        case: &ReviewedObject,
    ) -> Result<Vec<access::AccessTarget>, &'static str> {
        if case.access_targets.is_empty() {
            return Ok(Vec::new());
        }
        match timeout(REQUEST_TIMEOUT, access::forbidden_objects(&self.client.0, user, &case.access_targets)).await {
            Ok(Ok(forbidden)) => Ok(forbidden),
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to create a SubjectAccessReview");
                Err("failed to check your access to the referenced Secrets and ConfigMaps: try again")
            }
            Err(_) => Err("timed out while checking your access to the referenced Secrets and ConfigMaps: try again"),
        }
    }

    async fn cluster_warnings(&self, case: &ReviewedObject) -> Vec<String> {
        let Some(pipeline) = &case.pipeline else { return Vec::new() };
        let warnings = cluster_warnings::warnings(&self.client.0, &self.namespace, pipeline);
        timeout(SLOT_CHECK_TIMEOUT, warnings).await.unwrap_or_default()
    }
}

async fn validate(State(handler): State<Arc<WebhookHandler>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let held = match handler.body_reader.read(&head.headers, body).await {
        Ok(held) => held,
        Err(unread) => {
            handler.counters.count(ReviewOutcome::Failed);
            return unread.into_response();
        }
    };
    match handler.handle_body(&held.body).await {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(no_review) => {
            handler.counters.count(ReviewOutcome::Failed);
            (StatusCode::BAD_REQUEST, no_review.to_string()).into_response()
        }
    }
}

/// Joins all problems in one refusal.
fn decision_for(case: &ReviewedObject, forbidden: &[access::AccessTarget]) -> (ReviewDecision, ReviewOutcome) {
    let mut lines: Vec<String> = case.problems.iter().map(ToString::to_string).collect();
    lines.extend(forbidden.iter().map(|object| {
        format!(
            "you may not read {object}: a user who references it or changes its destination must be allowed to `get` it"
        )
    }));
    let message = match lines.as_slice() {
        [] => return (ReviewDecision::pass(), ReviewOutcome::Allowed),
        [one] => one.clone(),
        many => format!("{} problems:\n- {}", many.len(), many.join("\n- ")),
    };
    if case.problems.is_empty() {
        (ReviewDecision::forbidden(message), ReviewOutcome::Forbidden)
    } else {
        (ReviewDecision::invalid(message), ReviewOutcome::Invalid)
    }
}

/// Refuses for a reason that is not the writer's fault.
fn internal_error(message: &str) -> ReviewDecision {
    ReviewDecision::Refuse { message: message.to_owned(), reason: "InternalError", code: 500 }
}

#[cfg(test)]
mod tests;
