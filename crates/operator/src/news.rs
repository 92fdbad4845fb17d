//! Events about objects of which something else is to be said: another state, or another reason for one that is not as it should be.
//!
//! *Guaranteed*: figures that go up and down in a message are no news, and what is well is told of once. How many events there are is bounded where they are published.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Resource,
    runtime::events::{Event, EventType},
};
use kubewake_api::{
    Reason, State,
    v1alpha1::{PipelineStatus, TelemetryStatus},
};
use kubewake_trail::events::Events;

#[cfg(test)]
mod tests;

/// What a status says.
#[derive(Clone, Copy, Debug)]
pub struct News<'a> {
    state: Option<State>,
    reason: Option<&'a str>,
    /// In the words of the condition that decided on it.
    words: Option<&'a str>,
    /// Whether collectors do not start and will not by themselves, such as for an image that cannot be pulled.
    is_stuck: bool,
}

impl<'a> News<'a> {
    fn new(state: Option<State>, reason: Option<&'a str>, conditions: &'a [Condition]) -> Self {
        let decisive = conditions.iter().find(|condition| Some(condition.reason.as_str()) == reason);
        Self { state, reason, words: decisive.map(|condition| condition.message.as_str()), is_stuck: false }
    }

    /// The same, about collectors that are stuck or are not.
    #[must_use]
    pub fn stuck(self, is_stuck: bool) -> Self {
        Self { is_stuck, ..self }
    }

    /// Tells of it, if that was not said before. It is news and no more: without it everything goes on.
    pub async fn tell<K>(self, before: Option<News<'_>>, events: &Events, object: &K)
    where
        K: Resource<DynamicType = ()>,
    {
        if before.is_some_and(|before| self.is_known(before)) {
            return;
        }
        if let Err(error) = events.publish(&self.event(), &object.object_ref(&())).await {
            let name = object.meta().name.as_deref();
            tracing::warn!(kind = %K::kind(&()), name, %error, "an event is lost");
        }
    }

    /// Whether this was said before, in these words or with other figures.
    fn is_known(self, before: News<'_>) -> bool {
        let is_same = (self.state, self.reason) == (before.state, before.reason);
        is_same && (self.state == Some(State::Ready) || gist(self.words).eq(gist(before.words)))
    }

    fn event(self) -> Event {
        let failed = self.reason == Some(Reason::ApplyFailed.as_str());
        let stuck = self.is_stuck && self.reason == Some(Reason::CollectorNotReady.as_str());
        let is_bad = failed || stuck || matches!(self.state, Some(State::Degraded | State::Invalid));
        Event {
            type_: if is_bad { EventType::Warning } else { EventType::Normal },
            reason: self.reason.unwrap_or_default().to_owned(),
            note: self.words.map(str::to_owned),
            action: "Reconcile".to_owned(),
            secondary: None,
        }
    }
}

impl<'a> From<&'a PipelineStatus> for News<'a> {
    fn from(status: &'a PipelineStatus) -> Self {
        Self::new(status.state, status.reason.as_deref(), &status.conditions)
    }
}

impl<'a> From<&'a TelemetryStatus> for News<'a> {
    fn from(status: &'a TelemetryStatus) -> Self {
        Self::new(status.state, status.reason.as_deref(), &status.conditions)
    }
}

/// The words of a message without its figures, which are words of their own: `2 of 3`, `0/1`, `80 %`. A code is none: `http:401`.
fn gist(words: Option<&str>) -> impl Iterator<Item = &str> {
    let is_figure = |word: &&str| {
        let is_part = |c: char| c.is_ascii_digit() || c.is_ascii_punctuation();
        word.contains(|c: char| c.is_ascii_digit()) && word.chars().all(is_part)
    };
    words.unwrap_or_default().split_whitespace().filter(move |word| !is_figure(word))
}
