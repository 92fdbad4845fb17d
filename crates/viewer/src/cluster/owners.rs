//! Who owns which object, and which trace it names, as it is in the cluster now.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind, ObjectList, PartialObjectMeta},
    discovery::{Scope, oneshot},
};
use serde_json::Value;
use tokio::time::timeout;

use super::{Cluster, Error, lock, names, stamp};
use crate::query::objects::{Key, Live, LiveObject};

/// Objects of one kind that are looked at.
const MOST: u32 = 500;
/// Kinds that are looked at.
const KINDS: usize = 20;
/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(3);

impl Cluster {
    /// All objects of these kinds, by `apiVersion` and kind, in a namespace (an empty one: in none), or wherever they are. What cannot be a name is in no cluster.
    pub(crate) async fn objects(&self, namespace: Option<&str>, mut kinds: BTreeSet<(String, String)>) -> Live {
        if namespace.is_some_and(|namespace| !namespace.is_empty() && !names::is_namespace(namespace)) {
            return Live::default();
        }
        kinds.retain(|(version, kind)| names::is_kind(version, kind));
        match timeout(PATIENCE, self.list(namespace, kinds)).await.unwrap_or(Err(Error::Late)) {
            Ok(live) => live,
            Err(error) => {
                tracing::debug!(%error, "the cluster does not say which objects there are");
                self.forget_client();
                Live::default()
            }
        }
    }

    async fn list(&self, namespace: Option<&str>, kinds: BTreeSet<(String, String)>) -> Result<Live, Error> {
        let client = self.client().await?;
        let kinds = kinds.iter().take(KINDS);
        let lists = kinds.map(|(version, kind)| self.list_kind(&client, namespace, version, kind));
        let mut live = Live::default();
        for (kind, objects, is_whole) in join_all(lists).await.into_iter().flatten() {
            if is_whole {
                live.kinds.insert(kind);
            }
            live.objects.extend(objects);
        }
        Ok(live)
    }

    /// The objects of a kind, and whether these are all. A kind that is gone has none, and nothing is known of one that may not be asked for.
    async fn list_kind(
        &self,
        client: &Client,
        namespace: Option<&str>,
        api_version: &str,
        kind: &str,
    ) -> Option<(String, Vec<LiveObject>, bool)> {
        let (resource, namespaced) = self.resource(client, api_version, kind).await.ok()?;
        let api: Api<DynamicObject> = match (namespaced, namespace) {
            (true, Some("")) => return None,
            (true, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
            (true, None) | (false, _) => Api::all_with(client.clone(), &resource),
        };
        let params = ListParams::default().limit(MOST);
        let answer = match stamp::has_status(api_version, kind) {
            true => api.list(&params).await.map(|list| read(api_version, kind, &list)),
            false => api.list_metadata(&params).await.map(|list| read(api_version, kind, &list)),
        };
        let (objects, is_whole) = answer.ok()?;
        Some((kind.to_owned(), objects, is_whole))
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

/// The objects of a list, and whether these are all.
fn read<K: Resource + Status + Clone>(api_version: &str, kind: &str, list: &ObjectList<K>) -> (Vec<LiveObject>, bool) {
    let objects = list.items.iter().map(|object| live_object(api_version, kind, object)).collect();
    (objects, list.metadata.continue_.as_deref().unwrap_or_default().is_empty())
}

/// An object, of which the status may have been read.
trait Status {
    fn status(&self) -> Option<&Value>;
}

impl Status for DynamicObject {
    fn status(&self) -> Option<&Value> {
        self.data.get("status")
    }
}

impl Status for PartialObjectMeta<DynamicObject> {
    fn status(&self) -> Option<&Value> {
        None
    }
}

fn live_object<K: Resource + Status>(api_version: &str, kind: &str, object: &K) -> LiveObject {
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
        stamp: stamp::stamp(kind, object.meta(), object.status()),
    }
}
