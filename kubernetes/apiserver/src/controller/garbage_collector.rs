//! Garbage collection by ownerReferences.
//!
//! An object without any remaining owner is deleted; of several owners only the reference to the deleted one is
//! removed. The finalizers `orphan` and `foregroundDeletion`, which a deletion may set, are processed here:
//! dependents are orphaned, or deleted first.
//!
//! Every decision is made on the current state of the store; the index only tells which objects to look at.

mod owner_graph;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use self::owner_graph::OwnerGraph;
use super::{ObjectChange, ObjectFeed};
use crate::{
    api::{
        GroupResource, GroupVersion, ObjectKey, StatusError,
        meta::{MetaAccessor, remove_meta, set_meta},
    },
    codec::query::{DeleteOptions, DeletionPropagation},
    handler::loopback::{LoopbackClient, LoopbackTarget},
    registry::{Catalog, ServedResource},
    server_state::ServerState,
    store::Stored,
};

const ORPHAN_FINALIZER: &str = "orphan";
const FOREGROUND_FINALIZER: &str = "foregroundDeletion";
/// How long an object with an absent owner is left alone: its creator may be about to change it.
const ABSENT_OWNER_GRACE: Duration = Duration::from_millis(500);
/// Changes that are queued for the collector; the rest waits in the watches.
const CHANGE_QUEUE_CAPACITY: usize = 256;
/// The limit of consecutive write conflicts on one object.
const MAX_CONFLICT_RETRIES: usize = 16;

/// The number of absent owners to remember, as in kube-controller-manager.
const MAX_ABSENT_OWNERS: usize = 500;

type CollectionChange = (GroupResource, ObjectChange);

pub async fn run(core: Arc<ServerState>) {
    let (sender, mut news) = mpsc::channel(CHANGE_QUEUE_CAPACITY);
    let mut collector = GarbageCollector::new(&core);
    let mut changed = core.registry.subscribe();
    let mut feeds = JoinSet::new();
    let mut followed = HashSet::new();
    follow_new_collections(&core, &sender, &mut feeds, &mut followed);
    loop {
        let due = collector.absent_owner_queue.front().map(|(due, _)| *due);
        tokio::select! {
            Some((resource, change)) = news.recv() => collector.handle_change(&resource, change).await,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                if let Some((_, key)) = collector.absent_owner_queue.pop_front() {
                    collector.process_object(&key).await;
                }
            }
            _ = changed.changed() => follow_new_collections(&core, &sender, &mut feeds, &mut followed),
        }
    }
}

/// Follows served collections that are not followed yet. Events are neither owners nor dependents.
fn follow_new_collections(
    core: &ServerState,
    sender: &mpsc::Sender<CollectionChange>,
    feeds: &mut JoinSet<()>,
    followed: &mut HashSet<GroupResource>,
) {
    for resource in core.registry.catalog().all() {
        let collection = resource.group_resource();
        if &*collection.resource == "events"
            || !resource.verbs.contains(&"watch")
            || !followed.insert(collection.clone())
        {
            continue;
        }
        let mut feed = ObjectFeed::new(&core.store, collection.clone());
        let sender = sender.clone();
        feeds.spawn(async move {
            loop {
                let change = feed.next().await;
                if sender.send((collection.clone(), change)).await.is_err() {
                    return;
                }
            }
        });
    }
}

struct GarbageCollector {
    core: Arc<ServerState>,
    internal: LoopbackClient,
    index: OwnerGraph,
    /// Objects that were created with an absent owner, and when to check them again.
    absent_owner_queue: VecDeque<(Instant, ObjectKey)>,
    /// The uids of the owners that were deleted last. The existence of an owner cannot be checked once its kind
    /// is no longer served, as after the deletion of its definition.
    absent: VecDeque<Arc<str>>,
}

impl GarbageCollector {
    fn new(core: &Arc<ServerState>) -> Self {
        let internal = LoopbackClient::new(core, "system:serviceaccount:kube-system:generic-garbage-collector")
            .with_field_manager("kube-controller-manager");
        Self {
            core: Arc::clone(core),
            internal,
            index: OwnerGraph::default(),
            absent_owner_queue: VecDeque::new(),
            absent: VecDeque::new(),
        }
    }

