//! Events: what `kubectl describe` and `kubectl get events` tell of an object.
//!
//! They are client-go's: what is said again of the same object is counted and not written again, and who says too much of one object is
//! not heard for a while. *Guarantees.* Events of one component are written in the order in which things happened. Nobody waits
//! for an event, and nothing depends on one: if the API server is slow, some are lost.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::error::Error;

/// As many may wait to be written.
const WAITING: usize = 1024;
/// The API server takes no longer text.
const LONGEST: usize = 1024;
/// For so long it is known what was said: client-go's ten minutes, in which similar events count as the same.
const KNOWN: Duration = Duration::from_secs(600);
/// So much may be said of one object at once, and after that as often as this: client-go's numbers.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);

/// Writes the events of one component. Clones write for the same one.
#[derive(Clone, Debug)]
pub struct Events(mpsc::Sender<Said>);

/// What somebody said, and when.
#[derive(Debug)]
struct Said {
    at: Timestamp,
    what: What,
}

/// The same is not written twice.
#[derive(Clone, Debug, PartialEq)]
struct What {
    about: ObjectReference,
    kind: &'static str,
    reason: String,
    note: String,
}

impl Events {
    /// Of this component (`deployment-controller`, `kubelet`), on this node if it is one of a node. It must be called within a
    /// runtime.
    pub fn new(client: Client, component: &str, node: Option<&str>) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        let writer = Writer {
            client,
            component: component.to_owned(),
            host: node.map(str::to_owned),
            written: HashMap::new(),
            budgets: HashMap::new(),
            swept: Instant::now(),
        };
        tokio::spawn(writer.run(receiver));
        Self(sender)
    }

    /// Something happened as it should.
    pub fn normal(&self, about: ObjectReference, reason: &str, note: impl Into<String>) {
        self.say(about, "Normal", reason, note.into());
    }

    /// Something is wrong.
    pub fn warning(&self, about: ObjectReference, reason: &str, note: impl Into<String>) {
        self.say(about, "Warning", reason, note.into());
    }

    fn say(&self, mut about: ObjectReference, kind: &'static str, reason: &str, mut note: String) {
        note.truncate(note.floor_char_boundary(LONGEST));
        // The same is said of the object whatever became of it in between.
        about.resource_version = None;
        let what = What { about, kind, reason: reason.to_owned(), note };
        if self.0.try_send(Said { at: Timestamp::now(), what }).is_err() {
            tracing::debug!(reason, "an event is lost: too many wait");
        }
    }
}

/// What was written.
struct Written {
    what: What,
    name: String,
    count: i32,
    at: Instant,
}

struct Writer {
    client: Client,
    component: String,
    host: Option<String>,
    /// By the uid of the object.
    written: HashMap<String, Vec<Written>>,
    budgets: HashMap<String, Budget>,
    /// When the old was last forgotten.
    swept: Instant,
}

impl Writer {
    /// Until nobody can say anything any more.
    async fn run(mut self, mut said: mpsc::Receiver<Said>) {
        while let Some(Said { at, what }) = said.recv().await {
            self.forget_old();
            let uid = what.about.uid.clone().unwrap_or_default();
            if !self.budgets.entry(uid).or_insert_with(Budget::new).take(Instant::now()) {
                tracing::debug!(reason = what.reason, "an event is lost: too much is said of the object");
                continue;
            }
            let reason = what.reason.clone();
            if let Err(error) = self.write(at, what).await {
                tracing::debug!(reason, %error, "an event is lost");
            }
        }
    }

    async fn write(&mut self, at: Timestamp, what: What) -> Result<(), Error> {
        let namespace = what.about.namespace.clone().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let api = Api::<Event>::namespaced(self.client.clone(), &namespace);
        let uid = what.about.uid.clone().unwrap_or_default();
        let written = self.written.entry(uid).or_default();
        if let Some(before) = written.iter_mut().find(|before| before.what == what) {
            before.count += 1;
            before.at = Instant::now();
            let patch = Patch::Merge(json!({ "count": before.count, "lastTimestamp": Time(at) }));
            match api.patch(&before.name, &PatchParams::default(), &patch).await.map_err(Error::from) {
                Err(error) if error.is_not_found() => {}
                other => return other.map(drop),
            }
            written.retain(|before| before.what != what);
        }
        let event = event(&self.component, self.host.as_deref(), &namespace, at, &what);
        let name = event.name_any();
        api.create(&PostParams::default(), &event).await?;
        written.push(Written { what, name, count: 1, at: Instant::now() });
        Ok(())
    }

    fn forget_old(&mut self) {
        if self.swept.elapsed() < KNOWN / 10 {
            return;
        }
        self.swept = Instant::now();
        self.written.retain(|_, written| {
            written.retain(|written| written.at.elapsed() < KNOWN);
            !written.is_empty()
        });
        self.budgets.retain(|_, budget| !budget.is_full(Instant::now()));
    }
}

fn event(component: &str, host: Option<&str>, namespace: &str, at: Timestamp, what: &What) -> Event {
    let name = what.about.name.as_deref().unwrap_or(component);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{:x}", at.as_nanosecond())),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: what.about.clone(),
        type_: Some(what.kind.to_owned()),
        reason: Some(what.reason.clone()),
        message: Some(what.note.clone()),
        source: Some(EventSource { component: Some(component.to_owned()), host: host.map(str::to_owned) }),
        reporting_component: Some(component.to_owned()),
        reporting_instance: Some(host.unwrap_or_default().to_owned()),
        first_timestamp: Some(Time(at)),
        last_timestamp: Some(Time(at)),
        count: Some(1),
        ..Event::default()
    }
}

/// How much may still be said of an object.
#[derive(Debug)]
struct Budget {
    left: f64,
    at: Instant,
}

impl Budget {
    fn new() -> Self {
        Self { left: BURST, at: Instant::now() }
    }

    fn take(&mut self, now: Instant) -> bool {
        (self.left, self.at) = (self.now(now), now);
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }

    fn is_full(&self, now: Instant) -> bool {
        self.now(now) >= BURST
    }

    fn now(&self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at);
        (self.left + passed.as_secs_f64() / REFILL.as_secs_f64()).min(BURST)
    }
}

#[cfg(test)]
mod tests;
