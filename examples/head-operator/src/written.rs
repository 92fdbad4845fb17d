//! What this process has written and no watch has shown yet.
//!
//! A controller that looks at an object as it was before its own last write would write the same again, with another time in it, and tell of
//! it twice. So it waits for what it wrote to come back. Revisions are compared as the numbers that they are; one that is no number is never
//! waited for.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use kube::Resource;

/// More objects than are written at once in any cluster of this example. What is forgotten costs a repeated write.
const MAX_OBJECTS: usize = 10_000;

/// The newest revision that was written of each object, by its uid.
#[derive(Debug, Default)]
pub struct Written(Mutex<HashMap<String, u64>>);

impl Written {
    /// The API server answered a write with this.
    pub fn note(&self, answer: &impl Resource) {
        let Some((uid, revision)) = identity(answer) else { return };
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if objects.len() >= MAX_OBJECTS {
            objects.clear();
        }
        objects.insert(uid, revision);
    }

    /// Whether something newer was written than this. Then a watch will show it, and there is nothing to do until it does.
    pub fn is_newer_than(&self, seen: &impl Resource) -> bool {
        let Some((uid, revision)) = identity(seen) else { return false };
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = objects.get(&uid).is_some_and(|written| *written > revision);
        if !newer {
            objects.remove(&uid);
        }
        newer
    }
}

fn identity(object: &impl Resource) -> Option<(String, u64)> {
    let meta = object.meta();
    Some((meta.uid.clone()?, meta.resource_version.as_ref()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::Written;
    use crate::api::Head;

    fn head(revision: &str) -> Head {
        let mut head = Head::default();
        head.metadata.uid = Some("uid".into());
        head.metadata.resource_version = Some(revision.into());
        head
    }

    #[test]
    fn what_was_written_is_waited_for_until_it_is_seen() {
        let written = Written::default();
        assert!(!written.is_newer_than(&head("5")));
        written.note(&head("10"));
        assert!(written.is_newer_than(&head("9")));
        assert!(!written.is_newer_than(&head("10")));
        assert!(!written.is_newer_than(&head("9")), "it was seen, and is forgotten");
        written.note(&head("x"));
        assert!(!written.is_newer_than(&head("1")));
    }
}
