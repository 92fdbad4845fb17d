//! Keeps the RBAC index up to date with the store, and writes the rules of aggregated ClusterRoles.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};

use super::{ObjectChange, ObjectFeed};
use crate::{
    api::{GroupResource, ObjectKey},
    auth::RbacAuthorizer,
    handler::loopback::{LoopbackClient, LoopbackTarget},
    server_state::ServerState,
    store::ObjectStore,
};

const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
const RBAC_COLLECTIONS: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
/// Changes that are queued; the rest waits in the watches.
const CHANGE_QUEUE_CAPACITY: usize = 64;

pub async fn run(core: Arc<ServerState>) {
    let (sender, mut news) = mpsc::channel(CHANGE_QUEUE_CAPACITY);
    let mut feeds = JoinSet::new();
    for collection in RBAC_COLLECTIONS {
        let resource = GroupResource::new(RBAC_GROUP, collection);
        let mut feed = ObjectFeed::new(&core.store, resource.clone());
        let sender = sender.clone();
        feeds.spawn(async move { while sender.send((resource.clone(), feed.next().await)).await.is_ok() {} });
    }
    let internal = LoopbackClient::new(&core, "system:serviceaccount:kube-system:clusterrole-aggregation-controller");
    let mut index = RbacUpdater { rbac: &core.access.rbac, store: &core.store, known: HashSet::new() };
    let mut stale = false;
    while let Some((resource, change)) = news.recv().await {
        index.apply_change(&resource, change);
        stale |= &*resource.resource == "clusterroles";
        // Once for all queued changes, whatever kind comes last.
        if stale && news.is_empty() {
            stale = false;
            write_aggregated_roles(&core, &internal).await;
        }
    }
}

/// The index, and the objects in it, so that unobserved deletions can be removed.
struct RbacUpdater<'a> {
    rbac: &'a RbacAuthorizer,
    store: &'a ObjectStore,
    known: HashSet<ObjectKey>,
}

impl RbacUpdater<'_> {
    fn apply_change(&mut self, resource: &GroupResource, change: ObjectChange) {
        match change {
            ObjectChange::Reset => self.remove_deleted(resource),
            ObjectChange::Set(object) => {
                self.rbac.apply(resource, &object.value());
                self.known.insert(object.key.clone());
            }
            ObjectChange::Deleted(object) => {
                self.rbac.remove(resource, &object.key.namespace, &object.key.name);
                self.known.remove(&object.key);
            }
        }
    }

    /// A binding that was deleted unobserved must not remain in effect.
    fn remove_deleted(&mut self, resource: &GroupResource) {
        let gone = |key: &ObjectKey| key.resource == *resource && self.store.get(key).is_none();
        for key in self.known.extract_if(gone) {
            self.rbac.remove(resource, &key.namespace, &key.name);
        }
    }
}

/// Writes the rules of aggregated roles where they differ from the stored ones.
async fn write_aggregated_roles(core: &ServerState, internal: &LoopbackClient) {
    let catalog = core.registry.catalog();
    let roles = GroupResource::new(RBAC_GROUP, "clusterroles");
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
        if let Err(error) = internal.change(&LoopbackTarget::for_object(resource, &key), &change).await {
            tracing::warn!(kind = "ClusterRole", %name, %error, "failed to aggregate rules");
        }
    }
}

#[cfg(test)]
mod tests;
