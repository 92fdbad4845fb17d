//! Writes whose answers are seen at once: each goes to the API server and into the [view](View) of its kind.

use std::{fmt::Debug, future::Future, sync::Arc};

use futures_util::future::join_all;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::MANAGER;
use crate::{
    error::{Error, Result},
    view::View,
};

/// What can be written here: something in a namespace.
pub trait Written:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug
{
}

impl<K> Written for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug
{
}

fn api<K: Written>(client: &Client, object: &K) -> Api<K> {
    Api::namespaced(client.clone(), &object.namespace().unwrap_or_default())
}

fn in_our_name() -> PostParams {
    PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() }
}

/// Creates it.
pub async fn create<K: Written>(client: &Client, view: &View<K>, object: &K) -> Result<Arc<K>> {
    let created = api(client, object).create(&in_our_name(), object).await?;
    Ok(view.note(created))
}

/// Writes it as it stands in `object`, unless somebody wrote it since.
pub async fn replace<K: Written>(client: &Client, view: &View<K>, object: &K) -> Result<Arc<K>> {
    let written = api(client, object).replace(&object.name_any(), &in_our_name(), object).await?;
    Ok(view.note(written))
}

/// Deletes it, and nothing that took its name since. What is gone already is well.
pub async fn delete<K: Written>(client: &Client, view: &View<K>, object: &K) -> Result<()> {
    let preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
    // What belongs to it goes too: of a job, that would be left without a word.
    let options = DeleteParams { preconditions, ..DeleteParams::background() };
    match api(client, object).delete(&object.name_any(), &options).await.map_err(Error::from) {
        Ok(answer) => view.deleted(object, answer.left()),
        Err(error) if error.is_not_found() => view.forget(object),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// What has the object's name now, whatever the watch has told so far.
pub async fn fresh<K: Written>(client: &Client, view: &View<K>, object: &K) -> Result<Option<Arc<K>>> {
    Ok(api(client, object).get_opt(&object.name_any()).await?.map(|found| view.note(found)))
}

/// Merges this into it.
pub async fn merge<K: Written>(client: &Client, view: &View<K>, object: &K, patch: &Value) -> Result<Arc<K>> {
    let options = PatchParams { field_manager: in_our_name().field_manager, ..PatchParams::default() };
    let patched = api(client, object).patch(&object.name_any(), &options, &Patch::Merge(patch)).await?;
    Ok(view.note(patched))
}

/// Writes its status as it stands in `object`, unless somebody wrote the object since.
pub async fn status<K: Written>(client: &Client, view: &View<K>, object: &K) -> Result<Arc<K>> {
    let written = api(client, object).replace_status(&object.name_any(), &in_our_name(), object).await?;
    Ok(view.note(written))
}

/// Does this for one item first, then for twice as many at once, and so on; no more are begun after a failure. What would fail for
/// all alike is so not tried for all.
pub async fn slow_start<T, F>(items: Vec<T>, act: impl Fn(T) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let (mut items, mut batch) = (items.into_iter().peekable(), 1);
    while items.peek().is_some() {
        let now: Vec<_> = items.by_ref().take(batch).map(&act).collect();
        join_all(now).await.into_iter().collect::<Result<()>>()?;
        batch = (batch * 2).min(MOST_AT_ONCE);
    }
    Ok(())
}

/// As many requests under way as kube-controller-manager allows itself.
const MOST_AT_ONCE: usize = 500;
