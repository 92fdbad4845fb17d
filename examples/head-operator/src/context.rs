//! What every reconcile has at hand, and how it fails.

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{
        controller::Action,
        events::{Event, EventType},
    },
};
use kubewake_trail::{Trail, events::Events, in_words};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    api::{ChildA, ChildAStatus, Head, HeadStatus},
    labels, ready,
    written::Written,
};

#[cfg(test)]
mod tests;

/// The first pause after a failure. Long enough for whoever is to mend it to be told.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest: whoever has mended something waits no longer.
const LAST_PAUSE: Duration = Duration::from_secs(60);

/// Why a reconcile failed: the step that did not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A child of a Head.
    #[error("the children cannot be made")]
    Child(#[source] kube::Error),
    /// The Deployment of a ChildA.
    #[error("the Deployment cannot be made")]
    Deployment(#[source] kube::Error),
    /// The status.
    #[error("the status cannot be written")]
    Status(#[source] kube::Error),
}

/// A kind with the condition `Ready`.
pub trait Conditioned: Resource<DynamicType = (), Scope = NamespaceResourceScope> {
    /// Its status.
    type Status: Serialize + PartialEq;
    /// Its status, if it has one.
    fn status(&self) -> Option<&Self::Status>;
    /// The conditions in a status.
    fn conditions(status: &Self::Status) -> &[Condition];
}

impl Conditioned for Head {
    type Status = HeadStatus;
    fn status(&self) -> Option<&HeadStatus> {
        self.status.as_ref()
    }
    fn conditions(status: &HeadStatus) -> &[Condition] {
        &status.conditions
    }
}

impl Conditioned for ChildA {
    type Status = ChildAStatus;
    fn status(&self) -> Option<&ChildAStatus> {
        self.status.as_ref()
    }
    fn conditions(status: &ChildAStatus) -> &[Condition] {
        &status.conditions
    }
}

/// What every reconcile has at hand.
pub struct Context {
    client: Client,
    trail: Trail,
    events: Events,
    /// What was written and not seen yet.
    pub(crate) written: Written,
    /// How long an object is left alone when nothing happens to it.
    pub(crate) resync: Duration,
}

impl Context {
    /// With this client, whose calls the trail sees.
    pub fn new(client: Client, trail: Trail, resync: Duration) -> Self {
        let events = trail.events(client.clone(), labels::MANAGER);
        Self { client, trail, events, written: Written::default(), resync }
    }

    /// Objects of a kind where another one lives.
    pub(crate) fn beside<K>(&self, object: &impl ResourceExt) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default())
    }

    /// Makes a child what it should be, and gives what it is now: a span, whose context the child carries on.
    pub(crate) async fn apply<P, K>(&self, parent: &P, api: &Api<K>, child: K) -> kube::Result<K>
    where
        P: Resource<DynamicType = ()>,
        K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        self.trail.child(parent).apply(api, labels::MANAGER, child).await
    }

    /// Writes a status that is not there yet: a span, and the converge span if the object is ready by it. Tells of a new reason.
    pub(crate) async fn status<K>(&self, object: &K, status: K::Status) -> Result<(), Error>
    where
        K: Conditioned + Clone + Debug + Serialize + DeserializeOwned,
    {
        if object.status() == Some(&status) {
            let (kind, meta) = (K::kind(&()), object.meta());
            tracing::debug!(%kind, namespace = ?meta.namespace, name = ?meta.name, "all is as it should be");
            return Ok(());
        }
        let (api, patch) = (self.beside::<K>(object), Patch::Merge(json!({"status": status})));
        let answer = self.trail.patch_status(&api, object, &PatchParams::default(), &patch).await;
        self.written.note(&answer.map_err(Error::Status)?);
        self.tell(object, &status).await;
        Ok(())
    }

    /// An event for a new reason, which names the trace. It is news and no more: without it everything goes on.
    async fn tell<K: Conditioned>(&self, object: &K, status: &K::Status) {
        let before = object.status().and_then(|status| ready::find(K::conditions(status)));
        let Some(now) = ready::find(K::conditions(status)) else { return };
        if before.is_some_and(|before| before.reason == now.reason) {
            return;
        }
        let event = Event {
            type_: if ready::is_refusal(now) { EventType::Warning } else { EventType::Normal },
            reason: now.reason.clone(),
            note: Some(now.message.clone()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.events.publish(&event, &object.object_ref(&())).await {
            let meta = object.meta();
            tracing::warn!(kind = %K::kind(&()), namespace = meta.namespace, name = meta.name, error = in_words(&error), "an event is lost");
        }
    }
}

/// The API server's words, if it will say the same again until somebody changes something.
pub(crate) fn refusal(error: &kube::Error) -> Option<&str> {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422) => Some(&status.message),
        _ => None,
    }
}

/// When to try again what failed: after half the time for which it is not ready already, so that the pauses grow, also across restarts.
pub(crate) fn again<K: Conditioned>(object: &K, now: Timestamp) -> Action {
    let ready = object.status().and_then(|status| ready::find(K::conditions(status)));
    let since = ready.map(|ready| &ready.last_transition_time).or(object.meta().creation_timestamp.as_ref());
    let failing = since.and_then(|since| Duration::try_from(now.duration_since(since.0)).ok()).unwrap_or_default();
    Action::requeue((failing / 2).clamp(FIRST_PAUSE, LAST_PAUSE))
}
