//! Garbage collection by ownerReferences.
//!
//! Whoever loses its last owner is deleted; of several owners only the reference to the one that is gone is removed. The finalizers
//! `orphan` and `foregroundDeletion`, which a deletion may ask for, are worked off here: dependents are let go, or deleted first.
//!
//! What is decided is decided on the store as it is at that moment; the index only says whom to look at.

mod index;
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

use self::index::Index;
use super::{Change, Feed};
use crate::{
    api::{
        GroupResource, GroupVersion, ObjectKey, Status,
        meta::{Meta, remove_meta, set_meta},
    },
    codec::query::{DeleteOptions, Propagation},
    core::Core,
    handler::internal::{Internal, Target},
    registry::{Catalog, Resource},
    store::Stored,
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Whoever comes with an owner who is not there is given a moment: its creator may be about to change it.
const DOUBT: Duration = Duration::from_millis(500);
/// Changes that wait for the collector; watches wait with the rest.
const WAITING: usize = 256;
/// How often an object that changes under our hands is looked at in a row.
const ATTEMPTS: usize = 16;

/// Owners that are known to be gone: kube-controller-manager's number.
const ABSENT_OWNERS: usize = 500;

/// A change in one of the collections.
type News = (GroupResource, Change);

/// Follows all collections.
pub async fn run(core: Arc<Core>) {
    let (sender, mut news) = mpsc::channel(WAITING);
    let mut collector = Collector::new(&core);
    let mut changed = core.registry.changed();
    let (mut feeds, mut followed) = (JoinSet::new(), HashSet::new());
    follow(&core, &sender, &mut feeds, &mut followed);
    loop {
        let due = collector.doubtful.front().map(|(due, _)| *due);
        tokio::select! {
            Some((resource, change)) = news.recv() => collector.see(&resource, change).await,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                if let Some((_, key)) = collector.doubtful.pop_front() {
                    collector.check(&key).await;
                }
            }
            _ = changed.changed() => follow(&core, &sender, &mut feeds, &mut followed),
        }
    }
}

