//! What was seen of the API server, so that a write which changed nothing is known for what it is.
//!
//! *Revisions.* A write that changes something gets a revision that is newer than all before it. An answer whose revision had been seen before the
//! request was sent changed nothing: an apply of the same thing. Revisions are compared as integers, as Kubernetes documents since 1.35, and
//! by resource, as resources may live in different stores; one of which nothing was seen is compared with all others, which is right
//! wherever there is one store.
//!
//! *Bodies.* A request that is the same as the last one to the same path will probably change nothing.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use xxhash_rust::xxh3::xxh3_64;

/// Paths whose last body is remembered, 16 bytes each.
const MAX_BODIES: usize = 100_000;
/// Resources; no cluster has as many.
const MAX_RESOURCES: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Known {
    newest: AtomicU64,
    by_resource: Mutex<HashMap<(String, String), u64>>,
    bodies: Mutex<HashMap<u64, u64>>,
}

impl Known {
    /// An object, or an answer, of this revision was seen.
    pub(crate) fn saw(&self, group: &str, resource: &str, revision: Option<&str>) {
        let Some(revision) = revision.and_then(|text| text.parse::<u64>().ok()) else { return };
        let mut resources = lock(&self.by_resource);
        // Looking by reference would take a key type of its own.
        let key = (group.to_owned(), resource.to_owned());
        if let Some(known) = resources.get_mut(&key) {
            *known = revision.max(*known);
        } else if resources.len() < MAX_RESOURCES {
            resources.insert(key, revision);
        }
        drop(resources);
        // Events often live in a store of their own.
        if resource != "events" {
            self.newest.fetch_max(revision, Ordering::Relaxed);
        }
    }

    /// The newest revision that was seen.
    pub(crate) fn newest(&self, group: &str, resource: &str) -> u64 {
        let own = lock(&self.by_resource).get(&(group.to_owned(), resource.to_owned())).copied();
        own.unwrap_or_else(|| self.newest.load(Ordering::Relaxed))
    }

    /// Whether the last request to this path that was answered well had the same body.
    pub(crate) fn repeats(&self, path: &str, body: &[u8]) -> bool {
        lock(&self.bodies).get(&xxh3_64(path.as_bytes())) == Some(&xxh3_64(body))
    }

    /// A request was answered, well or not.
    pub(crate) fn answered(&self, path: &str, body: &[u8], well: bool) {
        let path = xxh3_64(path.as_bytes());
        let mut bodies = lock(&self.bodies);
        if !well {
            bodies.remove(&path);
            return;
        }
        if bodies.len() >= MAX_BODIES
            && !bodies.contains_key(&path)
            && let Some(any) = bodies.keys().next().copied()
        {
            bodies.remove(&any);
        }
        bodies.insert(path, xxh3_64(body));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::Known;

    #[test]
    fn revisions_are_known_by_resource_and_else_by_all() {
        let known = Known::default();
        assert_eq!(known.newest("", "pods"), 0);
        known.saw("", "pods", Some("12"));
        known.saw("", "pods", Some("7"));
        known.saw("", "events", Some("900"));
        known.saw("", "pods", Some("not a number"));
        known.saw("", "pods", None);
        assert_eq!((known.newest("", "pods"), known.newest("apps", "deployments")), (12, 12));
        assert_eq!(known.newest("", "events"), 900);
    }

    #[test]
    fn a_body_repeats_until_a_request_fails() {
        let known = Known::default();
        assert!(!known.repeats("/a", b"x"));
        known.answered("/a", b"x", true);
        assert!(known.repeats("/a", b"x") && !known.repeats("/a", b"y") && !known.repeats("/b", b"x"));
        known.answered("/a", b"x", false);
        assert!(!known.repeats("/a", b"x"));
    }
}
