//! The state of objects as watches and responses showed it, to recognize a write that changed nothing.
//!
//! *Revisions.* A write that changes something gets a newer revision than all writes before it. A response
//! whose revision was seen before its request was sent belongs to a write that changed nothing, such as a
//! repeated apply. Revisions are compared as integers, as Kubernetes documents since 1.35. They are compared by
//! resource, as resources may be in different stores; a resource of which no revision was seen is compared with
//! all others, which is right wherever there is one store.
//!
//! *Fingerprints.* The desired state of an object is unchanged while its generation, labels, annotations,
//! owners and finalizers are the same. A newer revision is then a status written by somebody else.
//!
//! *Appliers.* A field manager that applies owns a set of fields, with the time of its last change. While both
//! are unchanged and the same body is applied again, that apply changed nothing, whatever other writers have
//! changed in between.
//!
//! *Exchanges.* A request with the same body as the last one to the same path will probably change nothing. If
//! its response has the same content as the last one, too, then a newer revision is the work of another writer
//! that our watch has not shown yet, and it is visible in the part of the object that the request does not
//! write. Where the watch had shown that work, or the part is unchanged, the request has undone the work.

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

/// Bound of each table of paths or objects; an entry takes about 40 bytes.
const MAX_ENTRIES: usize = 100_000;
/// Bound of the table of resources; no cluster has as many.
const MAX_RESOURCES: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct WriteHistory {
    newest: AtomicU64,
    by_resource: Mutex<HashMap<(String, String), u64>>,
    /// The revision of each object that a watch showed last.
    watched: Mutex<HashMap<u64, u64>>,
    /// The last known fingerprint of each object, from watches and responses.
    fingerprints: Mutex<HashMap<u64, SpecFingerprint>>,
    /// The fields that an applier owns of an object, as a hash, with the revision at which they were seen.
    owned: Mutex<HashMap<u64, (u64, u64)>>,
    exchanges: Mutex<HashMap<u64, WriteExchange>>,
}

/// The desired state of an object, as far as its metadata shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpecFingerprint {
    revision: u64,
    generation: i64,
    metadata: u64,
}

impl SpecFingerprint {
    /// None for an object without a generation: its metadata says nothing about the rest of it.
    pub(crate) fn from_meta(meta: &ObjectMeta) -> Option<Self> {
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

    /// Whether both have the same desired state.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.generation, self.metadata) == (other.generation, other.metadata)
    }
}

/// A field manager that applies, together with the subresource, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ApplierId(u64);

impl ApplierId {
    pub(crate) fn new(manager: &str, subresource: Option<&str>) -> Self {
        // No subresource contains a slash.
        Self(xxh3_64(format!("{}/{manager}", subresource.unwrap_or_default()).as_bytes()))
    }

    fn from_entry(entry: &ManagedFieldsEntry) -> Option<Self> {
        let manager = entry.manager.as_deref().filter(|_| entry.operation.as_deref() == Some("Apply"))?;
        Some(Self::new(manager, entry.subresource.as_deref()))
    }

    /// The `managedFields` entry of this applier.
    pub(crate) fn managed_fields_entry(self, meta: &ObjectMeta) -> Option<&ManagedFieldsEntry> {
        meta.managed_fields.iter().flatten().find(|entry| Self::from_entry(entry) == Some(self))
    }

    /// The hash of that entry, including its time.
    pub(crate) fn owned_fields_hash(self, meta: &ObjectMeta) -> Option<u64> {
        self.managed_fields_entry(meta).map(managed_fields_hash)
    }
}

fn managed_fields_hash(entry: &ManagedFieldsEntry) -> u64 {
    let mut hasher = HashWriter(Xxh3::new());
    // Writing to a hasher cannot fail.
    let _ = serde_json::to_writer(&mut hasher, &(&entry.time, &entry.fields_v1));
    hasher.0.digest()
}

/// A writer that hashes its input.
struct HashWriter(Xxh3);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The last successful request to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteExchange {
    body: u64,
    /// The content of the response.
    pub(crate) content: ContentHashes,
    pub(crate) revision: u64,
}

