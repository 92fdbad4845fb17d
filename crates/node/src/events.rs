//! Events: what `kubectl describe` and `kubectl get events` tell of an object.
//!
//! *Guarantees.* Events of one component are written in the order in which they happened. What happens again is
//! counted, and who talks too much is cut short: see [`correlate`]. *Not done*: nobody waits for an event, nothing depends on
//! one, and one that cannot be written is lost.

pub mod correlate;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    time::Instant,
};

use self::correlate::{Correlator, Known, Told, Write};
use crate::error::{Error, Result};

/// Events that wait to be written. More than a burst of one component; what comes beyond is lost.
const WAITING: usize = 1000;

/// What the API allows to notes of new events, in bytes.
const LONGEST_NOTE: usize = 1024;

/// Writes the events of one component. Clones share what they know of earlier events.
#[derive(Clone, Debug)]
pub struct Events(Sender<Told>);

impl Events {
    /// Of this component (`deployment-controller`, `kubelet`), on this node if it is one of a node. It must be called within the
    /// runtime.
    pub fn new(client: Client, component: &str, node: Option<&str>) -> Self {
        let (to, waiting) = mpsc::channel(WAITING);
        let source = EventSource { component: Some(component.to_owned()), host: node.map(str::to_owned) };
        tokio::spawn(Writer { client, source }.run(waiting));
        Self(to)
    }

    /// Something happened as it should.
    pub fn normal(&self, about: ObjectReference, reason: &str, note: impl Into<String>) {
        self.publish(about, "Normal", reason, note.into());
    }

    /// Something is wrong.
    pub fn warning(&self, about: ObjectReference, reason: &str, note: impl Into<String>) {
        self.publish(about, "Warning", reason, note.into());
    }

    fn publish(&self, about: ObjectReference, kind: &'static str, reason: &str, mut note: String) {
        note.truncate(note.floor_char_boundary(LONGEST_NOTE));
        if self.0.try_send(Told { about, kind, reason: reason.to_owned(), note }).is_err() {
            tracing::debug!(reason, "an event is lost: too many wait");
        }
    }
}

struct Writer {
    client: Client,
    source: EventSource,
}

impl Writer {
    async fn run(self, mut waiting: Receiver<Told>) {
        let mut correlator = Correlator::default();
        while let Some(told) = waiting.recv().await {
            let Some((key, write)) = correlator.see(told, Instant::now()) else { continue };
            match self.write(write).await {
                Ok(known) => correlator.know(key, known),
                Err(error) => tracing::debug!(component = self.source.component, %error, "an event is lost"),
            }
        }
    }

    async fn write(&self, write: Write) -> Result<Known> {
        let (told, known) = match write {
            Write::Again(told, known) => (told, known),
            Write::New(told) => return self.create(told).await,
        };
        match self.count(&told, &known).await {
            Err(error) if error.is_not_found() => self.create(told).await,
            outcome => outcome,
        }
    }

    fn api(&self, about: &ObjectReference) -> Api<Event> {
        Api::namespaced(self.client.clone(), namespace(about))
    }

    async fn create(&self, told: Told) -> Result<Known> {
        let (api, now) = (self.api(&told.about), Timestamp::now());
        let name = format!("{}.{:x}", told.about.name.as_deref().unwrap_or_default(), now.as_nanosecond());
        let metadata = ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(namespace(&told.about).to_owned()),
            ..ObjectMeta::default()
        };
        let event = Event {
            metadata,
            involved_object: told.about,
            type_: Some(told.kind.to_owned()),
            reason: Some(told.reason),
            message: Some(told.note),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            reporting_component: self.source.component.clone(),
            reporting_instance: self.source.host.clone(),
            source: Some(self.source.clone()),
            ..Event::default()
        };
        api.create(&PostParams::default(), &event).await?;
        Ok(Known { name, count: 1 })
    }

    async fn count(&self, told: &Told, known: &Known) -> Result<Known> {
        let count = known.count.saturating_add(1);
        let patch = json!({"count": count, "lastTimestamp": Time(Timestamp::now()), "message": told.note});
        let api = self.api(&told.about);
        api.patch(&known.name, &PatchParams::default(), &Patch::Merge(patch)).await.map_err(Error::from)?;
        Ok(Known { name: known.name.clone(), count })
    }
}

/// Events of what stands in no namespace are in `default`.
fn namespace(about: &ObjectReference) -> &str {
    about.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default")
}

#[cfg(test)]
mod tests;
