//! Owner references and trace annotations of the objects that are in the cluster now.

use std::{sync::Arc, time::Duration};

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

use super::{ClusterReadError, ClusterReader, stamp, validation};
use crate::query::objects::{ListedKind, LiveObject, LiveObjects, ObjectId};

/// Objects that are read of one kind.
const MAX_OBJECTS_PER_KIND: u32 = 500;
/// Size of a list as JSON: pods are 5 to 20 KB each.
const MAX_LIST_BYTES: usize = 32 << 20;
/// Kinds that are listed for one request.
const MAX_KINDS: usize = 20;
/// How long the list of one kind may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);

/// A kind to list, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct KindQuery {
    api_version: String,
    kind: String,
    namespace: Option<String>,
}

/// The result of listing a kind.
#[derive(Clone)]
pub(super) enum KindListing {
    List {
        objects: Arc<[LiveObject]>,
        seen: Option<ListedKind>,
    },
    /// The kind does not exist in the cluster, or listing it is forbidden.
    Unavailable,
    Unreachable,
}

impl ClusterReader {
    /// Lists all objects of these kinds, given by `apiVersion` and kind, in a namespace (empty: cluster-scoped)
    /// or in all. Invalid names are skipped, and of too many kinds the first are listed.
    pub(crate) async fn list_objects(&self, namespace: Option<&str>, mut kinds: Vec<(String, String)>) -> LiveObjects {
        if namespace.is_some_and(|namespace| !namespace.is_empty() && !validation::is_namespace(namespace)) {
            return LiveObjects::default();
        }
        // The annotations of a Secret may repeat its data.
        kinds.retain(|(version, kind)| validation::is_kind(version, kind) && kind != "Secret");
        let unasked = kinds.drain(kinds.len().min(MAX_KINDS)..).map(|(_, kind)| kind).collect();
        let Some(client) = self.client_for_lists().await else { return LiveObjects::default() };
        let question = |(api_version, kind)| KindQuery { api_version, kind, namespace: namespace.map(str::to_owned) };
        let questions: Vec<_> = kinds.into_iter().map(question).collect();
        let answers = questions
            .iter()
            .map(|it| self.state.lists.get_or_fetch(it.clone(), || self.list_or_unavailable(&client, it)));
        let answers = join_all(answers).await;
        if !answers.is_empty() && answers.iter().all(|answer| matches!(answer, KindListing::Unreachable)) {
            self.forget_client();
        }
        let mut live = LiveObjects { skipped_kinds: unasked, ..LiveObjects::default() };
        for answer in answers {
            let KindListing::List { objects, seen } = answer else { continue };
            live.objects.extend_from_slice(&objects);
            live.listed_kinds.extend(seen);
        }
        live
    }

    async fn client_for_lists(&self) -> Option<Client> {
        let client = timeout(LIST_TIMEOUT, self.client()).await.unwrap_or(Err(ClusterReadError::Timeout));
        client.inspect_err(|error| tracing::debug!(%error, "failed to connect to the cluster to list objects")).ok()
    }

    /// Lists the objects of a kind. A slow list, such as one behind a conversion webhook that hangs, delays no
    /// other kind.
    async fn list_or_unavailable(&self, client: &Client, question: &KindQuery) -> KindListing {
        let answer =
            timeout(LIST_TIMEOUT, self.list_kind(client, question)).await.unwrap_or(Err(ClusterReadError::Timeout));
        answer.unwrap_or_else(|error| {
            tracing::debug!(%error, ?question, "failed to list objects");
            if error.is_unreachable() { KindListing::Unreachable } else { KindListing::Unavailable }
        })
    }

    async fn list_kind(&self, client: &Client, question: &KindQuery) -> Result<KindListing, ClusterReadError> {
        let KindQuery { api_version, kind, namespace } = question;
        let (resource, namespaced) = self.discover_resource(client, api_version, kind).await?;
        let namespace = match (namespaced, namespace.as_deref()) {
            (true, Some("")) => return Ok(KindListing::Unavailable),
            (true, namespace) => namespace,
            (false, _) => None,
        };
        let request = kube::core::Request::new(DynamicObject::url_path(&resource, namespace));
        let params = ListParams::default().limit(MAX_OBJECTS_PER_KIND);
        let has_status = stamp::has_status(api_version, kind);
        let request = if has_status { request.list(&params) } else { request.list_metadata(&params) };
        let list = read_list(client, request.map_err(kube::Error::BuildRequest)?).await?;
        let is_whole = list.metadata.continue_.unwrap_or_default().is_empty();
        let items = list.items.into_iter().flatten();
        let items = items.map(|item| LiveObjectItem { status: item.status.filter(|_| has_status), ..item });
        let objects = items.map(|item| live_object(api_version, kind, item)).collect();
        let namespace = namespace.map(str::to_owned);
        let seen = ListedKind { api_version: api_version.clone(), kind: kind.clone(), namespace };
        Ok(KindListing::List { objects, seen: is_whole.then_some(seen) })
    }

    async fn discover_resource(
        &self,
        client: &Client,
        api_version: &str,
        kind: &str,
    ) -> Result<(ApiResource, bool), ClusterReadError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        if let Some(known) = self.state.kinds.lock().get(&wanted) {
            return Ok(known.clone());
        }
        let (resource, capabilities) = oneshot::pinned_kind(client, &wanted).await?;
        let known = (resource, capabilities.scope == Scope::Namespaced);
        self.state.kinds.lock().insert(wanted, known.clone());
        Ok(known)
    }
}

/// The fields of a list that are used; specs are skipped.
#[derive(Deserialize)]
struct LiveObjectList {
    #[serde(default)]
    metadata: ListMeta,
    items: Option<Vec<LiveObjectItem>>,
}

#[derive(Deserialize)]
struct LiveObjectItem {
    #[serde(default)]
    metadata: ObjectMeta,
    /// Absent where only the metadata was requested.
    status: Option<Value>,
}

/// Decodes a response, provided that it is a list within the size limit.
async fn read_list(client: &Client, request: Request<Vec<u8>>) -> Result<LiveObjectList, ClusterReadError> {
    let answer = client.send(request.map(Body::from)).await?;
    if !answer.status().is_success() {
        return Err(ClusterReadError::Refused(answer.status()));
    }
    let body = Limited::new(answer.into_body(), MAX_LIST_BYTES)
        .collect()
        .await
        .map_err(|_| ClusterReadError::Unreadable)?
        .to_bytes();
    // The parse error is not reported: it could quote the object.
    serde_json::from_slice(&body).map_err(|_| ClusterReadError::Unreadable)
}

fn live_object(api_version: &str, kind: &str, LiveObjectItem { metadata, status }: LiveObjectItem) -> LiveObject {
    let stamp = stamp::read_stamp(kind, &metadata, status.as_ref());
    let namespace = metadata.namespace.unwrap_or_default();
    let name = metadata.name.unwrap_or_default();
    let owner = metadata.owner_references.into_iter().flatten().find(|owner| owner.controller == Some(true));
    let owner = owner.map(|owner| ObjectId { kind: owner.kind, namespace: namespace.clone(), name: owner.name });
    LiveObject {
        key: ObjectId { kind: kind.to_owned(), namespace, name },
        api_version: api_version.to_owned(),
        uid: metadata.uid.unwrap_or_default(),
        owner,
        stamp,
    }
}
