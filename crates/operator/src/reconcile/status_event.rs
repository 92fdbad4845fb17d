//! Kubernetes events about a changed status: another state, or another reason while the state is not ready.
//!
//! *Guaranteed*: changed figures in a message cause no event, and a healthy state is reported once. The rate of
//! events is bounded where they are published.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Resource,
    runtime::events::{Event, EventType},
};
use kubewake_api::{
    ConditionReason, State,
    v1alpha1::{PipelineStatus, TelemetryStatus},
};
use kubewake_trail::events::EventPublisher;

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, Debug)]
pub struct StatusEvent<'a> {
    state: Option<State>,
    reason: Option<&'a str>,
    /// The message of the condition that decided the state.
    message: Option<&'a str>,
    /// Whether collectors do not start and will not by themselves, for example because of an image that cannot
    /// be pulled.
    is_stuck: bool,
}

impl<'a> StatusEvent<'a> {
    fn new(state: Option<State>, reason: Option<&'a str>, conditions: &'a [Condition]) -> Self {
        let decisive = conditions.iter().find(|condition| Some(condition.reason.as_str()) == reason);
        Self { state, reason, message: decisive.map(|condition| condition.message.as_str()), is_stuck: false }
    }

    /// Sets whether collectors are stuck.
    #[must_use]
    pub fn with_stuck(self, is_stuck: bool) -> Self {
        Self { is_stuck, ..self }
    }

    /// Publishes the event unless the status before was the same. A failure is only logged: nothing depends on
    /// events.
    pub async fn publish_if_changed<K>(self, before: Option<StatusEvent<'_>>, events: &EventPublisher, object: &K)
    where
        K: Resource<DynamicType = ()>,
    {
        if before.is_some_and(|before| self.is_already_reported(before)) {
            return;
        }
        if let Err(error) = events.publish(&self.into_event(), &object.object_ref(&())).await {
            let name = object.meta().name.as_deref();
            tracing::warn!(kind = %K::kind(&()), name, %error, "failed to publish an event");
        }
    }

    /// Whether the status before was the same up to figures in its message.
    fn is_already_reported(self, before: StatusEvent<'_>) -> bool {
        let is_same = (self.state, self.reason) == (before.state, before.reason);
        is_same
            && (self.state == Some(State::Ready)
                || words_without_figures(self.message).eq(words_without_figures(before.message)))
    }

    fn into_event(self) -> Event {
        let failed = self.reason == Some(ConditionReason::ApplyFailed.as_str());
        let stuck = self.is_stuck && self.reason == Some(ConditionReason::CollectorNotReady.as_str());
        let is_bad = failed || stuck || matches!(self.state, Some(State::Degraded | State::Invalid));
        Event {
            type_: if is_bad { EventType::Warning } else { EventType::Normal },
            reason: self.reason.unwrap_or_default().to_owned(),
            note: self.message.map(str::to_owned),
            action: "Reconcile".to_owned(),
            secondary: None,
        }
    }
}

impl<'a> From<&'a PipelineStatus> for StatusEvent<'a> {
    fn from(status: &'a PipelineStatus) -> Self {
        Self::new(status.state, status.reason.as_deref(), &status.conditions)
    }
}

impl<'a> From<&'a TelemetryStatus> for StatusEvent<'a> {
    fn from(status: &'a TelemetryStatus) -> Self {
        Self::new(status.state, status.reason.as_deref(), &status.conditions)
    }
}

/// The words of a message without figures, such as `2 of 3`, `0/1` or `80 %`. A code such as `http:401` is no
/// figure.
fn words_without_figures(words: Option<&str>) -> impl Iterator<Item = &str> {
    let is_figure = |word: &&str| {
        let is_part = |c: char| c.is_ascii_digit() || c.is_ascii_punctuation();
        word.contains(|c: char| c.is_ascii_digit()) && word.chars().all(is_part)
    };
    words.unwrap_or_default().split_whitespace().filter(move |word| !is_figure(word))
}
