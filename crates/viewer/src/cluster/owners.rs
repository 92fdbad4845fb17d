//! Who owns which object, as it is in the cluster now.

use std::{collections::BTreeSet, time::Duration};

use kube::{
    Api, Client, ResourceExt as _,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta},
    discovery::{Scope, oneshot},
};
use tokio::time::timeout;

use super::{Cluster, Error, lock};
use crate::query::objects::{Key, Live, LiveObject};

/// Objects of one kind that are looked at.
const MOST: u32 = 500;
/// Kinds that are looked at.
const KINDS: usize = 20;
/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(3);

impl Cluster {
    /// All objects of these kinds, by `apiVersion` and kind, in a namespace; without one in none.
    pub(crate) async fn objects(&self, namespace: &str, kinds: BTreeSet<(String, String)>) -> Live {
        match timeout(PATIENCE, self.list(namespace, kinds)).await.unwrap_or(Err(Error::Late)) {
            Ok(live) => live,
            Err(error) => {
                tracing::debug!(%error, "the cluster does not say which objects there are");
                self.forget_client();
                Live::default()
            }
        }
    }

    async fn list(&self, namespace: &str, kinds: BTreeSet<(String, String)>) -> Result<Live, Error> {
        let client = self.client().await?;
        let mut live = Live::default();
        for (api_version, kind) in kinds.into_iter().take(KINDS) {
            // A kind that is gone has no objects, and nothing is known of one that may not be asked for.
            let Ok((resource, namespaced)) = self.resource(&client, &api_version, &kind).await else { continue };
            let api: Api<DynamicObject> = match (namespaced, namespace) {
                (true, "") => continue,
                (true, namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                (false, _) => Api::all_with(client.clone(), &resource),
            };
            let Ok(list) = api.list_metadata(&ListParams::default().limit(MOST)).await else { continue };
            if list.metadata.continue_.as_deref().unwrap_or_default().is_empty() {
                live.kinds.insert(kind.clone());
            }
            live.objects.extend(list.items.iter().map(|object| live_object(&api_version, &kind, object)));
        }
        Ok(live)
    }

    async fn resource(&self, client: &Client, api_version: &str, kind: &str) -> Result<(ApiResource, bool), Error> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        if let Some(known) = lock(&self.shared.kinds).get(&wanted) {
            return Ok(known.clone());
        }
        let (resource, capabilities) = oneshot::pinned_kind(client, &wanted).await?;
        let known = (resource, capabilities.scope == Scope::Namespaced);
        lock(&self.shared.kinds).insert(wanted, known.clone());
        Ok(known)
    }
}

fn live_object(api_version: &str, kind: &str, object: &PartialObjectMeta) -> LiveObject {
    let namespace = object.namespace().unwrap_or_default();
    let mut owners = object.owner_references().iter().filter(|owner| owner.controller == Some(true));
    let owner = owners.next().map(|owner| Key {
        kind: owner.kind.clone(),
        namespace: namespace.clone(),
        name: owner.name.clone(),
    });
    LiveObject {
        key: Key { kind: kind.to_owned(), namespace, name: object.name_any() },
        api_version: api_version.to_owned(),
        uid: object.uid().unwrap_or_default(),
        owner,
    }
}
