//! Who owns which object, and which trace it names, as it is in the cluster now.

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

use super::{Cluster, Error, lock, names, stamp};
use crate::query::objects::{Key, Live, LiveObject, Seen};

/// Objects of one kind that are looked at.
const MOST: u32 = 500;
/// What they may take as JSON: pods are 5 to 20 KB each.
const LONGEST: usize = 32 << 20;
/// Kinds that are looked at.
const KINDS: usize = 20;
/// How long each of them may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// A kind that a cluster is asked for, in a namespace or wherever it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Question {
    api_version: String,
    kind: String,
    namespace: Option<String>,
}

/// What a cluster says of a kind.
#[derive(Clone)]
pub(super) enum Answer {
    List {
        objects: Arc<[LiveObject]>,
        /// Where these are all.
        seen: Option<Seen>,
    },
    /// It has no such kind, or may not be asked for it.
    Nothing,
    /// Nobody answers.
    Silence,
}

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
        let Some(client) = self.client_for_lists().await else { return Live::default() };
        let question = |(api_version, kind)| Question { api_version, kind, namespace: namespace.map(str::to_owned) };
        let questions: Vec<_> = kinds.into_iter().map(question).collect();
        let answers = questions.iter().map(|it| self.shared.lists.get(it.clone(), || self.list(&client, it)));
        let answers = join_all(answers).await;
        if !answers.is_empty() && answers.iter().all(|answer| matches!(answer, Answer::Silence)) {
            self.forget_client();
        }
        let mut live = Live { unasked, ..Live::default() };
        for answer in answers {
            let Answer::List { objects, seen } = answer else { continue };
            live.objects.extend_from_slice(&objects);
            live.seen.extend(seen);
        }
        live
    }

    async fn client_for_lists(&self) -> Option<Client> {
        let client = timeout(PATIENCE, self.client()).await.unwrap_or(Err(Error::Late));
        client.inspect_err(|error| tracing::debug!(%error, "the cluster cannot be asked which objects there are")).ok()
    }

    /// The objects of a kind. One that is slow, as a custom resource whose webhook hangs, holds up no other.
    async fn list(&self, client: &Client, question: &Question) -> Answer {
        let answer = timeout(PATIENCE, self.list_kind(client, question)).await.unwrap_or(Err(Error::Late));
        answer.unwrap_or_else(|error| {
            tracing::debug!(%error, ?question, "the cluster does not say which objects there are");
            if error.is_silence() { Answer::Silence } else { Answer::Nothing }
        })
    }

    async fn list_kind(&self, client: &Client, question: &Question) -> Result<Answer, Error> {
        let Question { api_version, kind, namespace } = question;
        let (resource, namespaced) = self.resource(client, api_version, kind).await?;
        let namespace = match (namespaced, namespace.as_deref()) {
            (true, Some("")) => return Ok(Answer::Nothing),
            (true, namespace) => namespace,
            (false, _) => None,
        };
        let request = kube::core::Request::new(DynamicObject::url_path(&resource, namespace));
        let params = ListParams::default().limit(MOST);
        let has_status = stamp::has_status(api_version, kind);
        let request = match has_status {
            true => request.list(&params),
            false => request.list_metadata(&params),
        };
        let list = read(client, request.map_err(kube::Error::BuildRequest)?).await?;
        let is_whole = list.metadata.continue_.unwrap_or_default().is_empty();
        let items = list.items.into_iter().flatten();
        let items = items.map(|item| Item { status: item.status.filter(|_| has_status), ..item });
        let objects = items.map(|item| live_object(api_version, kind, item)).collect();
        let namespace = namespace.map(str::to_owned);
        let seen = Seen { api_version: api_version.clone(), kind: kind.clone(), namespace };
        Ok(Answer::List { objects, seen: is_whole.then_some(seen) })
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

/// The answer to a request, if it is a list and no longer than may be.
async fn read(client: &Client, request: Request<Vec<u8>>) -> Result<List, Error> {
    let answer = client.send(request.map(Body::from)).await?;
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
