//! CustomResourceDefinitions: accepts their names, serves what they define, and empties what is deleted.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::task::JoinSet;

use super::{Change, Feed};
use crate::{
    api::{GroupResource, ObjectKey, meta::Meta},
    codec::query::{DeleteOptions, Propagation},
    core::Core,
    crd::{
        self, History,
        names::{self, Deletion},
    },
    handler::internal::{Internal, Target},
    registry::Resource,
    store::{ListQuery, Stored},
};

/// Finalizers of custom resources are somebody else's business: so often we look whether they are done.
const PATIENCE: Duration = Duration::from_millis(50);
const USER: &str = "system:apiserver";

/// Where definitions are.
pub fn collection() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Serves what is defined already. Called before the first request is taken.
pub fn restore(core: &Core) {
    let Ok(listed) = core.store.list(&collection(), &ListQuery::default()) else { return };
    for definition in listed.items {
        serve(core, &definition.value());
    }
}

/// Follows all definitions.
pub async fn run(core: Arc<Core>) {
    let mut feed = Feed::new(&core.store, collection());
    let internal = Internal::new(&core, USER).managing("kube-apiserver");
    let mut emptying = JoinSet::new();
    // By uid: another definition of the same name may come and go before the end of the first one's task is noticed.
    let mut busy: HashSet<Arc<str>> = HashSet::new();
    loop {
        tokio::select! {
            change = feed.next() => match change {
                Change::Reset => withdraw_lost(&core),
                Change::Set(definition) => see(&core, &internal, &definition, &mut emptying, &mut busy).await,
                Change::Gone(definition) => {
                    withdraw(&core, &definition.key.name);
                    sweep(&core, &definition.value()).await;
                    reconsider_others(&core, &internal, &definition).await;
                }
            },
            Some(done) = emptying.join_next() => if let Ok(uid) = done {
                busy.remove(&uid);
            },
        }
    }
}

async fn see(
    core: &Arc<Core>,
    internal: &Internal,
    definition: &Stored,
    emptying: &mut JoinSet<Arc<str>>,
    busy: &mut HashSet<Arc<str>>,
) {
    let value = definition.value();
    if definition.deleting {
        let ours = value.finalizers().any(|finalizer| finalizer == names::CLEANUP_FINALIZER);
        if ours && busy.insert(Arc::clone(&definition.uid)) {
            let (core, name, uid) = (Arc::clone(core), definition.key.name.to_string(), Arc::clone(&definition.uid));
            emptying.spawn(async move {
                empty(core, &name).await;
                uid
            });
        }
        serve_aside(core, &value).await;
        return;
    }
    if !accept(core, internal, &value).await {
        serve_aside(core, &value).await;
        reconsider_others(core, internal, definition).await;
    }
}

/// Says whether the names are taken. True if that was news, which comes back as a change.
async fn accept(core: &Core, internal: &Internal, definition: &Value) -> bool {
    let others = others(core, definition);
    let Some(status) = names::status(definition, &others, &core.now()) else { return false };
    let change = |definition: &mut Value| {
        if let Some(definition) = definition.as_object_mut() {
            definition.insert("status".into(), status.clone());
        }
    };
    match internal.change(&target(definition.name()).subresource("status"), &change).await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(kind = "CustomResourceDefinition", name = definition.name(), %error, "cannot write the status");
            false
        }
    }
}

/// The other definitions of the same group, whose names may clash.
fn others(core: &Core, definition: &Value) -> Vec<Value> {
    let listed = core.store.list(&collection(), &ListQuery::default()).map(|listed| listed.items).unwrap_or_default();
    let group = definition.pointer("/spec/group");
    let all = listed.iter().map(|other| other.value());
    all.filter(|other| other.name() != definition.name() && other.pointer("/spec/group") == group).collect()
}

/// A name that was taken may be free now.
async fn reconsider_others(core: &Core, internal: &Internal, definition: &Stored) {
    for other in others(core, &definition.value()) {
        if !other.is_deleting() {
            accept(core, internal, &other).await;
        }
    }
}

/// Compiles schemas and rules, which may take long, on no async thread.
async fn serve_aside(core: &Core, definition: &Value) {
    core.heavy.run(async { serve(core, definition) }).await;
}

