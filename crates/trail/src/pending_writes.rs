//! The cache of a program's own writes.
//!
//! A reconciler reads objects from the cache of a watch, and that cache lags behind the program's own writes: the next
//! run may see the object as it was before the last status was written. It would then act on state that it has changed
//! already: write the same status with another time, publish the same Event, start the same work twice.
//! [`PendingWrites`] remembers each write until the watch shows it, or something newer.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kube::Resource;

/// More objects than a program writes in the seconds by which a watch lags. An entry without a value takes about 100
/// bytes.
const MAX_WRITES: usize = 10_000;

/// The program's own writes that no watch has shown yet, each with a value, such as the written status or object.
///
/// [`record`](Self::record) the response to each write, and ask at the beginning of a run whether there is a newer
/// write than the object that the watch shows. If there is one, either continue with the written object, or end the
/// run: the watch will show the write, and that starts the next run. This needs a watch that reports every write: with
/// a filter such as `predicates::generation`, continue instead, or requeue.
///
/// ```
/// use std::sync::Arc;
///
/// # use k8s_openapi::api::apps::v1::Deployment;
/// use kube::{Api, ResourceExt, api::{Patch, PatchParams}, runtime::controller::Action};
/// use kubewake_trail::PendingWrites;
///
/// struct Context {
///     api: Api<Deployment>,
///     pending_writes: PendingWrites<Arc<Deployment>>,
/// }
///
/// async fn reconcile(deployment: Arc<Deployment>, context: Arc<Context>) -> kube::Result<Action> {
///     // Continue with the newer one. A run that ends instead needs no value: a `PendingWrites<()>` and
///     // `if context.pending_writes.has_newer_than(&*deployment) { return Ok(Action::await_change()) }`.
///     let deployment = context.pending_writes.newer_than(&*deployment).unwrap_or(deployment);
///     if deployment.annotations().contains_key("example.com/adopted") {
///         return Ok(Action::await_change());
///     }
///     let patch = serde_json::json!({ "metadata": { "annotations": { "example.com/adopted": "true" } } });
///     let patch = Patch::Merge(patch);
///     let written = context.api.patch(&deployment.name_any(), &PatchParams::default(), &patch).await?;
///     let written = Arc::new(written);
///     context.pending_writes.record(&*written, Arc::clone(&written));
///     Ok(Action::await_change())
/// }
/// ```
///
/// *Guaranteed*: a write is reported until an object of the same revision or a newer one was asked about. An object
/// that was deleted and created again is another object (by its uid). The number of writes is bounded; at the bound the
/// older half is forgotten.
///
/// *Assumed*: revisions of objects are integers that grow, as Kubernetes documents since 1.35 and as every API server
/// behaves. An object whose revision is no integer has no pending write. A forgotten write costs at most one run with
/// old state, which the API server refuses or repeats.
///
/// *Not done*: writes by other clients; those are for the watch.
///
/// Objects of several kinds may share one, as entries are by uid; at the bound, kinds whose revisions are lower are
/// forgotten first.
pub struct PendingWrites<T = ()>(Mutex<HashMap<String, PendingWrite<T>>>);

struct PendingWrite<T> {
    revision: u128,
    value: T,
}

