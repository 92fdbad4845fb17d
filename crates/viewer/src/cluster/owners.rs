//! Who owns which object, and which trace it names, as it is in the cluster now.

use std::time::Duration;

use futures_util::future::join_all;
use http::Request;
use http_body_util::{BodyExt as _, Limited};
use kube::{
    Client, Resource as _,
    api::ListParams,
    client::Body,
    core::{ApiResource, DynamicObject, GroupVersionKind, ListMeta, ObjectMeta},
    discovery::{Scope, oneshot},
};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::{Cluster, Error, lock, names, stamp};
use crate::query::objects::{Key, Live, LiveObject};

/// Objects of one kind that are looked at.
const MOST: u32 = 500;
/// What they may take as JSON: pods are 5 to 20 KB each.
const LONGEST: usize = 32 << 20;
/// Kinds that are looked at.
const KINDS: usize = 20;
/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(3);

impl Cluster {
    /// All objects of these kinds, by `apiVersion` and kind, in a namespace (an empty one: in none), or wherever they are. What cannot be a name is in no cluster, and of
    /// many kinds the first are asked for.
    pub(crate) async fn objects(&self, namespace: Option<&str>, mut kinds: Vec<(String, String)>) -> Live {
        if namespace.is_some_and(|namespace| !namespace.is_empty() && !names::is_namespace(namespace)) {
            return Live::default();
        }
        // The annotations of a Secret can hold all that is in it.
        kinds.retain(|(version, kind)| names::is_kind(version, kind) && kind != "Secret");
        let unasked = kinds.drain(kinds.len().min(KINDS)..).map(|(_, kind)| kind).collect();
        match timeout(PATIENCE, self.list(namespace, kinds)).await.unwrap_or(Err(Error::Late)) {
            Ok(live) => Live { unasked, ..live },
            Err(error) => {
                tracing::debug!(%error, "the cluster does not say which objects there are");
                self.forget_client();
                Live::default()
            }
        }
    }

    async fn list(&self, namespace: Option<&str>, kinds: Vec<(String, String)>) -> Result<Live, Error> {
        let client = self.client().await?;
        let lists = kinds.iter().map(|(version, kind)| self.list_kind(&client, namespace, version, kind));
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
        let namespace = match (namespaced, namespace) {
            (true, Some("")) => return None,
            (true, namespace) => namespace,
            (false, _) => None,
        };
        let request = kube::core::Request::new(DynamicObject::url_path(&resource, namespace));
        let params = ListParams::default().limit(MOST);
        let has_status = stamp::has_status(api_version, kind);
        let question = match has_status {
            true => request.list(&params),
            false => request.list_metadata(&params),
        };
        let list = read(client, question.ok()?).await.ok()?;
        let is_whole = list.metadata.continue_.unwrap_or_default().is_empty();
        let items = list.items.into_iter().flatten();
        let items = items.map(|item| Item { status: item.status.filter(|_| has_status), ..item });
        let objects = items.map(|item| live_object(api_version, kind, item)).collect();
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

/// A list, as far as it is looked at: what is specified is passed over.
#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMeta,
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    metadata: ObjectMeta,
    /// Not there where only the metadata were asked for.
    status: Option<Value>,
}

/// The answer to a question, if it is a list and no longer than may be.
async fn read(client: &Client, question: Request<Vec<u8>>) -> Result<List, Error> {
    let answer = client.send(question.map(Body::from)).await?;
    if !answer.status().is_success() {
        return Err(Error::Refused(answer.status()));
    }
    let body = Limited::new(answer.into_body(), LONGEST).collect().await.map_err(|_| Error::Unreadable)?.to_bytes();
    // What is wrong with it is not said: that could be a part of it.
    serde_json::from_slice(&body).map_err(|_| Error::Unreadable)
}

fn live_object(api_version: &str, kind: &str, Item { metadata, status }: Item) -> LiveObject {
    let stamp = stamp::stamp(kind, &metadata, status.as_ref());
    let (namespace, name) = (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
    let owner = metadata.owner_references.into_iter().flatten().find(|owner| owner.controller == Some(true));
    let owner = owner.map(|owner| Key { kind: owner.kind, namespace: namespace.clone(), name: owner.name });
    LiveObject {
        key: Key { kind: kind.to_owned(), namespace, name },
        api_version: api_version.to_owned(),
        uid: metadata.uid.unwrap_or_default(),
        owner,
        stamp,
    }
}
