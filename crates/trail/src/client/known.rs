//! What was seen of the API server, so that a write which changed nothing is known for what it is.
//!
//! *Revisions.* A write that changes something gets a revision that is newer than all before it. An answer whose revision had been seen before the
//! request was sent changed nothing: an apply of the same thing. Revisions are compared as integers, as Kubernetes documents since 1.35, and
//! by resource, as resources may live in different stores; one of which nothing was seen is compared with all others, which is right
//! wherever there is one store.
//!
//! *Shapes.* What an object asks for has not changed while its generation and its labels, annotations, owners and finalizers are the same, whatever else has a newer revision: its status is somebody else's.
//!
//! *Appliers.* Who applies owns fields, with the time of the last change of theirs. While both are as they were and the same is applied again, nothing was changed by it, whatever others have added in between.
//!
//! *Bodies.* A request that is the same as the last one to the same path will probably change nothing. If its answer holds the same as the last one, too, then a newer revision is
//! the work of somebody else who was faster than our watch, and shows in the part of the object that the request does not write; where the watch had shown that work, or nothing
//! of it is left, the request has undone it.

use std::{
    collections::HashMap,
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Paths whose last exchange is remembered, and objects whose revision is; some 40 bytes each.
const MAX_ENTRIES: usize = 100_000;
/// Resources; no cluster has as many.
const MAX_RESOURCES: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Known {
    newest: AtomicU64,
    by_resource: Mutex<HashMap<(String, String), u64>>,
    /// Revisions that watches showed.
    watched: Mutex<HashMap<u64, u64>>,
    /// What is known of an object, from watches and from answers.
    shapes: Mutex<HashMap<u64, Shape>>,
    /// What an applier owns of an object, as a hash, and the revision at which that was so.
    owned: Mutex<HashMap<u64, (u64, u64)>>,
    exchanges: Mutex<HashMap<u64, Exchange>>,
}

/// What an object asks for, as far as its metadata tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    revision: u64,
    generation: i64,
    metadata: u64,
}

impl Shape {
    /// None of an object without a generation, whose metadata says nothing about the rest of it.
    pub(crate) fn of(meta: &ObjectMeta) -> Option<Self> {
        let revision = meta.resource_version.as_ref()?.parse().ok()?;
        let mut hasher = Xxh3::new();
        let mut add = |text: &str| {
            hasher.update(&text.len().to_le_bytes());
            hasher.update(text.as_bytes());
        };
        for map in [&meta.labels, &meta.annotations] {
            add("a map");
            map.iter().flatten().for_each(|(key, value)| {
                add(key);
                add(value);
            });
        }
        add("finalizers");
        meta.finalizers.iter().flatten().for_each(|name| add(name));
        add("owners");
        for owner in meta.owner_references.iter().flatten() {
            let flags =
                [owner.controller, owner.block_owner_deletion].map(|flag| if flag == Some(true) { "1" } else { "0" });
            [&*owner.uid, &owner.name, &owner.kind].into_iter().chain(flags).for_each(&mut add);
        }
        add(if meta.deletion_timestamp.is_some() { "goes" } else { "stays" });
        Some(Self {
            revision,
            generation: meta.generation.filter(|generation| *generation > 0)?,
            metadata: hasher.digest(),
        })
    }

    /// Whether both ask for the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.generation, self.metadata) == (other.generation, other.metadata)
    }
}

/// Who applies, and to which subresource, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Applier(u64);

impl Applier {
    pub(crate) fn new(manager: &str, subresource: Option<&str>) -> Self {
        // No subresource holds a slash.
        Self(xxh3_64(format!("{}/{manager}", subresource.unwrap_or_default()).as_bytes()))
    }

    fn of(entry: &ManagedFieldsEntry) -> Option<Self> {
        let manager = entry.manager.as_deref().filter(|_| entry.operation.as_deref() == Some("Apply"))?;
        Some(Self::new(manager, entry.subresource.as_deref()))
    }

    /// What it owns of an object.
    pub(crate) fn entry(self, meta: &ObjectMeta) -> Option<&ManagedFieldsEntry> {
        meta.managed_fields.iter().flatten().find(|entry| Self::of(entry) == Some(self))
    }

    /// The same, with its time, as a hash.
    pub(crate) fn owns(self, meta: &ObjectMeta) -> Option<u64> {
        self.entry(meta).map(owned)
    }
}

fn owned(entry: &ManagedFieldsEntry) -> u64 {
    let mut hasher = Hashed(Xxh3::new());
    // A hash takes everything.
    let _ = serde_json::to_writer(&mut hasher, &(&entry.time, &entry.fields_v1));
    hasher.0.digest()
}

/// Hashes what is written.
struct Hashed(Xxh3);

impl io::Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The last request to a path that was answered well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    body: u64,
    /// The answer.
    pub(crate) content: Content,
    pub(crate) revision: u64,
}

/// An object as hashes, without what the API server counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// What a request could have changed: its status, or all else.
    pub(crate) own: u64,
    /// What it could not.
    pub(crate) others: u64,
}

impl Known {
    /// A watch showed an object.
    pub(crate) fn watched(&self, group: &str, resource: &str, meta: &ObjectMeta) {
        self.saw(group, resource, meta.resource_version.as_deref());
        let revision = meta.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
        let (Some(revision), Some(name)) = (revision, &meta.name) else { return };
        insert(&mut lock(&self.watched), object(group, resource, meta.namespace.as_deref(), name), revision);
        self.shaped(group, resource, meta);
    }