/// Follows what is served and not followed yet. Events own nothing and are owned by nobody.
fn follow(core: &Core, sender: &mpsc::Sender<News>, feeds: &mut JoinSet<()>, followed: &mut HashSet<GroupResource>) {
    for resource in core.registry.catalog().all() {
        let collection = resource.group_resource();
        if &*collection.resource == "events"
            || !resource.verbs.contains(&"watch")
            || !followed.insert(collection.clone())
        {
            continue;
        }
        let (mut feed, sender) = (Feed::new(&core.store, collection.clone()), sender.clone());
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

struct Collector {
    core: Arc<Core>,
    internal: Internal,
    index: Index,
    /// Objects that came with an owner who is not there, and when to look at them again.
    doubtful: VecDeque<(Instant, ObjectKey)>,
    /// The uids of owners that were seen to go, as many as are remembered. Nobody can be asked for an owner once its kind is not served any more, as after its
    /// definition was deleted, but it is known to be gone.
    absent: VecDeque<Arc<str>>,
}

impl Collector {
    fn new(core: &Arc<Core>) -> Self {
        let internal = Internal::new(core, "system:serviceaccount:kube-system:generic-garbage-collector")
            .managing("kube-controller-manager");
        Self {
            core: Arc::clone(core),
            internal,
            index: Index::default(),
            doubtful: VecDeque::new(),
            absent: VecDeque::new(),
        }
    }

    async fn see(&mut self, resource: &GroupResource, change: Change) {
        match change {
            // What went while nobody looked is gone all the same; what is there follows.
            Change::Reset => {
                for (key, uid) in self.index.of(resource) {
                    if self.core.store.get(&key).is_none_or(|live| live.uid != uid) {
                        self.gone(&key, &uid).await;
                    }
                }
            }
            Change::Set(object) => {
                self.index.set(&object);
                self.work_off(&object).await;
                if !object.owners.is_empty() && !object.deleting && self.lacks_owner(&object) {
                    self.doubtful.push_back((Instant::now() + DOUBT, object.key.clone()));
                }
            }
            Change::Gone(object) => self.gone(&object.key, &object.uid).await,
        }
    }

    async fn gone(&mut self, key: &ObjectKey, uid: &str) {
        let owners = self.index.remove(key);
        let dependents = self.index.dependents(uid);
        if !dependents.is_empty() {
            self.absent.truncate(ABSENT_OWNERS - 1);
            self.absent.push_front(uid.into());
        }
        for dependent in dependents {
            self.check(&dependent).await;
        }
        // An owner may have waited for this one.
        for owner in owners.iter().filter_map(|uid| self.index.key_of(uid)).collect::<Vec<_>>() {
            if let Some(owner) = self.core.store.get(&owner) {
                self.work_off(&owner).await;
            }
        }
    }

    fn lacks_owner(&self, object: &Stored) -> bool {
        let owners = self.owners(object, &object.value());
        let lost = owners.dangling.len() + owners.waiting.len();
        lost > 0 && !owners.unknown
    }

    /// Works off the finalizers that are ours.
    async fn work_off(&self, object: &Stored) {
        if !object.deleting {
            return;
        }
        let value = object.value();
        let has = |finalizer: &str| value.finalizers().any(|known| known == finalizer);
        if has(ORPHAN) {
            for dependent in self.index.dependents(&object.uid) {
                self.log(&dependent, self.release(&dependent, &[object.uid.to_string()]).await);
            }
            self.log(&object.key, self.unfinalize(&object.key, ORPHAN).await);
        }
        if has(FOREGROUND) && !self.delete_dependents(object).await {
            self.log(&object.key, self.unfinalize(&object.key, FOREGROUND).await);
        }
    }

    /// Deletes the dependents of an object. True while one of them holds it.
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
                self.check(&key).await;
            }
        }
        held
    }

    /// Decides about an object that has owners, again if it became another one meanwhile: somebody may have become its owner.
    async fn check(&self, key: &ObjectKey) {
        self.log(key, settled(|| self.decide(key)).await);
    }

    async fn decide(&self, key: &ObjectKey) -> Result<(), Status> {
        let Some(object) = self.core.store.get(key) else { return Ok(()) };
        let value = object.value();
        let owners = self.owners(&object, &value);
        match owners {
            Owners { unknown: true, .. } => Ok(()),
            Owners { ref solid, ref dangling, ref waiting, .. } if *solid > 0 => {
                let gone: Vec<String> = dangling.iter().chain(waiting).cloned().collect();
                match gone.is_empty() {
                    true => Ok(()),
                    false => self.release(key, &gone).await,
                }
            }
            Owners { ref dangling, ref waiting, .. } if dangling.is_empty() && waiting.is_empty() => Ok(()),
            Owners { ref waiting, .. } => {
                // Owners that wait want their dependents' dependents gone first, too.
                let deep = !waiting.is_empty() && !self.index.dependents(&object.uid).is_empty();
                self.delete(key, &object, &value, deep).await
            }
        }
    }

    async fn delete(&self, key: &ObjectKey, object: &Stored, value: &Value, deep: bool) -> Result<(), Status> {
        if object.deleting {
            return Ok(());
        }
        let has = |finalizer: &str| value.finalizers().any(|known| known == finalizer);
        let policy = match (deep || has(FOREGROUND), has(ORPHAN)) {
            (true, _) => Propagation::Foreground,
            (_, true) => Propagation::Orphan,
            _ => Propagation::Background,
        };
        // Exactly what was looked at.
        let (uid, resource_version) = (Some(object.uid.to_string()), Some(object.revision.to_string()));
        let propagation_policy = Some(policy);
        let options = DeleteOptions { propagation_policy, uid, resource_version, ..DeleteOptions::default() };
        let Some(target) = self.target(key) else { return Ok(()) };
        self.internal.delete(&target, &options).await
    }

    /// Removes references to these owners.
    async fn release(&self, key: &ObjectKey, gone: &[String]) -> Result<(), Status> {
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
            match kept.is_empty() {
                true => drop(remove_meta(object, "ownerReferences")),
                false => set_meta(object, "ownerReferences", kept),
            }
        };
        self.internal.change(&target, &change).await.map(drop)
    }

    async fn unfinalize(&self, key: &ObjectKey, finalizer: &str) -> Result<(), Status> {
        let Some(target) = self.target(key) else { return Ok(()) };
        let change = |object: &mut Value| {
            let kept: Vec<String> =
                object.finalizers().filter(|known| *known != finalizer).map(str::to_owned).collect();
            match kept.is_empty() {
                true => drop(remove_meta(object, "finalizers")),
                false => set_meta(object, "finalizers", kept),
            }
        };
        self.internal.change(&target, &change).await.map(drop)
    }

    fn target(&self, key: &ObjectKey) -> Option<Target> {
        let catalog = self.core.registry.catalog();
        let resource = catalog.all().find(|resource| resource.group_resource() == key.resource)?;
        Some(Target::of(resource, key))
    }

    fn log(&self, key: &ObjectKey, outcome: Result<(), Status>) {
        if let Err(error) = outcome
            && error.code != 404
        {
            tracing::warn!(resource = %key.resource, namespace = %key.namespace, name = %key.name, %error, "garbage collection failed");
        }
    }
}

/// Decides again as long as what was looked at is not what is there any more.
async fn settled<F: Future<Output = Result<(), Status>>>(decide: impl Fn() -> F) -> Result<(), Status> {
    let mut outcome = decide().await;
    for _ in 1..ATTEMPTS {
        match &outcome {
            Err(status) if status.code == 409 => outcome = decide().await,
            _ => break,
        }
    }
    outcome
}

/// How an object stands with its owners.
#[derive(Debug, Default)]
struct Owners {
    /// Owners that are there and stay.
    solid: usize,
    /// Owners that are gone.
    dangling: Vec<String>,
    /// Owners that wait for this object to go.
    waiting: Vec<String>,
    /// An owner of a kind that nobody serves: nothing is decided.
    unknown: bool,
}

impl Collector {
    fn owners(&self, object: &Stored, value: &Value) -> Owners {
        let mut owners = Owners::default();
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
                Some(owner) if owner.deleting && owner.value().finalizers().any(|known| known == FOREGROUND) => {
                    owners.waiting.push(uid.to_owned());
                }
                Some(_) => owners.solid += 1,
            }
        }
        owners
    }
}

fn owner_resource(catalog: &Catalog, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
    let gv = GroupVersion::parse(api_version)?;
    let exact = catalog.by_kind(&gv, kind);
    // Another version of the kind will do: there is one object.
    exact.or_else(|| catalog.all().find(|resource| resource.gv.group == gv.group && &*resource.kind == kind)).cloned()
}
