//! Keeps the index of RBAC as new as the store, and aggregated ClusterRoles as their rules say.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};

use super::{Change, Feed};
use crate::{
    api::{GroupResource, ObjectKey},
    auth::Rbac,
    core::Core,
    handler::internal::{Internal, Target},
    store::Store,
};

const GROUP: &str = "rbac.authorization.k8s.io";
const COLLECTIONS: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
/// Changes that wait; watches wait with the rest.
const WAITING: usize = 64;

/// Follows roles and bindings.
pub async fn run(core: Arc<Core>) {
    let (sender, mut news) = mpsc::channel(WAITING);
    let mut feeds = JoinSet::new();
    for collection in COLLECTIONS {
        let resource = GroupResource::new(GROUP, collection);
        let (mut feed, sender) = (Feed::new(&core.store, resource.clone()), sender.clone());
        feeds.spawn(async move { while sender.send((resource.clone(), feed.next().await)).await.is_ok() {} });
    }
    let internal = Internal::new(&core, "system:serviceaccount:kube-system:clusterrole-aggregation-controller");
    let mut index = Index { rbac: &core.access.rbac, store: &core.store, known: HashSet::new() };
    let mut stale = false;
    while let Some((resource, change)) = news.recv().await {
        index.take(&resource, change);
        stale |= &*resource.resource == "clusterroles";
        // Once for all that waits, whatever kind comes last.
        if stale && news.is_empty() {
            stale = false;
            aggregate(&core, &internal).await;
        }
    }
}

/// The index, and what it was told of, so that it forgets what went unseen.
struct Index<'a> {
    rbac: &'a Rbac,
    store: &'a Store,
    known: HashSet<ObjectKey>,
}

impl Index<'_> {
    fn take(&mut self, resource: &GroupResource, change: Change) {
        match change {
            Change::Reset => self.forget_gone(resource),
            Change::Set(object) => {
                self.rbac.apply(resource, &object.value());
                self.known.insert(object.key.clone());
            }
            Change::Gone(object) => {
                self.rbac.remove(resource, &object.key.namespace, &object.key.name);
                self.known.remove(&object.key);
            }
        }
    }

    /// A binding that was deleted while nobody looked must not go on granting.
    fn forget_gone(&mut self, resource: &GroupResource) {
        let gone = |key: &ObjectKey| key.resource == *resource && self.store.get(key).is_none();
        for key in self.known.extract_if(gone) {
            self.rbac.remove(resource, &key.namespace, &key.name);
        }
    }
}

/// Writes the rules of aggregated roles where they differ from what is stored.
async fn aggregate(core: &Core, internal: &Internal) {
    let catalog = core.registry.catalog();
    let roles = GroupResource::new(GROUP, "clusterroles");
    let Some(resource) = catalog.all().find(|resource| resource.group_resource() == roles) else { return };
    for (name, rules) in core.access.rbac.aggregated() {
        let key = ObjectKey::new(roles.clone(), "", &name);
        let rules = Value::Array(rules);
        let stored = core.store.get(&key).map(|stored| stored.value());
        if stored.is_none_or(|stored| stored.get("rules") == Some(&rules)) {
            continue;
        }
        let change = |role: &mut Value| {
            if let Some(role) = role.as_object_mut() {
                role.insert("rules".into(), rules.clone());
            }
        };
        if let Err(error) = internal.change(&Target::of(resource, &key), &change).await {
            tracing::warn!(kind = "ClusterRole", %name, %error, "cannot aggregate");
        }
    }
}

#[cfg(test)]
mod tests;
