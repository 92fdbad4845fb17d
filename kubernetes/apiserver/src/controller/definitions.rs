//! CustomResourceDefinitions: accepts their names, serves their resources, and deletes their objects with them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::Value;
use tokio::task::JoinSet;

use super::{ObjectChange, ObjectFeed};
use crate::{
    api::{GroupResource, ObjectKey, meta::MetaAccessor},
    codec::query::{DeleteOptions, DeletionPropagation},
    crd::{
        self, SchemaHistory,
        names::{self, DeletionProgress},
    },
    handler::loopback::{LoopbackClient, LoopbackTarget},
    registry::ServedResource,
    server_state::ServerState,
    store::{ListQuery, Stored},
};

/// The interval of checks whether the finalizers of custom resources, which belong to other controllers, are
/// done.
const CUSTOM_RESOURCE_POLL_INTERVAL: Duration = Duration::from_millis(50);
const APISERVER_USER: &str = "system:apiserver";

pub fn collection() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Serves the existing definitions, before the first request is accepted.
pub fn restore(core: &ServerState) {
    let Ok(listed) = core.store.list(&collection(), &ListQuery::default()) else { return };
    for definition in listed.items {
        serve_definition(core, &definition.value());
    }
}

pub async fn run(core: Arc<ServerState>) {
    let mut feed = ObjectFeed::new(&core.store, collection());
    let internal = LoopbackClient::new(&core, APISERVER_USER).with_field_manager("kube-apiserver");
    let mut emptying = JoinSet::new();
    // By uid: another definition of the same name may be created and deleted before the end of the first one's
    // task is noticed.
    let mut busy: HashSet<Arc<str>> = HashSet::new();
    loop {
        tokio::select! {
            change = feed.next() => match change {
                ObjectChange::Reset => stop_serving_deleted(&core),
                ObjectChange::Set(definition) => handle_definition(&core, &internal, &definition, &mut emptying, &mut busy).await,
                ObjectChange::Deleted(definition) => {
                    stop_serving(&core, &definition.key.name);
                    delete_late_objects(&core, &definition.value()).await;
                    retry_other_names(&core, &internal, &definition).await;
                }
            },
            Some(done) = emptying.join_next() => if let Ok(uid) = done {
                busy.remove(&uid);
            },
        }
    }
}

async fn handle_definition(
    core: &Arc<ServerState>,
    internal: &LoopbackClient,
    definition: &Stored,
    emptying: &mut JoinSet<Arc<str>>,
    busy: &mut HashSet<Arc<str>>,
) {
    let value = definition.value();
    if definition.deleting {
        let ours = value.finalizers().any(|finalizer| finalizer == names::CLEANUP_FINALIZER);
        if ours && busy.insert(Arc::clone(&definition.uid)) {
            let core = Arc::clone(core);
            let name = definition.key.name.to_string();
            let uid = Arc::clone(&definition.uid);
            emptying.spawn(async move {
                delete_custom_resources(core, &name).await;
                uid
            });
        }
        serve_off_async_threads(core, &value).await;
        return;
    }
    if !write_accepted_names(core, internal, &value).await {
        serve_off_async_threads(core, &value).await;
        retry_other_names(core, internal, definition).await;
    }
}

/// Writes whether the names are accepted. True if that changed the status, which comes back as a change.
async fn write_accepted_names(core: &ServerState, internal: &LoopbackClient, definition: &Value) -> bool {
    let others = other_definitions(core, definition);
    let Some(status) = names::status(definition, &others, &core.now()) else { return false };
    let change = |definition: &mut Value| {
        if let Some(definition) = definition.as_object_mut() {
            definition.insert("status".into(), status.clone());
        }
    };
    match internal.change(&target(definition.name()).with_subresource("status"), &change).await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(kind = "CustomResourceDefinition", name = definition.name(), %error, "failed to write the status");
            false
        }
    }
}

fn other_definitions(core: &ServerState, definition: &Value) -> Vec<Value> {
    let listed = core.store.list(&collection(), &ListQuery::default()).map(|listed| listed.items).unwrap_or_default();
    let group = definition.pointer("/spec/group");
    let all = listed.iter().map(|other| other.value());
    all.filter(|other| other.name() != definition.name() && other.pointer("/spec/group") == group).collect()
}

/// Re-evaluates other definitions, since a conflicting name may be free now.
async fn retry_other_names(core: &ServerState, internal: &LoopbackClient, definition: &Stored) {
    for other in other_definitions(core, &definition.value()) {
        if !other.is_deleting() {
            write_accepted_names(core, internal, &other).await;
        }
    }
}

/// Compiles schemas and rules, which may take long, off the async threads.
async fn serve_off_async_threads(core: &ServerState, definition: &Value) {
    core.heavy.run(async { serve_definition(core, definition) }).await;
}

