//! Deletes the content of terminating namespaces, then removes their finalizer.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::{ObjectChange, ObjectFeed};
use crate::{
    api::{GroupResource, meta::MetaAccessor},
    codec::query::{DeleteOptions, DeletionPropagation},
    handler::loopback::{LoopbackClient, LoopbackTarget},
    registry::ServedResource,
    server_state::ServerState,
    store::{ListQuery, Stored},
};

/// The interval of checks whether the finalizers of the content, which belong to other controllers, are done.
const CONTENT_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long to wait before remaining content is reported.
const REPORT_DELAY: Duration = Duration::from_secs(1);
const KUBERNETES_FINALIZER: &str = "kubernetes";

pub async fn run(core: Arc<ServerState>) {
    let mut feed = ObjectFeed::new(&core.store, GroupResource::new("", "namespaces"));
    let mut emptying = JoinSet::new();
    // By uid: another namespace of the same name may be created and deleted before the end of the first one's
    // task is noticed.
    let mut busy: HashSet<Arc<str>> = HashSet::new();
    loop {
        tokio::select! {
            change = feed.next() => match change {
                ObjectChange::Set(namespace) if namespace.deleting && busy.insert(Arc::clone(&namespace.uid)) => {
                    let core = Arc::clone(&core);
                    let uid = Arc::clone(&namespace.uid);
                    emptying.spawn(async move {
                        empty_namespace(core, &namespace.key.name).await;
                        uid
                    });
                }
                ObjectChange::Deleted(namespace) => delete_late_content(&core, &namespace.key.name).await,
                _ => {}
            },
            Some(done) = emptying.join_next() => if let Ok(uid) = done {
                busy.remove(&uid);
            },
        }
    }
}

/// Deletes objects that were created while their namespace was being deleted, by requests that started before.
async fn delete_late_content(core: &Arc<ServerState>, name: &str) {
    if core.namespace(name).is_none() {
        delete_content(core, &namespace_controller_client(core), name).await;
    }
}

fn namespace_controller_client(core: &Arc<ServerState>) -> LoopbackClient {
    LoopbackClient::new(core, "system:serviceaccount:kube-system:namespace-controller")
        .with_field_manager("kube-controller-manager")
}

/// Deletes the content of a namespace until it is empty, then removes the finalizer.
async fn empty_namespace(core: Arc<ServerState>, name: &str) {
    let internal = namespace_controller_client(&core);
    let begun = Instant::now();
    loop {
        let Some(namespace) = core.namespace(name).filter(|namespace| namespace.deleting) else { return };
        let left = delete_content(&core, &internal, name).await;
        if left.is_empty() {
            if remove_kubernetes_finalizer(&internal, &namespace).await {
                return;
            }
        } else if begun.elapsed() > REPORT_DELAY {
            write_deletion_conditions(&internal, &namespace, &left).await;
        }
        tokio::time::sleep(CONTENT_POLL_INTERVAL).await;
    }
}

/// The remaining objects of a namespace: their number by resource, and their finalizers.
type RemainingContent = BTreeMap<String, (usize, BTreeMap<String, usize>)>;

async fn delete_content(core: &ServerState, internal: &LoopbackClient, namespace: &str) -> RemainingContent {
    let mut left = RemainingContent::new();
    let catalog = core.registry.catalog();
    let namespaced = catalog.all().filter(|resource| resource.namespaced && resource.verbs.contains(&"delete"));
    for resource in namespaced {
        let query = ListQuery { namespace: Some(namespace.into()), ..ListQuery::default() };
        let Ok(listed) = core.store.list(&resource.group_resource(), &query) else { continue };
        for item in listed.items {
            delete(internal, resource, &item).await;
            if let Some(item) = core.store.get(&item.key) {
                count_remaining(&mut left, resource, &item);
            }
        }
    }
    left
}

async fn delete(internal: &LoopbackClient, resource: &Arc<ServedResource>, item: &Stored) {
    if item.deleting {
        return;
    }
    let options =
        DeleteOptions { propagation_policy: Some(DeletionPropagation::Background), ..DeleteOptions::default() };
    let target = LoopbackTarget::for_object(resource, &item.key);
    if let Err(error) = internal.delete(&target, &options).await
        && error.code != 404
    {
        tracing::warn!(kind = %resource.kind, namespace = %item.key.namespace, name = %item.key.name, %error, "failed to delete object");
    }
}

fn count_remaining(left: &mut RemainingContent, resource: &ServedResource, item: &Stored) {
    // The empty core group also has a dot.
    let name = format!("{}.{}", resource.plural, resource.gv.group);
    let entry = left.entry(name).or_default();
    entry.0 += 1;
    for finalizer in item.value().finalizers() {
        *entry.1.entry(finalizer.to_owned()).or_default() += 1;
    }
}

/// Removes the finalizer. False if it has to be tried again.
async fn remove_kubernetes_finalizer(internal: &LoopbackClient, namespace: &Stored) -> bool {
    let target = LoopbackTarget::namespace(&namespace.key.name, "finalize");
    let change = |namespace: &mut Value| {
        if let Some(Value::Array(finalizers)) = namespace.pointer_mut("/spec/finalizers") {
            finalizers.retain(|finalizer| finalizer != KUBERNETES_FINALIZER);
        }
    };
    match internal.change(&target, &change).await {
        Ok(_) => true,
        Err(error) => error.code == 404,
    }
}

/// Writes why a namespace is not deleted yet, with kube-controller-manager's messages.
async fn write_deletion_conditions(internal: &LoopbackClient, namespace: &Stored, left: &RemainingContent) {
    let now = internal.now();
    let conditions = deletion_conditions(left, &now);
    let change = move |object: &mut Value| {
        let old: Vec<Value> =
            object.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let same = |condition: &Value| {
            let of_type = old.iter().find(|known| known.get("type") == condition.get("type"));
            of_type.filter(|known| known.get("message") == condition.get("message")).cloned()
        };
        let merged: Vec<Value> =
            conditions.iter().map(|condition| same(condition).unwrap_or_else(|| condition.clone())).collect();
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            status.insert("conditions".into(), merged.into());
        }
    };
    // After a write conflict the next round writes it again.
    let _ = internal.change(&LoopbackTarget::namespace(&namespace.key.name, "status"), &change).await;
}

fn deletion_conditions(left: &RemainingContent, now: &str) -> Vec<Value> {
    let content: Vec<String> =
        left.iter().map(|(resource, (count, _))| format!("{resource} has {count} resource instances")).collect();
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, count) in left.values().flat_map(|(_, finalizers)| finalizers) {
        *finalizers.entry(name).or_default() += count;
    }
    let remaining: Vec<String> =
        finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
    let condition = |kind: &str, status: &str, reason: &str, message: String| json!({ "type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message });
    let content_message = format!("Some resources are remaining: {}", content.join(", "));
    let (finalizing, finalizer_message) = if remaining.is_empty() {
        ("False", "All content-preserving finalizers finished".to_owned())
    } else {
        ("True", format!("Some content in the namespace has finalizers remaining: {}", remaining.join(", ")))
    };
    let finalizer_reason = if finalizing == "True" { "SomeFinalizersRemain" } else { "ContentHasNoFinalizers" };
    vec![
        condition(
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered".into(),
        ),
        condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".into(),
        ),
        condition(
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".into(),
        ),
        condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", content_message),
        condition("NamespaceFinalizersRemaining", finalizing, finalizer_reason, finalizer_message),
    ]
}