    async fn handle_change(&mut self, resource: &GroupResource, change: ObjectChange) {
        match change {
            // Objects that were deleted unobserved are handled here; existing ones follow.
            ObjectChange::Reset => {
                for (key, uid) in self.index.objects_in_collection(resource) {
                    if self.core.store.get(&key).is_none_or(|live| live.uid != uid) {
                        self.handle_deletion(&key, &uid).await;
                    }
                }
            }
            ObjectChange::Set(object) => {
                self.index.insert(&object);
                self.process_finalizers(&object).await;
                if !object.owners.is_empty() && !object.deleting && self.has_absent_owner(&object) {
                    self.absent_owner_queue.push_back((Instant::now() + ABSENT_OWNER_GRACE, object.key.clone()));
                }
            }
            ObjectChange::Deleted(object) => self.handle_deletion(&object.key, &object.uid).await,
        }
    }

    async fn handle_deletion(&mut self, key: &ObjectKey, uid: &str) {
        let owners = self.index.remove(key);
        let dependents = self.index.dependents(uid);
        if !dependents.is_empty() {
            self.absent.truncate(MAX_ABSENT_OWNERS - 1);
            self.absent.push_front(uid.into());
        }
        for dependent in dependents {
            self.process_object(&dependent).await;
        }
        // An owner may have waited for this object.
        for owner in owners.iter().filter_map(|uid| self.index.key_of(uid)).collect::<Vec<_>>() {
            if let Some(owner) = self.core.store.get(&owner) {
                self.process_finalizers(&owner).await;
            }
        }
    }

    fn has_absent_owner(&self, object: &Stored) -> bool {
        let owners = self.classify_owners(object, &object.value());
        let lost = owners.dangling.len() + owners.waiting.len();
        lost > 0 && !owners.unknown
    }

    /// Processes the finalizers of the garbage collector.
    async fn process_finalizers(&self, object: &Stored) {
        if !object.deleting {
            return;
        }
        let value = object.value();
        let has = |finalizer: &str| value.finalizers().any(|known| known == finalizer);
        if has(ORPHAN_FINALIZER) {
            for dependent in self.index.dependents(&object.uid) {
                self.log(&dependent, self.remove_owner_references(&dependent, &[object.uid.to_string()]).await);
            }
            self.log(&object.key, self.remove_finalizer(&object.key, ORPHAN_FINALIZER).await);
        }
        if has(FOREGROUND_FINALIZER) && !self.delete_dependents(object).await {
            self.log(&object.key, self.remove_finalizer(&object.key, FOREGROUND_FINALIZER).await);
        }
    }

    /// Deletes the dependents of an object. True while one of them blocks it.
    async fn delete_dependents(&self, owner: &Stored) -> bool {
        let mut held = false;
        for key in self.index.dependents(&owner.uid) {
            let Some(dependent) = self.core.store.get(&key) else { continue };
            let value = dependent.value();
            held |= value.owners().iter().any(|reference| {
                let text = |field| reference.get(field).and_then(Value::as_str);
                let blocks = reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
                text("uid") == Some(&*owner.uid) && blocks
            });
            if !dependent.deleting {
                self.process_object(&key).await;
            }
        }
        held
    }

    /// Decides about an object with owners, and again if it changed meanwhile: it may have got another owner.
    async fn process_object(&self, key: &ObjectKey) {
        self.log(key, retry_on_conflict(|| self.attempt_to_delete(key)).await);
    }

    async fn attempt_to_delete(&self, key: &ObjectKey) -> Result<(), StatusError> {
        let Some(object) = self.core.store.get(key) else { return Ok(()) };
        let value = object.value();
        let owners = self.classify_owners(&object, &value);
        match owners {
            OwnerReferences { unknown: true, .. } => Ok(()),
            OwnerReferences { ref solid, ref dangling, ref waiting, .. } if *solid > 0 => {
                let gone: Vec<String> = dangling.iter().chain(waiting).cloned().collect();
                if gone.is_empty() { Ok(()) } else { self.remove_owner_references(key, &gone).await }
            }
            OwnerReferences { ref dangling, ref waiting, .. } if dangling.is_empty() && waiting.is_empty() => Ok(()),
            OwnerReferences { ref waiting, .. } => {
                // Owners that wait want their dependents' dependents deleted first, too.
                let deep = !waiting.is_empty() && !self.index.dependents(&object.uid).is_empty();
                self.delete(key, &object, &value, deep).await
            }
        }
    }

    async fn delete(&self, key: &ObjectKey, object: &Stored, value: &Value, deep: bool) -> Result<(), StatusError> {
        if object.deleting {
            return Ok(());
        }
        let has = |finalizer: &str| value.finalizers().any(|known| known == finalizer);
        let policy = match (deep || has(FOREGROUND_FINALIZER), has(ORPHAN_FINALIZER)) {
            (true, _) => DeletionPropagation::Foreground,
            (_, true) => DeletionPropagation::Orphan,
            _ => DeletionPropagation::Background,
        };
        // Deletes exactly the object that was examined.
        let uid = Some(object.uid.to_string());
        let resource_version = Some(object.revision.to_string());
        let propagation_policy = Some(policy);
        let options = DeleteOptions { propagation_policy, uid, resource_version, ..DeleteOptions::default() };
        let Some(target) = self.target(key) else { return Ok(()) };
        self.internal.delete(&target, &options).await
    }

