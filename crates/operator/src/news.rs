//! Events about objects whose state is another one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Resource,
    runtime::events::{Event, EventType},
};
use kubewake_api::{Reason, State};
use kubewake_trail::events::Events;

/// Tells of a new state, in the words of the condition that decided on it. It is news and no more: without it everything goes on.
pub async fn tell<K>(events: &Events, object: &K, state: Option<State>, reason: Option<&str>, conditions: &[Condition])
where
    K: Resource<DynamicType = ()>,
{
    let failed = reason == Some(Reason::ApplyFailed.as_str());
    let is_bad = failed || matches!(state, Some(State::Degraded | State::Invalid));
    let decisive = conditions.iter().find(|condition| Some(condition.reason.as_str()) == reason);
    let event = Event {
        type_: if is_bad { EventType::Warning } else { EventType::Normal },
        reason: reason.unwrap_or_default().to_owned(),
        note: decisive.map(|condition| condition.message.clone()),
        action: "Reconcile".to_owned(),
        secondary: None,
    };
    if let Err(error) = events.publish(&event, &object.object_ref(&())).await {
        let name = object.meta().name.as_deref();
        tracing::warn!(kind = %K::kind(&()), name, %error, "an event is lost");
    }
}
