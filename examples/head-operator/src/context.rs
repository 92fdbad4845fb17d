//! The context of every reconcile, its errors and its retries.

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
use kubewake_trail::{PendingWrites, Trail, error_chain, events::EventPublisher};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    api::{ChildA, ChildAStatus, Head, HeadStatus},
    labels, ready,
};

#[cfg(test)]
mod tests;

/// The first retry delay: long enough that the person who can fix the problem sees it reported.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The longest retry delay, and so the longest wait after a fix.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);
/// The retry delay of a ready object: a hundred of them ask an ailing API server twenty times a second.
const READY_RETRY_DELAY: Duration = Duration::from_secs(5);

/// The failed step of a reconcile.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    #[error("failed to apply the children")]
    Child(#[source] kube::Error),
    #[error("failed to apply the Deployment")]
    Deployment(#[source] kube::Error),
    #[error("failed to write the status")]
    Status(#[source] kube::Error),
}

/// A kind with the condition `Ready`.
pub trait HasConditions: Resource<DynamicType = (), Scope = NamespaceResourceScope> {
    type Status: Serialize + PartialEq;
    fn status(&self) -> Option<&Self::Status>;
    fn conditions(status: &Self::Status) -> &[Condition];
}

impl HasConditions for Head {
    type Status = HeadStatus;
    fn status(&self) -> Option<&HeadStatus> {
        self.status.as_ref()
    }
    fn conditions(status: &HeadStatus) -> &[Condition] {
        &status.conditions
    }
}

impl HasConditions for ChildA {
    type Status = ChildAStatus;
    fn status(&self) -> Option<&ChildAStatus> {
        self.status.as_ref()
    }
    fn conditions(status: &ChildAStatus) -> &[Condition] {
        &status.conditions
    }
}

pub struct ReconcileContext {
    client: Client,
    trail: Trail,
    events: EventPublisher,
    /// Statuses that were written and that no watch has shown yet. A run before that would write them again, and
    /// publish their Events twice.
    pub(crate) pending_writes: PendingWrites,
    /// The interval at which an object is reconciled without a change.
    pub(crate) resync_interval: Duration,
}

impl ReconcileContext {
    /// Creates the context; the client should be a traced one.
    pub fn new(client: Client, trail: Trail, resync_interval: Duration) -> Self {
        let events = trail.events(client.clone(), labels::FIELD_MANAGER);
        Self { client, trail, events, pending_writes: PendingWrites::default(), resync_interval }
    }

    /// The API of a kind in the namespace of the object.
    pub(crate) fn namespaced_api<K>(&self, object: &impl ResourceExt) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &object.namespace().unwrap_or_default())
    }

    /// Applies a child in a span, whose context is stamped on the child.
    pub(crate) async fn apply_child<P, K>(&self, parent: &P, api: &Api<K>, child: K) -> kube::Result<K>
    where
        P: Resource<DynamicType = ()>,
        K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        self.trail.child(parent).apply(api, labels::FIELD_MANAGER, child).await
    }

    /// Writes the status if it differs: in a span, with a converge span if the object becomes ready. Publishes
    /// an Event for a new reason.
    pub(crate) async fn update_status<K>(&self, object: &K, status: K::Status) -> Result<(), ReconcileError>
    where
        K: HasConditions + Clone + Debug + Serialize + DeserializeOwned,
    {
        if object.status() == Some(&status) {
            let kind = K::kind(&());
            let meta = object.meta();
            tracing::debug!(%kind, namespace = ?meta.namespace, name = ?meta.name, "the status is up to date");
            return Ok(());
        }
        let api = self.namespaced_api::<K>(object);
        let patch = Patch::Merge(json!({"status": status}));
        let written = self.trail.patch_status(&api, object, &PatchParams::default(), &patch).await;
        self.pending_writes.record(&written.map_err(ReconcileError::Status)?, ());
        self.publish_event(object, &status).await;
        Ok(())
    }

    /// Publishes an Event for a new reason; it names the trace. A failure is only logged, as nothing depends on
    /// it.
    async fn publish_event<K: HasConditions>(&self, object: &K, status: &K::Status) {
        let before = object.status().and_then(|status| ready::find_ready_condition(K::conditions(status)));
        let Some(now) = ready::find_ready_condition(K::conditions(status)) else { return };
        if before.is_some_and(|before| before.reason == now.reason) {
            return;
        }
        let event = Event {
            type_: if ready::is_rejection(now) { EventType::Warning } else { EventType::Normal },
            reason: now.reason.clone(),
            note: Some(now.message.clone()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.events.publish(&event, &object.object_ref(&())).await {
            let meta = object.meta();
            tracing::warn!(kind = %K::kind(&()), namespace = meta.namespace, name = meta.name, error = error_chain(&error), "failed to publish an Event");
        }
    }
}

/// The API server's message, if the error will not go away without a change by somebody.
pub(crate) fn rejection_message(error: &kube::Error) -> Option<&str> {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422) => Some(&status.message),
        _ => None,
    }
}

/// The retry after a failure: delayed by half of the time for which the object has not been ready, so that the delays
/// grow, also across restarts. The delay of a ready object is constant: a temporary failure writes no status, so that
/// nothing on the object tells when the failures began.
pub(crate) fn retry_action<K: HasConditions>(object: &K, now: Timestamp) -> Action {
    let ready = object.status().and_then(|status| ready::find_ready_condition(K::conditions(status)));
    let since = match ready {
        Some(ready) if ready.status == "True" => return Action::requeue(READY_RETRY_DELAY),
        Some(ready) => Some(&ready.last_transition_time),
        None => object.meta().creation_timestamp.as_ref(),
    };
    let failing = since.and_then(|since| Duration::try_from(now.duration_since(since.0)).ok()).unwrap_or_default();
    Action::requeue((failing / 2).clamp(MIN_RETRY_DELAY, MAX_RETRY_DELAY))
}
