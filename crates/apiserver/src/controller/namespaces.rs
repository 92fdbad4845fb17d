//! Empties namespaces that are being deleted, and lets them go when they are empty.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::{Change, Feed};
use crate::{
    api::{GroupResource, meta::Meta},
    codec::query::{DeleteOptions, Propagation},
    core::Core,
    handler::internal::{Internal, Target},
    registry::Resource,
    store::{ListQuery, Stored},
};

/// Finalizers of content are somebody else's business: so often we look whether they are done.
const PATIENCE: Duration = Duration::from_millis(100);
/// Finalizers that are done sooner are not worth a report.
const QUIET: Duration = Duration::from_secs(1);
const KUBERNETES: &str = "kubernetes";

/// Follows all namespaces.
pub async fn run(core: Arc<Core>) {
    let mut feed = Feed::new(&core.store, GroupResource::new("", "namespaces"));
    let mut emptying = JoinSet::new();
    // By uid: another namespace of the same name may come and go before the end of the first one's task is noticed.
    let mut busy: HashSet<Arc<str>> = HashSet::new();
    loop {
        tokio::select! {
            change = feed.next() => match change {
                Change::Set(namespace) if namespace.deleting && busy.insert(Arc::clone(&namespace.uid)) => {
                    let (core, uid) = (Arc::clone(&core), Arc::clone(&namespace.uid));
                    emptying.spawn(async move {
                        empty(core, &namespace.key.name).await;
                        uid
                    });
                }
                Change::Gone(namespace) => sweep(&core, &namespace.key.name).await,
                _ => {}
            },
            Some(done) = emptying.join_next() => if let Ok(uid) = done {
                busy.remove(&uid);
            },
        }
    }
}

/// Deletes what was created while its namespace went, by somebody who had seen it before.
async fn sweep(core: &Arc<Core>, name: &str) {
    if core.namespace(name).is_none() {
        delete_content(core, &internal(core), name).await;
    }
}

fn internal(core: &Arc<Core>) -> Internal {
    Internal::new(core, "system:serviceaccount:kube-system:namespace-controller").managing("kube-controller-manager")
}

/// Deletes what is in a namespace until nothing is, then takes away our finalizer.
async fn empty(core: Arc<Core>, name: &str) {
    let internal = internal(&core);
    let begun = Instant::now();
    loop {
        let Some(namespace) = core.namespace(name).filter(|namespace| namespace.deleting) else { return };
        let left = delete_content(&core, &internal, name).await;
        if left.is_empty() {
            if finalize(&internal, &namespace).await {
                return;
            }
        } else if begun.elapsed() > QUIET {
            report(&internal, &namespace, &left).await;
        }
        tokio::time::sleep(PATIENCE).await;
    }
}

/// What is left in a namespace: how many objects of which resource, and their finalizers.
type Left = BTreeMap<String, (usize, BTreeMap<String, usize>)>;

async fn delete_content(core: &Core, internal: &Internal, namespace: &str) -> Left {
    let mut left = Left::new();
    let catalog = core.registry.catalog();
    let namespaced = catalog.all().filter(|resource| resource.namespaced && resource.verbs.contains(&"delete"));
    for resource in namespaced {
        let query = ListQuery { namespace: Some(namespace.into()), ..ListQuery::default() };
        let Ok(listed) = core.store.list(&resource.group_resource(), &query) else { continue };
        for item in listed.items {
            delete(internal, resource, &item).await;
            if let Some(item) = core.store.get(&item.key) {
                note(&mut left, resource, &item);
            }
        }
    }
    left
}

async fn delete(internal: &Internal, resource: &Arc<Resource>, item: &Stored) {
    if item.deleting {
        return;
    }
    let options = DeleteOptions { propagation_policy: Some(Propagation::Background), ..DeleteOptions::default() };
    let target = Target::of(resource, &item.key);
    if let Err(error) = internal.delete(&target, &options).await
        && error.code != 404
    {
        tracing::warn!(kind = %resource.kind, namespace = %item.key.namespace, name = %item.key.name, %error, "cannot delete");
    }
}

fn note(left: &mut Left, resource: &Resource, item: &Stored) {
    // Also the core group, which is empty, is set off by a dot.
    let name = format!("{}.{}", resource.plural, resource.gv.group);
    let entry = left.entry(name).or_default();
    entry.0 += 1;
    for finalizer in item.value().finalizers() {
        *entry.1.entry(finalizer.to_owned()).or_default() += 1;
    }
}

/// Takes our finalizer away. False if it has to be tried again.
async fn finalize(internal: &Internal, namespace: &Stored) -> bool {
    let target = Target::namespace(&namespace.key.name, "finalize");
    let change = |namespace: &mut Value| {
        if let Some(Value::Array(finalizers)) = namespace.pointer_mut("/spec/finalizers") {
            finalizers.retain(|finalizer| finalizer != KUBERNETES);
        }
    };
    match internal.change(&target, &change).await {
        Ok(_) => true,
        Err(error) => error.code == 404,
    }
}

/// Says what keeps a namespace, in kube-controller-manager's words.
async fn report(internal: &Internal, namespace: &Stored, left: &Left) {
    let now = internal.now();
    let conditions = conditions(left, &now);
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
    // Somebody else's change comes back to us; the next round says it again.
    let _ = internal.change(&Target::namespace(&namespace.key.name, "status"), &change).await;
}

fn conditions(left: &Left, now: &str) -> Vec<Value> {
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
    let (finalizing, finalizer_message) = match remaining.is_empty() {
        true => ("False", "All content-preserving finalizers finished".to_owned()),
        false => ("True", format!("Some content in the namespace has finalizers remaining: {}", remaining.join(", "))),
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