    /// A watch or an answer told what an object is. What is older than what is known says nothing.
    pub(crate) fn shaped(&self, group: &str, resource: &str, meta: &ObjectMeta) {
        let Some(name) = &meta.name else { return };
        let key = object(group, resource, meta.namespace.as_deref(), name);
        self.see_owned(key, meta);
        let (Some(shape), mut shapes) = (Shape::of(meta), lock(&self.shapes)) else { return };
        if shapes.get(&key).is_none_or(|known| known.revision <= shape.revision) {
            insert(&mut shapes, key, shape);
        }
    }

    fn see_owned(&self, object: u64, meta: &ObjectMeta) {
        let Some(revision) = meta.resource_version.as_ref().and_then(|text| text.parse().ok()) else { return };
        for entry in meta.managed_fields.iter().flatten() {
            let Some(Applier(applier)) = Applier::of(entry) else { continue };
            let (key, own, mut all) = (object ^ applier, owned(entry), lock(&self.owned));
            if all.get(&key).is_none_or(|(known, _)| *known <= revision) {
                insert(&mut all, key, (revision, own));
            }
        }
    }

    /// What an applier owned of an object when that was seen last.
    pub(crate) fn owned(
        &self,
        group: &str,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
        applier: Applier,
    ) -> Option<u64> {
        let key = object(group, resource, namespace, name) ^ applier.0;
        lock(&self.owned).get(&key).map(|(_, own)| *own)
    }

    /// What is known of an object.
    pub(crate) fn shape(&self, group: &str, resource: &str, namespace: Option<&str>, name: &str) -> Option<Shape> {
        lock(&self.shapes).get(&object(group, resource, namespace, name)).copied()
    }

    /// The revision of an object that a watch showed last.
    pub(crate) fn shown(&self, group: &str, resource: &str, namespace: Option<&str>, name: &str) -> Option<u64> {
        lock(&self.watched).get(&object(group, resource, namespace, name)).copied()
    }

    /// Something of this revision was seen.
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

    /// The last exchange at this path, if the request had the same body.
    pub(crate) fn repeats(&self, path: &str, body: &[u8]) -> Option<Exchange> {
        let last = lock(&self.exchanges).get(&xxh3_64(path.as_bytes())).copied();
        last.filter(|last| last.body == xxh3_64(body))
    }

    /// A request was answered well.
    pub(crate) fn answered(&self, path: &str, body: &[u8], content: Content, revision: u64) {
        let exchange = Exchange { body: xxh3_64(body), content, revision };
        insert(&mut lock(&self.exchanges), xxh3_64(path.as_bytes()), exchange);
    }

    /// A request was refused.
    pub(crate) fn refused(&self, path: &str) {
        lock(&self.exchanges).remove(&xxh3_64(path.as_bytes()));
    }
}

fn object(group: &str, resource: &str, namespace: Option<&str>, name: &str) -> u64 {
    // No part of it can hold a slash.
    xxh3_64(format!("{group}/{resource}/{}/{name}", namespace.unwrap_or_default()).as_bytes())
}

fn insert<V>(map: &mut HashMap<u64, V>, key: u64, value: V) {
    if map.len() >= MAX_ENTRIES
        && !map.contains_key(&key)
        && let Some(any) = map.keys().next().copied()
    {
        map.remove(&any);
    }
    map.insert(key, value);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::{Content, Known, Shape};

    fn meta(revision: u64, generation: i64, label: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some("a".to_owned()),
            namespace: Some("n".to_owned()),
            resource_version: Some(revision.to_string()),
            generation: Some(generation),
            labels: Some([("label".to_owned(), label.to_owned())].into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_shape_is_the_newest_and_changes_with_what_is_asked_for() {
        let shape = |meta: &ObjectMeta| Shape::of(meta).unwrap();
        assert!(shape(&meta(5, 1, "x")).is_same(&shape(&meta(6, 1, "x"))));
        assert!(!shape(&meta(5, 1, "x")).is_same(&shape(&meta(6, 2, "x"))));
        assert!(!shape(&meta(5, 1, "x")).is_same(&shape(&meta(6, 1, "y"))));
        assert!(Shape::of(&ObjectMeta { generation: None, ..meta(5, 1, "x") }).is_none());
        let known = Known::default();
        known.shaped("apps", "deployments", &meta(6, 2, "x"));
        known.watched("apps", "deployments", &meta(5, 1, "x"));
        assert_eq!(known.shape("apps", "deployments", Some("n"), "a"), Shape::of(&meta(6, 2, "x")));
    }

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
    fn a_body_repeats_until_a_request_is_refused() {
        let known = Known::default();
        assert_eq!(known.repeats("/a", b"x"), None);
        known.answered("/a", b"x", Content { own: 1, others: 2 }, 7);
        assert!(known.repeats("/a", b"x").is_some_and(|last| last.revision == 7));
        assert!(known.repeats("/a", b"y").is_none() && known.repeats("/b", b"x").is_none());
        known.refused("/a");
        assert!(known.repeats("/a", b"x").is_none());
    }

    #[test]
    fn what_watches_show_is_known_by_object() {
        let known = Known::default();
        known.watched("apps", "deployments", &meta(5, 1, "x"));
        assert_eq!(known.shown("apps", "deployments", Some("n"), "a"), Some(5));
        assert_eq!(known.shown("apps", "deployments", None, "a"), None);
        assert_eq!(known.newest("apps", "deployments"), 5);
    }
}
