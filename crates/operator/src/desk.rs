//! What the last look at each pipeline found. In memory, filled again after a restart.
//!
//! A pipeline that was valid once and is not now, be it that its Secret is gone, is on the desk with what it was: what runs goes on.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kubewake_api::{Problem, Resolved, Signal, Valid};
use tokio::sync::watch;

use crate::lock::Slot;

/// How often it is looked whether somebody who is awaited is gone.
const GLANCE: Duration = Duration::from_millis(100);

/// A pipeline among all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// What flows through it, and so its kind.
    pub signal: Signal,
    /// Its name.
    pub name: String,
}

/// `traces/backend`, as it is called in documents.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.signal, self.name)
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The pipeline as an owner of what is made for it.
    pub owner: OwnerReference,
    /// As it may be rendered: as it is, or as it was when it was valid the last time.
    pub valid: Option<Arc<Valid>>,
    /// What is wrong with it as it is.
    pub problems: Vec<Problem>,
    /// Whether it holds a slot; nothing, if it never had reason to ask for one.
    pub slot: Option<Slot>,
    /// What it was checked with: the generation, and what it names.
    pub checked: Option<(i64, Arc<Resolved>)>,
}

impl Entry {
    /// What a check would say again, as the same is asked. What depends on the time is always asked.
    pub fn again(&self, generation: i64, resolved: &Resolved) -> Option<Arc<Valid>> {
        let valid = self.valid.as_ref().filter(|valid| self.problems.is_empty() && valid.expires().is_none())?;
        let (of, with) = self.checked.as_ref()?;
        (*of == generation && **with == *resolved).then(|| Arc::clone(valid))
    }
}

/// What was found of all pipelines.
#[derive(Debug)]
pub struct Desk {
    entries: Mutex<BTreeMap<Id, Arc<Entry>>>,
    changes: watch::Sender<u64>,
}

impl Default for Desk {
    fn default() -> Self {
        Self { entries: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl Desk {
    /// Notes what was found of a pipeline.
    pub fn put(&self, id: Id, entry: Entry) {
        self.entries().insert(id, Arc::new(entry));
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// What was found of the pipeline of this uid.
    pub fn get(&self, id: &Id, uid: &str) -> Option<Arc<Entry>> {
        self.entries().get(id).filter(|entry| entry.owner.uid == uid).cloned()
    }

    /// All that is on the desk, after what is no pipeline any more was taken from it.
    pub fn of(&self, present: impl FnOnce() -> BTreeMap<Id, String>) -> BTreeMap<Id, Arc<Entry>> {
        let mut entries = self.entries();
        // Asked while nothing can be put here: a pipeline is there before it is looked at.
        let present = present();
        entries.retain(|id, entry| present.get(id) == Some(&entry.owner.uid));
        entries.clone()
    }

    /// Waits until all that are present were looked at. They may come and go meanwhile.
    pub async fn complete(&self, present: impl Fn() -> BTreeMap<Id, String>) {
        let mut changes = self.changes.subscribe();
        loop {
            changes.mark_unchanged();
            let missing = |(id, uid): (&Id, &String)| self.get(id, uid).is_none();
            if !present().iter().any(missing) {
                return;
            }
            // A pipeline that was deleted before anybody looked at it changes nothing here.
            let _ = tokio::time::timeout(GLANCE, changes.changed()).await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Id, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
