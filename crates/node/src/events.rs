//! Events: what `kubectl describe` and `kubectl get events` tell of an object.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// Writes the events of one component. Clones share what they know of earlier events, so that repetitions are counted.
#[derive(Clone)]
pub struct Events(Recorder);

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}

impl Events {
    /// Of this component (`deployment-controller`, `kubelet`), on this node if it is one of a node.
    pub fn new(client: Client, component: &str, node: Option<&str>) -> Self {
        let reporter = Reporter { controller: component.to_owned(), instance: node.map(str::to_owned) };
        Self(Recorder::new(client, reporter))
    }

    /// Something happened as it should.
    pub fn normal(&self, about: ObjectReference, reason: &str, note: impl Into<String>) {
        self.publish(about, EventType::Normal, reason, note.into());
    }

    /// Something is wrong.
    pub fn warning(&self, about: ObjectReference, reason: &str, note: impl Into<String>) {
        self.publish(about, EventType::Warning, reason, note.into());
    }

    /// Nobody waits for an event, and nothing depends on one.
    fn publish(&self, about: ObjectReference, type_: EventType, reason: &str, note: String) {
        let recorder = self.0.clone();
        let event =
            Event { type_, reason: reason.to_owned(), note: Some(note), action: reason.to_owned(), secondary: None };
        tokio::spawn(async move {
            if let Err(error) = recorder.publish(&event, &about).await {
                tracing::debug!(reason = event.reason, %error, "an event is lost");
            }
        });
    }
}