/// Replaces the served resources of a definition.
fn serve_definition(core: &ServerState, definition: &Value) {
    let name = definition.name();
    let catalog = core.registry.catalog();
    let served = catalog.all().filter_map(|resource| resource.custom.as_ref()).find(|custom| &*custom.crd == name);
    let fingerprint = crd::fingerprint(definition);
    // Objects that were stored under the same schemas need no conversion when they are read.
    let history = match served {
        Some(custom) if custom.fingerprint == fingerprint => {
            SchemaHistory { since: custom.schemas_since, stored_before: Arc::clone(&custom.stored_before) }
        }
        Some(custom) => SchemaHistory::after_schema_change(custom, definition, core.store.revision()),
        None => core.store.revision().into(),
    };
    let resources: Vec<Arc<ServedResource>> = crd::resources(definition, history).into_iter().map(Arc::new).collect();
    core.registry.update_catalog(|catalog| {
        catalog.remove(|resource| resource.custom.as_ref().is_some_and(|custom| &*custom.crd == name));
        resources.iter().for_each(|resource| catalog.insert(Arc::clone(resource)));
    });
}

fn stop_serving(core: &ServerState, name: &str) {
    core.registry.update_catalog(|catalog| {
        catalog.remove(|resource| resource.custom.as_ref().is_some_and(|custom| &*custom.crd == name));
    });
}

/// Stops serving definitions whose deletion was not observed.
fn stop_serving_deleted(core: &ServerState) {
    let catalog = core.registry.catalog();
    let served: HashSet<_> =
        catalog.all().filter_map(|resource| resource.custom.as_ref()).map(|custom| &custom.crd).collect();
    for name in served {
        if core.store.get(&ObjectKey::new(collection(), "", name)).is_none() {
            stop_serving(core, name);
        }
    }
}

/// Deletes objects that were created while their definition was being deleted, by requests that started before.
/// The definition is not served again yet.
async fn delete_late_objects(core: &ServerState, definition: &Value) {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let left = GroupResource::new(text("/spec/group"), text("/spec/names/plural"));
    let listed = core.store.list(&left, &ListQuery::default());
    for item in listed.map(|listed| listed.items).unwrap_or_default() {
        // No client can reach the object.
        let _ = core.store.delete(&item.key, item.revision, None).await;
    }
}

/// Deletes all objects of a definition, then removes its finalizer.
async fn delete_custom_resources(core: Arc<ServerState>, name: &str) {
    let internal = LoopbackClient::new(&core, APISERVER_USER).with_field_manager("kube-apiserver");
    write_terminating_condition(&core, &internal, name, DeletionProgress::InProgress).await;
    loop {
        let catalog = core.registry.catalog();
        let defined =
            |resource: &&Arc<ServedResource>| resource.custom.as_ref().is_some_and(|custom| *custom.crd == *name);
        let left = match catalog.all().find(defined) {
            Some(resource) => delete_objects(&core, &internal, resource).await,
            None => 0,
        };
        if left == 0 && write_terminating_condition(&core, &internal, name, DeletionProgress::Done).await {
            return;
        }
        tokio::time::sleep(CUSTOM_RESOURCE_POLL_INTERVAL).await;
    }
}

/// Deletes the remaining objects, and returns how many are left.
async fn delete_objects(core: &ServerState, internal: &LoopbackClient, resource: &Arc<ServedResource>) -> usize {
    let items = |core: &ServerState| {
        let listed = core.store.list(&resource.group_resource(), &ListQuery::default());
        listed.map(|listed| listed.items).unwrap_or_default()
    };
    let options =
        DeleteOptions { propagation_policy: Some(DeletionPropagation::Background), ..DeleteOptions::default() };
    for item in items(core).iter().filter(|item| !item.deleting) {
        // An object that is gone or was changed concurrently is handled in the next round.
        let _ = internal.delete(&LoopbackTarget::for_object(resource, &item.key), &options).await;
    }
    items(core).len()
}

/// Writes the progress of a deletion. False if it has to be written again.
async fn write_terminating_condition(
    core: &ServerState,
    internal: &LoopbackClient,
    name: &str,
    deletion: DeletionProgress,
) -> bool {
    let now = core.now();
    let change = |definition: &mut Value| names::set_terminating(definition, deletion, &now);
    let target = match deletion {
        DeletionProgress::Done => target(name),
        _ => target(name).with_subresource("status"),
    };
    // The condition is written together with the removal of the finalizer: the path allows both.
    match internal.change(&target, &change).await {
        Err(error) if error.code != 404 => {
            tracing::warn!(kind = "CustomResourceDefinition", name, %error, "failed to remove the finalizer");
            false
        }
        _ => true,
    }
}

fn target(name: &str) -> LoopbackTarget {
    LoopbackTarget::for_definition(&ObjectKey::new(collection(), "", name))
}