/// Hashes of an object without the fields that the API server counts up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentHashes {
    /// The part that the request may change: the status, or everything else.
    pub(crate) own: u64,
    /// The part that the request cannot change.
    pub(crate) others: u64,
}

impl WriteHistory {
    /// Records an object that a watch showed.
    pub(crate) fn record_watched(&self, group: &str, resource: &str, meta: &ObjectMeta) {
        self.record_revision(group, resource, meta.resource_version.as_deref());
        let revision = meta.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
        let (Some(revision), Some(name)) = (revision, &meta.name) else { return };
        insert_bounded(
            &mut lock(&self.watched),
            object_hash(group, resource, meta.namespace.as_deref(), name),
            revision,
        );
        self.record_fingerprint(group, resource, meta);
    }

    /// Records an object from a watch or a response. A state older than the recorded one is ignored.
    pub(crate) fn record_fingerprint(&self, group: &str, resource: &str, meta: &ObjectMeta) {
        let Some(name) = &meta.name else { return };
        let key = object_hash(group, resource, meta.namespace.as_deref(), name);
        self.record_owned_fields(key, meta);
        let (Some(shape), mut shapes) = (SpecFingerprint::from_meta(meta), lock(&self.fingerprints)) else { return };
        if shapes.get(&key).is_none_or(|known| known.revision <= shape.revision) {
            insert_bounded(&mut shapes, key, shape);
        }
    }

    fn record_owned_fields(&self, object: u64, meta: &ObjectMeta) {
        let Some(revision) = meta.resource_version.as_ref().and_then(|text| text.parse().ok()) else { return };
        for entry in meta.managed_fields.iter().flatten() {
            let Some(ApplierId(applier)) = ApplierId::from_entry(entry) else { continue };
            let key = object ^ applier;
            let own = managed_fields_hash(entry);
            let mut all = lock(&self.owned);
            if all.get(&key).is_none_or(|(known, _)| *known <= revision) {
                insert_bounded(&mut all, key, (revision, own));
            }
        }
    }

    /// The last known hash of the fields that an applier owns of an object.
    pub(crate) fn owned_fields(
        &self,
        group: &str,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
        applier: ApplierId,
    ) -> Option<u64> {
        let key = object_hash(group, resource, namespace, name) ^ applier.0;
        lock(&self.owned).get(&key).map(|(_, own)| *own)
    }

