//! Calls and their answers.

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
use kubewake_trail::webhook::{
    intake::Intake,
    review::{NoReview, Review, Verdict},
};
use tokio::time::timeout;

use super::{
    PATH, TIMEOUT_SECONDS, access,
    case::Case,
    counters::{Counters, Outcome},
    slots,
};

/// A second less than the API server waits, so that it hears why.
const PATIENCE: Duration = Duration::from_secs(TIMEOUT_SECONDS as u64 - 1);
/// A reason to wait, but not for long.
const SLOT_PATIENCE: Duration = Duration::from_secs(1);
/// An API server passes on 4 KiB of warnings.
const MOST_WARNINGS: usize = 12;

/// Where calls come in.
#[derive(Debug)]
pub(super) struct Door {
    client: ClientOf,
    namespace: String,
    intake: Intake,
    counters: Arc<Counters>,
}

/// A client, which has nothing to show.
struct ClientOf(Client);

impl std::fmt::Debug for ClientOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Door {
    pub(super) fn new(client: Client, namespace: &str, counters: Arc<Counters>) -> Self {
        let (client, namespace, intake) = (ClientOf(client), namespace.to_owned(), Intake::new(PATIENCE));
        Self { client, namespace, intake, counters }
    }

    pub(super) fn router(self) -> Router {
        Router::new().route(PATH, post(validate)).with_state(Arc::new(self))
    }

    /// The body of the answer.
    async fn answer(&self, body: &[u8]) -> Result<Vec<u8>, NoReview> {
        let review = match Review::read(body) {
            Ok(review) => review,
            Err(NoReview::Answerable { uid, .. }) => {
                self.counters.called(Outcome::Failed);
                return Ok(broken("the review cannot be read").answer(&uid, &[]));
            }
            Err(other) => return Err(other),
        };
        let (verdict, outcome, warnings) = self.decide(&review).await;
        self.counters.called(outcome);
        if let Verdict::Refuse { reason, .. } = &verdict {
            let (kind, name, user) = (&review.kind.kind, review.shown_name(), review.user_info.username.as_deref());
            tracing::info!(kind, name, user, reason, "a resource was refused");
        }
        Ok(verdict.answer(&review.uid, &warnings))
    }

    async fn decide(&self, review: &Review) -> (Verdict, Outcome, Vec<String>) {
        let case = match Case::of(review, &self.namespace, Timestamp::now()) {
            Ok(Some(case)) => case,
            Ok(None) => return (Verdict::pass(), Outcome::Allowed, Vec::new()),
            Err(strange) => return (Verdict::invalid(strange.to_string()), Outcome::Invalid, Vec::new()),
        };
        let (forbidden, around) = tokio::join!(self.forbidden(&review.user_info, &case), self.around(&case));
        let forbidden = match forbidden {
            Ok(forbidden) => forbidden,
            Err(why) => return (broken(why), Outcome::Failed, Vec::new()),
        };
        let (verdict, outcome) = verdict(&case, &forbidden);
        // What is refused will not be anything, and who mends it is told again.
        let around = around.into_iter().filter(|_| matches!(outcome, Outcome::Allowed));
        let warnings = case.warnings.iter().map(ToString::to_string).chain(around).take(MOST_WARNINGS).collect();
        (verdict, outcome, warnings)
    }

    async fn forbidden(&self, user: &UserInfo, case: &Case) -> Result<Vec<access::Object>, &'static str> {
        if case.named.is_empty() {
            return Ok(Vec::new());
        }
        match timeout(PATIENCE, access::forbidden(&self.client.0, user, &case.named)).await {
            Ok(Ok(forbidden)) => Ok(forbidden),
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot find out what a user may read");
                Err("whether you may read what is named here cannot be found out now; try again")
            }
            Err(_) => Err("it took too long to find out whether you may read what is named here; try again"),
        }
    }

    async fn around(&self, case: &Case) -> Vec<String> {
        let Some(pipeline) = &case.pipeline else { return Vec::new() };
        let warnings = slots::warnings(&self.client.0, &self.namespace, pipeline);
        timeout(SLOT_PATIENCE, warnings).await.unwrap_or_default()
    }
}

async fn validate(State(door): State<Arc<Door>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let held = match door.intake.read(&head.headers, body).await {
        Ok(held) => held,
        Err(unread) => {
            door.counters.called(Outcome::Failed);
            return unread.into_response();
        }
    };
    match door.answer(&held.body).await {
        Ok(answer) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(no_review) => {
            door.counters.called(Outcome::Failed);
            (StatusCode::BAD_REQUEST, no_review.to_string()).into_response()
        }
    }
}

/// All that is wrong, in one refusal.
fn verdict(case: &Case, forbidden: &[access::Object]) -> (Verdict, Outcome) {
    let mut lines: Vec<String> = case.problems.iter().map(ToString::to_string).collect();
    lines.extend(forbidden.iter().map(|object| {
        format!("you may not read {object}: whoever names it, or changes where it is sent, must be allowed to `get` it")
    }));
    let message = match lines.as_slice() {
        [] => return (Verdict::pass(), Outcome::Allowed),
        [one] => one.clone(),
        many => format!("{} things are wrong:\n- {}", many.len(), many.join("\n- ")),
    };
    match case.problems.is_empty() {
        true => (Verdict::forbidden(message), Outcome::Forbidden),
        false => (Verdict::invalid(message), Outcome::Invalid),
    }
}

/// Something that is not the writer's fault.
fn broken(message: &str) -> Verdict {
    Verdict::Refuse { message: message.to_owned(), reason: "InternalError", code: 500 }
}

#[cfg(test)]
mod tests;
