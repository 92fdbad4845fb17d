//! Write-through: every write goes to the API server, and its response into the [informer](SharedInformer).

use std::{fmt::Debug, future::Future, sync::Arc};

use futures_util::future::join_all;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::FIELD_MANAGER;
use crate::{
    error::{ClusterError, Result},
    informer::SharedInformer,
};

/// A namespaced kind that can be written here.
pub trait NamespacedObject:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug
{
}

impl<K> NamespacedObject for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug
{
}

fn api<K: NamespacedObject>(client: &Client, object: &K) -> Api<K> {
    Api::namespaced(client.clone(), &object.namespace().unwrap_or_default())
}

fn post_params() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

pub async fn create<K: NamespacedObject>(client: &Client, view: &SharedInformer<K>, object: &K) -> Result<Arc<K>> {
    let created = api(client, object).create(&post_params(), object).await?;
    Ok(view.record_write(created))
}

/// Replaces an object at its resource version.
pub async fn replace<K: NamespacedObject>(client: &Client, view: &SharedInformer<K>, object: &K) -> Result<Arc<K>> {
    let written = api(client, object).replace(&object.name_any(), &post_params(), object).await?;
    Ok(view.record_write(written))
}

/// Deletes an object, with its uid as a precondition. An object that is already gone is no error.
pub async fn delete<K: NamespacedObject>(client: &Client, view: &SharedInformer<K>, object: &K) -> Result<()> {
    let preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
    // In the background: for some kinds, such as Jobs, the default would orphan the children.
    let options = DeleteParams { preconditions, ..DeleteParams::background() };
    match api(client, object).delete(&object.name_any(), &options).await.map_err(ClusterError::from) {
        Ok(answer) => view.record_deletion(object, answer.left()),
        Err(error) if error.is_not_found() => view.remove(object),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Gets the live object of this name, whatever the watch has shown so far.
pub async fn get_latest<K: NamespacedObject>(
    client: &Client,
    view: &SharedInformer<K>,
    object: &K,
) -> Result<Option<Arc<K>>> {
    Ok(api(client, object).get_opt(&object.name_any()).await?.map(|found| view.record_write(found)))
}

pub async fn merge_patch<K: NamespacedObject>(
    client: &Client,
    view: &SharedInformer<K>,
    object: &K,
    patch: &Value,
) -> Result<Arc<K>> {
    let options = PatchParams { field_manager: post_params().field_manager, ..PatchParams::default() };
    let patched = api(client, object).patch(&object.name_any(), &options, &Patch::Merge(patch)).await?;
    Ok(view.record_write(patched))
}

/// Replaces the status of an object at its resource version.
pub async fn replace_status<K: NamespacedObject>(
    client: &Client,
    view: &SharedInformer<K>,
    object: &K,
) -> Result<Arc<K>> {
    let written = api(client, object).replace_status(&object.name_any(), &post_params(), object).await?;
    Ok(view.record_write(written))
}

/// Applies a function to one item, then to twice as many concurrently, and so on; stops after a failure. A
/// failure that all items have in common is so met only a few times.
pub async fn slow_start_batch<T, F>(items: Vec<T>, act: impl Fn(T) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let mut items = items.into_iter().peekable();
    let mut batch = 1;
    while items.peek().is_some() {
        let now: Vec<_> = items.by_ref().take(batch).map(&act).collect();
        join_all(now).await.into_iter().collect::<Result<()>>()?;
        batch = (batch * 2).min(MAX_CONCURRENT_REQUESTS);
    }
    Ok(())
}

/// The limit of requests in flight: kube-controller-manager's.
const MAX_CONCURRENT_REQUESTS: usize = 500;