/// Replaces what is served of a definition.
fn serve(core: &Core, definition: &Value) {
    let name = definition.name();
    let catalog = core.registry.catalog();
    let served = catalog.all().filter_map(|resource| resource.custom.as_ref()).find(|custom| &*custom.crd == name);
    let fingerprint = crd::fingerprint(definition);
    // What was stored under the same schemas need not be looked at when it is read.
    let history = match served {
        Some(custom) if custom.fingerprint == fingerprint => {
            History { since: custom.schemas_since, stored_before: Arc::clone(&custom.stored_before) }
        }
        Some(custom) => History::after(custom, definition, core.store.revision()),
        None => core.store.revision().into(),
    };
    let resources: Vec<Arc<Resource>> = crd::resources(definition, history).into_iter().map(Arc::new).collect();
    core.registry.change(|catalog| {
        catalog.remove(|resource| resource.custom.as_ref().is_some_and(|custom| &*custom.crd == name));
        resources.iter().for_each(|resource| catalog.insert(Arc::clone(resource)));
    });
}

fn withdraw(core: &Core, name: &str) {
    core.registry.change(|catalog| {
        catalog.remove(|resource| resource.custom.as_ref().is_some_and(|custom| &*custom.crd == name));
    });
}

/// Withdraws what went while nobody looked.
fn withdraw_lost(core: &Core) {
    let catalog = core.registry.catalog();
    let served: HashSet<_> =
        catalog.all().filter_map(|resource| resource.custom.as_ref()).map(|custom| &custom.crd).collect();
    for name in served {
        if core.store.get(&ObjectKey::new(collection(), "", name)).is_none() {
            withdraw(core, name);
        }
    }
}

/// Deletes what was created while its definition went, by somebody who had seen it before. Nothing is served in its place yet.
async fn sweep(core: &Core, definition: &Value) {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let left = GroupResource::new(text("/spec/group"), text("/spec/names/plural"));
    let listed = core.store.list(&left, &ListQuery::default());
    for item in listed.map(|listed| listed.items).unwrap_or_default() {
        // Nobody else can reach it.
        let _ = core.store.delete(&item.key, item.revision, None).await;
    }
}

/// Deletes all objects of a definition, then lets it go.
async fn empty(core: Arc<Core>, name: &str) {
    let internal = Internal::new(&core, USER).managing("kube-apiserver");
    say(&core, &internal, name, Deletion::InProgress).await;
    loop {
        let catalog = core.registry.catalog();
        let defined = |resource: &&Arc<Resource>| resource.custom.as_ref().is_some_and(|custom| *custom.crd == *name);
        let left = match catalog.all().find(defined) {
            Some(resource) => delete_all(&core, &internal, resource).await,
            None => 0,
        };
        if left == 0 && say(&core, &internal, name, Deletion::Done).await {
            return;
        }
        tokio::time::sleep(PATIENCE).await;
    }
}

/// Deletes what is left, and says how many still are.
async fn delete_all(core: &Core, internal: &Internal, resource: &Arc<Resource>) -> usize {
    let items = |core: &Core| {
        let listed = core.store.list(&resource.group_resource(), &ListQuery::default());
        listed.map(|listed| listed.items).unwrap_or_default()
    };
    let options = DeleteOptions { propagation_policy: Some(Propagation::Background), ..DeleteOptions::default() };
    for item in items(core).iter().filter(|item| !item.deleting) {
        // One that is gone already, or that somebody changes, is looked at again.
        let _ = internal.delete(&Target::of(resource, &item.key), &options).await;
    }
    items(core).len()
}

/// Says how far a deletion is. False if it has to be said again.
async fn say(core: &Core, internal: &Internal, name: &str, deletion: Deletion) -> bool {
    let now = core.now();
    let change = |definition: &mut Value| names::set_terminating(definition, deletion, &now);
    let target = match deletion {
        Deletion::Done => target(name),
        _ => target(name).subresource("status"),
    };
    // The condition goes with the finalizer: its path writes both.
    match internal.change(&target, &change).await {
        Err(error) if error.code != 404 => {
            tracing::warn!(kind = "CustomResourceDefinition", name, %error, "cannot be let go");
            false
        }
        _ => true,
    }
}

fn target(name: &str) -> Target {
    Target::definition(&ObjectKey::new(collection(), "", name))
}
