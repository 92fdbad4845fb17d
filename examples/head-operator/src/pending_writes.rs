//! Writes of this process that no watch has shown yet.
//!
//! A reconcile with an object from before its own last write would write the same status again with another
//! time, and publish the Event twice. So the controller waits until the watch shows the write. Revisions are
//! compared as integers; a revision that is not an integer is never waited for.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use kube::Resource;

/// More objects than this example ever writes at once. A forgotten entry costs a repeated write.
const MAX_OBJECTS: usize = 10_000;

/// The newest written revision of each object, by uid.
#[derive(Debug, Default)]
pub struct PendingWrites(Mutex<HashMap<String, u64>>);

impl PendingWrites {
    /// Records the response to a write.
    pub fn record(&self, answer: &impl Resource) {
        let Some((uid, revision)) = uid_and_revision(answer) else { return };
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if objects.len() >= MAX_OBJECTS {
            objects.clear();
        }
        objects.insert(uid, revision);
    }

    /// Whether a newer revision than this one was written. Then a watch will show it, and there is nothing to
    /// do until then.
    pub fn has_newer_than(&self, seen: &impl Resource) -> bool {
        let Some((uid, revision)) = uid_and_revision(seen) else { return false };
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = objects.get(&uid).is_some_and(|written| *written > revision);
        if !newer {
            objects.remove(&uid);
        }
        newer
    }
}

fn uid_and_revision(object: &impl Resource) -> Option<(String, u64)> {
    let meta = object.meta();
    Some((meta.uid.clone()?, meta.resource_version.as_ref()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::PendingWrites;
    use crate::api::Head;

    fn head(revision: &str) -> Head {
        let mut head = Head::default();
        head.metadata.uid = Some("uid".into());
        head.metadata.resource_version = Some(revision.into());
        head
    }

    #[test]
    fn what_was_written_is_waited_for_until_it_is_seen() {
        let written = PendingWrites::default();
        assert!(!written.has_newer_than(&head("5")));
        written.record(&head("10"));
        assert!(written.has_newer_than(&head("9")));
        assert!(!written.has_newer_than(&head("10")));
        assert!(!written.has_newer_than(&head("9")), "it was seen, and is forgotten");
        written.record(&head("x"));
        assert!(!written.has_newer_than(&head("1")));
    }
}