impl<T> PendingWrites<T> {
    /// Creates an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self(Mutex::default())
    }

    /// Records a write: the object with which the API server responded, and a value for later runs. Of several writes
    /// of an object the newest counts.
    pub fn record(&self, response: &impl Resource, value: T) {
        let Some((uid, revision)) = uid_and_revision(response) else { return };
        let mut writes = self.writes();
        if writes.get(&uid).is_some_and(|write| write.revision > revision) {
            return;
        }
        if writes.len() >= MAX_WRITES && !writes.contains_key(&uid) {
            forget_older_half(&mut writes);
        }
        writes.insert(uid, PendingWrite { revision, value });
    }

    /// The value of the write that is newer than this object, which the watch shows. A write that is not newer was
    /// seen, and is forgotten.
    pub fn newer_than(&self, seen: &impl Resource) -> Option<T>
    where
        T: Clone,
    {
        self.find_newer(seen, T::clone)
    }

    /// Whether there is a write that is newer than this object, which the watch shows.
    pub fn has_newer_than(&self, seen: &impl Resource) -> bool {
        self.find_newer(seen, |_| ()).is_some()
    }

    fn find_newer<R>(&self, seen: &impl Resource, read: impl FnOnce(&T) -> R) -> Option<R> {
        let (uid, revision) = uid_and_revision(seen)?;
        let mut writes = self.writes();
        let write = writes.get(&uid)?;
        if write.revision > revision {
            return Some(read(&write.value));
        }
        writes.remove(&uid);
        None
    }

    fn writes(&self) -> MutexGuard<'_, HashMap<String, PendingWrite<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for PendingWrites<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for PendingWrites<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingWrites").field("objects", &self.writes().len()).finish_non_exhaustive()
    }
}

/// Objects that are deleted after a write are never asked about again, so old writes are the ones without a use.
fn forget_older_half<T>(writes: &mut HashMap<String, PendingWrite<T>>) {
    let mut revisions: Vec<u128> = writes.values().map(|write| write.revision).collect();
    revisions.sort_unstable();
    if let Some(median) = revisions.get(revisions.len() / 2) {
        writes.retain(|_, write| write.revision > *median);
    }
}

fn uid_and_revision(object: &impl Resource) -> Option<(String, u128)> {
    let meta = object.meta();
    Some((meta.uid.clone()?, meta.resource_version.as_ref()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn object(uid: &str, revision: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.uid = Some(uid.to_owned());
        object.metadata.resource_version = Some(revision.to_owned());
        object
    }

    fn seen(revision: &str) -> ConfigMap {
        object("uid", revision)
    }

    #[test]
    fn write_is_pending_until_its_revision_is_seen() {
        let writes = PendingWrites::default();
        assert_eq!(writes.newer_than(&seen("5")), None);
        writes.record(&seen("10"), "status");
        assert_eq!((writes.newer_than(&seen("9")), writes.has_newer_than(&seen("9"))), (Some("status"), true));
        assert_eq!(writes.newer_than(&object("other", "9")), None, "an object of the same name, created again");
        assert!(!writes.has_newer_than(&seen("10")));
        assert_eq!(writes.newer_than(&seen("9")), None, "the write was seen and is forgotten");
    }

    #[test]
    fn write_is_forgotten_when_a_newer_revision_is_seen() {
        let writes = PendingWrites::default();
        writes.record(&seen("10"), ());
        assert!(!writes.has_newer_than(&seen("11")));
        assert!(!writes.has_newer_than(&seen("9")));
    }

    #[test]
    fn newest_write_counts_whatever_the_order_of_responses() {
        let writes = PendingWrites::default();
        writes.record(&seen("9"), "first");
        writes.record(&seen("11"), "third");
        writes.record(&seen("10"), "second");
        assert_eq!(writes.newer_than(&seen("9")), Some("third"));
    }

    #[test]
    fn revision_that_is_no_integer_is_never_pending() {
        let writes = PendingWrites::default();
        writes.record(&seen("x"), ());
        assert!(!writes.has_newer_than(&seen("1")));
        writes.record(&seen("10"), ());
        assert!(!writes.has_newer_than(&seen("x")));
        assert!(writes.has_newer_than(&seen("1")));
    }

    #[test]
    fn cache_at_its_bound_keeps_the_newer_writes() {
        let writes = PendingWrites::default();
        for revision in 1..=MAX_WRITES + 1 {
            writes.record(&object(&revision.to_string(), &revision.to_string()), ());
        }
        assert!(writes.writes().len() <= MAX_WRITES);
        assert!(!writes.has_newer_than(&object("1", "0")));
        for newest in [MAX_WRITES - 1, MAX_WRITES, MAX_WRITES + 1] {
            assert!(writes.has_newer_than(&object(&newest.to_string(), "0")), "{newest}");
        }
    }
}