    /// The last known fingerprint of an object.
    pub(crate) fn fingerprint(
        &self,
        group: &str,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<SpecFingerprint> {
        lock(&self.fingerprints).get(&object_hash(group, resource, namespace, name)).copied()
    }

    /// The revision of an object that a watch showed last.
    pub(crate) fn watched_revision(
        &self,
        group: &str,
        resource: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<u64> {
        lock(&self.watched).get(&object_hash(group, resource, namespace, name)).copied()
    }

    /// Records that a revision was seen.
    pub(crate) fn record_revision(&self, group: &str, resource: &str, revision: Option<&str>) {
        let Some(revision) = revision.and_then(|text| text.parse::<u64>().ok()) else { return };
        let mut resources = lock(&self.by_resource);
        // A lookup without allocation would need a key type of its own.
        let key = (group.to_owned(), resource.to_owned());
        if let Some(known) = resources.get_mut(&key) {
            *known = revision.max(*known);
        } else if resources.len() < MAX_RESOURCES {
            resources.insert(key, revision);
        }
        drop(resources);
        // Events are often in a store of their own.
        if resource != "events" {
            self.newest.fetch_max(revision, Ordering::Relaxed);
        }
    }

    /// The newest revision of the resource; of all resources where none of this one was seen.
    pub(crate) fn newest_revision(&self, group: &str, resource: &str) -> u64 {
        let own = lock(&self.by_resource).get(&(group.to_owned(), resource.to_owned())).copied();
        own.unwrap_or_else(|| self.newest.load(Ordering::Relaxed))
    }

    /// The last exchange at this path, if its request had the same body.
    pub(crate) fn repeated_exchange(&self, path: &str, body: &[u8]) -> Option<WriteExchange> {
        let last = lock(&self.exchanges).get(&xxh3_64(path.as_bytes())).copied();
        last.filter(|last| last.body == xxh3_64(body))
    }

    /// Records a successful request.
    pub(crate) fn record_exchange(&self, path: &str, body: &[u8], content: ContentHashes, revision: u64) {
        let exchange = WriteExchange { body: xxh3_64(body), content, revision };
        insert_bounded(&mut lock(&self.exchanges), xxh3_64(path.as_bytes()), exchange);
    }

    /// Forgets the last exchange at a path after a refused request.
    pub(crate) fn forget_exchange(&self, path: &str) {
        lock(&self.exchanges).remove(&xxh3_64(path.as_bytes()));
    }
}

fn object_hash(group: &str, resource: &str, namespace: Option<&str>, name: &str) -> u64 {
    // No part contains a slash.
    xxh3_64(format!("{group}/{resource}/{}/{name}", namespace.unwrap_or_default()).as_bytes())
}

fn insert_bounded<V>(map: &mut HashMap<u64, V>, key: u64, value: V) {
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

    use super::{ContentHashes, SpecFingerprint, WriteHistory};

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
        let shape = |meta: &ObjectMeta| SpecFingerprint::from_meta(meta).unwrap();
        assert!(shape(&meta(5, 1, "x")).is_same(&shape(&meta(6, 1, "x"))));
        assert!(!shape(&meta(5, 1, "x")).is_same(&shape(&meta(6, 2, "x"))));
        assert!(!shape(&meta(5, 1, "x")).is_same(&shape(&meta(6, 1, "y"))));
        assert!(SpecFingerprint::from_meta(&ObjectMeta { generation: None, ..meta(5, 1, "x") }).is_none());
        let known = WriteHistory::default();
        known.record_fingerprint("apps", "deployments", &meta(6, 2, "x"));
        known.record_watched("apps", "deployments", &meta(5, 1, "x"));
        assert_eq!(
            known.fingerprint("apps", "deployments", Some("n"), "a"),
            SpecFingerprint::from_meta(&meta(6, 2, "x"))
        );
    }

    #[test]
    fn revisions_are_known_by_resource_and_else_by_all() {
        let known = WriteHistory::default();
        assert_eq!(known.newest_revision("", "pods"), 0);
        known.record_revision("", "pods", Some("12"));
        known.record_revision("", "pods", Some("7"));
        known.record_revision("", "events", Some("900"));
        known.record_revision("", "pods", Some("not a number"));
        known.record_revision("", "pods", None);
        assert_eq!((known.newest_revision("", "pods"), known.newest_revision("apps", "deployments")), (12, 12));
        assert_eq!(known.newest_revision("", "events"), 900);
    }

    #[test]
    fn a_body_repeats_until_a_request_is_refused() {
        let known = WriteHistory::default();
        assert_eq!(known.repeated_exchange("/a", b"x"), None);
        known.record_exchange("/a", b"x", ContentHashes { own: 1, others: 2 }, 7);
        assert!(known.repeated_exchange("/a", b"x").is_some_and(|last| last.revision == 7));
        assert!(known.repeated_exchange("/a", b"y").is_none() && known.repeated_exchange("/b", b"x").is_none());
        known.forget_exchange("/a");
        assert!(known.repeated_exchange("/a", b"x").is_none());
    }

    #[test]
    fn what_watches_show_is_known_by_object() {
        let known = WriteHistory::default();
        known.record_watched("apps", "deployments", &meta(5, 1, "x"));
        assert_eq!(known.watched_revision("apps", "deployments", Some("n"), "a"), Some(5));
        assert_eq!(known.watched_revision("apps", "deployments", None, "a"), None);
        assert_eq!(known.newest_revision("apps", "deployments"), 5);
    }
}