    async fn remove_owner_references(&self, key: &ObjectKey, gone: &[String]) -> Result<(), StatusError> {
        let Some(target) = self.target(key) else { return Ok(()) };
        let change = |object: &mut Value| {
            let kept: Vec<Value> = object
                .owners()
                .iter()
                .filter(|owner| {
                    !owner.get("uid").and_then(Value::as_str).is_some_and(|uid| gone.iter().any(|gone| gone == uid))
                })
                .cloned()
                .collect();
            if kept.is_empty() {
                drop(remove_meta(object, "ownerReferences"))
            } else {
                set_meta(object, "ownerReferences", kept)
            }
        };
        self.internal.change(&target, &change).await.map(drop)
    }

    async fn remove_finalizer(&self, key: &ObjectKey, finalizer: &str) -> Result<(), StatusError> {
        let Some(target) = self.target(key) else { return Ok(()) };
        let change = |object: &mut Value| {
            let kept: Vec<String> =
                object.finalizers().filter(|known| *known != finalizer).map(str::to_owned).collect();
            if kept.is_empty() { drop(remove_meta(object, "finalizers")) } else { set_meta(object, "finalizers", kept) }
        };
        self.internal.change(&target, &change).await.map(drop)
    }

    fn target(&self, key: &ObjectKey) -> Option<LoopbackTarget> {
        let catalog = self.core.registry.catalog();
        let resource = catalog.all().find(|resource| resource.group_resource() == key.resource)?;
        Some(LoopbackTarget::for_object(resource, key))
    }

    fn log(&self, key: &ObjectKey, outcome: Result<(), StatusError>) {
        if let Err(error) = outcome
            && error.code != 404
        {
            tracing::warn!(resource = %key.resource, namespace = %key.namespace, name = %key.name, %error, "garbage collection failed");
        }
    }
}

/// Repeats a decision as long as the examined object has changed.
async fn retry_on_conflict<F: Future<Output = Result<(), StatusError>>>(
    decide: impl Fn() -> F,
) -> Result<(), StatusError> {
    let mut outcome = decide().await;
    for _ in 1..MAX_CONFLICT_RETRIES {
        match &outcome {
            Err(status) if status.code == 409 => outcome = decide().await,
            _ => break,
        }
    }
    outcome
}

/// The owners of an object by their state.
#[derive(Debug, Default)]
struct OwnerReferences {
    /// Owners that exist and are not being deleted.
    solid: usize,
    dangling: Vec<String>,
    /// Owners that wait for the deletion of this object.
    waiting: Vec<String>,
    /// Whether an owner's kind is not served: nothing is decided.
    unknown: bool,
}

impl GarbageCollector {
    fn classify_owners(&self, object: &Stored, value: &Value) -> OwnerReferences {
        let mut owners = OwnerReferences::default();
        let catalog = self.core.registry.catalog();
        for reference in value.owners() {
            let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
            if self.absent.iter().any(|uid| &**uid == text("uid")) {
                owners.dangling.push(text("uid").to_owned());
                continue;
            }
            let Some(resource) = owner_resource(&catalog, text("apiVersion"), text("kind")) else {
                owners.unknown = true;
                continue;
            };
            let namespace = if resource.namespaced { &*object.key.namespace } else { "" };
            let key = ObjectKey::new(resource.group_resource(), namespace, text("name"));
            let uid = text("uid");
            match self.core.store.get(&key).filter(|owner| &*owner.uid == uid) {
                None => owners.dangling.push(uid.to_owned()),
                Some(owner)
                    if owner.deleting && owner.value().finalizers().any(|known| known == FOREGROUND_FINALIZER) =>
                {
                    owners.waiting.push(uid.to_owned());
                }
                Some(_) => owners.solid += 1,
            }
        }
        owners
    }
}

fn owner_resource(catalog: &Catalog, api_version: &str, kind: &str) -> Option<Arc<ServedResource>> {
    let gv = GroupVersion::parse(api_version)?;
    let exact = catalog.find_by_kind(&gv, kind);
    // Another version of the kind has the same objects.
    exact.or_else(|| catalog.all().find(|resource| resource.gv.group == gv.group && &*resource.kind == kind)).cloned()
}
