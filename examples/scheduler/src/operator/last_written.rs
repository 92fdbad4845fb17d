//! The last written Schedulers. A watch may show an older state, and a reconcile of it would do things twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use kube::ResourceExt;

use crate::api::Scheduler;

/// More Schedulers than a namespace has. At the limit all entries are dropped; then a reconcile may see old
/// state.
const MAX_OBJECTS: usize = 1024;

/// The written Schedulers, by uid.
#[derive(Debug, Default)]
pub(super) struct LastWrittenSchedulers(Mutex<HashMap<String, Arc<Scheduler>>>);

impl LastWrittenSchedulers {
    pub(super) fn record(&self, scheduler: Scheduler) {
        let Some(uid) = scheduler.uid() else { return };
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MAX_OBJECTS {
            written.clear();
        }
        written.insert(uid, Arc::new(scheduler));
    }

    /// The seen object, or the written one if that is newer.
    pub(super) fn latest_of(&self, seen: Arc<Scheduler>) -> Arc<Scheduler> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.uid().and_then(|uid| written.get(&uid).cloned());
        known.filter(|known| revision(known) > revision(&seen)).unwrap_or(seen)
    }
}

/// Revisions are increasing integers, as Kubernetes documents since 1.35. Anything else counts as oldest.
fn revision(scheduler: &Scheduler) -> Option<u128> {
    scheduler.metadata.resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scheduler(revision: &str) -> Scheduler {
        let mut scheduler = Scheduler::new("demo", serde_json::from_value(json!({})).unwrap());
        scheduler.metadata.uid = Some("uid".to_owned());
        scheduler.metadata.resource_version = Some(revision.to_owned());
        scheduler
    }

    #[test]
    fn the_newer_one_counts() {
        let written = LastWrittenSchedulers::default();
        let newer = |seen: &str| written.latest_of(Arc::new(scheduler(seen))).resource_version().unwrap();
        assert_eq!(newer("5"), "5");
        written.record(scheduler("10"));
        assert_eq!([newer("9"), newer("10"), newer("11")], ["10", "10", "11"]);
    }
}
