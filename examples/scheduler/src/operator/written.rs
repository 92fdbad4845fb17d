//! What was written last, since what a watch shows may be older: who acts on that does things twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use kube::ResourceExt;

use crate::api::Scheduler;

/// More than a namespace has; beyond it all are forgotten, which only lets a watch be behind.
const MOST: usize = 1024;

/// The Schedulers that were written, by their uid.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<HashMap<String, Arc<Scheduler>>>);

impl Written {
    /// This was written.
    pub(super) fn note(&self, scheduler: Scheduler) {
        let Some(uid) = scheduler.uid() else { return };
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MOST {
            written.clear();
        }
        written.insert(uid, Arc::new(scheduler));
    }

    /// What was seen, or what was written if that is newer.
    pub(super) fn newer(&self, seen: Arc<Scheduler>) -> Arc<Scheduler> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = seen.uid().and_then(|uid| written.get(&uid).cloned());
        known.filter(|known| revision(known) > revision(&seen)).unwrap_or(seen)
    }
}

/// Revisions are numbers that grow, as Kubernetes says since 1.35. One that is none is older than all.
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
        let written = Written::default();
        let newer = |seen: &str| written.newer(Arc::new(scheduler(seen))).resource_version().unwrap();
        assert_eq!(newer("5"), "5");
        written.note(scheduler("10"));
        assert_eq!([newer("9"), newer("10"), newer("11")], ["10", "10", "11"]);
    }
}
