//! Server-side apply of objects, without a request for those that are up to date.
//!
//! An object is up to date if it contains every desired field and carries the hash of the desired object. The
//! fields show that nobody changed it; the hash shows that nothing is left of an earlier desired state. Any
//! other object is applied with a field manager of our own, which takes over fields of other managers; fields
//! that others added stay.
//!
//! *Guaranteed*: a second run sends no request. *Assumed*: [`ObjectCache`](super::object_cache::ObjectCache) is synced.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    model::{names, object_kind::ObjectKind},
    objects::object_cache::{ObjectCacheWriter, text},
    runtime::{
        error_message::{ErrorDisclosure, api_error_message},
        failure_cause::FailureCause,
    },
};

mod compare;
#[cfg(test)]
mod tests;

#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} {kind:?} {name}")]
pub struct ObjectApplyError {
    kind: ObjectKind,
    name: String,
    verb: &'static str,
    source: Box<kube::Error>,
}

impl ObjectApplyError {
    /// The message for a status or a log.
    pub fn message(&self) -> String {
        let discretion =
            if self.kind == ObjectKind::Secret { ErrorDisclosure::Redacted } else { ErrorDisclosure::Full };
        format!("{self}: {}", api_error_message(&self.source, discretion))
    }

    /// Whether a retry may succeed in a moment: somebody else wrote the object since it was read, or a
    /// binding was applied before the API server's authorizer had seen its role.
    pub fn is_transient(&self) -> bool {
        matches!(&*self.source, kube::Error::Api(status) if status.code == 409 || status.code == 404)
    }
}

impl From<&ObjectApplyError> for FailureCause {
    fn from(error: &ObjectApplyError) -> Self {
        Self::from(&*error.source)
    }
}

/// The desired state of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    pub kind: ObjectKind,
    pub name: String,
    /// All fields that the operator owns.
    pub value: Value,
}

impl DesiredObject {
    /// The object with the annotation of its hash.
    fn with_applied_hash(&self) -> Value {
        let mut value = self.value.clone();
        if let Some(annotations) = annotations_mut(&mut value) {
            annotations.insert(names::APPLIED_HASH_ANNOTATION.to_owned(), self.hash().into());
        }
        value
    }

    fn hash(&self) -> String {
        format!("{:016x}", xxh3_64(self.value.to_string().as_bytes()))
    }
}

#[derive(Clone)]
pub struct ServerSideApplier {
    client: Client,
    namespace: String,
    object_cache: ObjectCacheWriter,
}

impl ServerSideApplier {
    /// Creates an applier for one namespace that compares with the objects in the cache.
    pub fn new(client: Client, namespace: &str, object_cache: ObjectCacheWriter) -> Self {
        Self { client, namespace: namespace.to_owned(), object_cache }
    }

    /// Applies an object if it is not up to date. Returns whether that took a request.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn apply(&self, desired: &DesiredObject) -> Result<bool, ObjectApplyError> {
        let stamped = desired.with_applied_hash();
        let live = self.object_cache.get(desired.kind, &desired.name);
        if live.is_some_and(|live| compare::contains(&live, &stamped)) {
            return Ok(false);
        }
        let (api, params) =
            (desired.kind.api(&self.client, &self.namespace), PatchParams::apply(names::FIELD_MANAGER).force());
        let answer = api.patch(&desired.name, &params, &Patch::Apply(&stamped)).await;
        let answer = answer.map_err(|error| apply_error(desired.kind, &desired.name, "apply", error))?;
        self.object_cache.record_response(desired.kind, &answer);
        Ok(true)
    }

    /// An object as the cache has it.
    pub fn live_object(&self, kind: ObjectKind, name: &str) -> Option<Arc<Value>> {
        self.object_cache.get(kind, name)
    }

    /// Drops an object from the cache that the API server does not have any more.
    pub fn record_absent(&self, kind: ObjectKind, name: &str) {
        self.object_cache.remove_absent(kind, name);
    }

    /// Applies a Deployment, and sets its initial number of replicas. Later numbers are the autoscaler's:
    /// `desired` has no `replicas`, which each apply would reset.
    ///
    /// # Errors
    /// The API server's refusal.
    pub async fn apply_scaled(&self, desired: &DesiredObject, min_replicas: i32) -> Result<bool, ObjectApplyError> {
        let mut first = desired.clone();
        if let Some(spec) = first.value.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("replicas".to_owned(), min_replicas.into());
        }
        match self.object_cache.get(desired.kind, &desired.name) {
            None => {
                self.apply(&first).await?;
                // `REPLICAS_MANAGER` must own the field before our own field manager gives it up.
                self.apply_replicas(desired, min_replicas, None).await?;
            }
            // An earlier run created it and ended before the next step.
            Some(live) if applied_hash(&live) == Some(first.hash().as_str()) => {
                self.apply_replicas(desired, min_replicas, None).await?;
            }
            // Zero replicas were set by somebody to stop it, and the autoscaler respects that.
            Some(live) if (1..i64::from(min_replicas)).contains(&desired_replicas(&live)) => {
                let revision = text(&live, "/metadata/resourceVersion");
                self.apply_replicas(desired, min_replicas, revision).await?;
            }
            Some(_) => {}
        }
        self.apply(desired).await
    }

    /// Sets the number of replicas if the object is still at that revision, so that a newer write of the
    /// autoscaler is not reverted.
    async fn apply_replicas(
        &self,
        desired: &DesiredObject,
        replicas: i32,
        revision: Option<&str>,
    ) -> Result<(), ObjectApplyError> {
        let api: Api<DynamicObject> = desired.kind.api(&self.client, &self.namespace);
        let resource = desired.kind.api_resource();
        let mut patch = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {"name": desired.name}, "spec": {"replicas": replicas},
        });
        if let (Some(revision), Some(metadata)) = (revision, patch.get_mut("metadata").and_then(Value::as_object_mut)) {
            metadata.insert("resourceVersion".to_owned(), revision.into());
        }
        let params = PatchParams::apply(names::REPLICAS_MANAGER).force();
        match api.patch(&desired.name, &params, &Patch::Apply(&patch)).await {
            Ok(answer) => self.object_cache.record_response(desired.kind, &answer),
            // Somebody wrote the object since. A watch event will trigger the next run.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(apply_error(desired.kind, &desired.name, "scale", error)),
        }
        Ok(())
    }

    /// Writes a ConfigMap if it is unchanged since it was read, or creates it if there was none.
    ///
    /// # Errors
    /// The API server's refusal, also if the ConfigMap changed since it was read.
    pub async fn replace(&self, read: Option<&ConfigMap>, desired: &DesiredObject) -> Result<bool, ObjectApplyError> {
        let params = PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let api: Api<DynamicObject> = desired.kind.api(&self.client, &self.namespace);
        let failed = |error| apply_error(desired.kind, &desired.name, "write", error);
        let unreadable = |error| failed(kube::Error::SerdeError(error));
        let mut base = desired.with_applied_hash();
        if let Some(read) = read {
            let read = serde_json::to_value(read).map_err(unreadable)?;
            let over = std::mem::replace(&mut base, read.clone());
            compare::overlay(&mut base, &over);
            if base == read {
                return Ok(false);
            }
        }
        let object = serde_json::from_value(base).map_err(unreadable)?;
        let answer = match read {
            Some(_) => api.replace(&desired.name, &params, &object).await,
            None => api.create(&params, &object).await,
        };
        self.object_cache.record_response(desired.kind, &answer.map_err(failed)?);
        Ok(true)
    }

    /// Deletes an object if it is still the one in the cache.
    ///
    /// # Errors
    /// The API server's refusal. An object that is gone already, or was replaced, is no error: a watch event
    /// will show it.
    pub async fn delete(&self, kind: ObjectKind, name: &str) -> Result<bool, ObjectApplyError> {
        self.delete_with_preconditions(kind, name, false).await
    }

    /// Deletes an object if its revision is still the one in the cache.
    ///
    /// # Errors
    /// Those of [`Self::delete`].
    pub async fn delete_if_unchanged(&self, kind: ObjectKind, name: &str) -> Result<bool, ObjectApplyError> {
        self.delete_with_preconditions(kind, name, true).await
    }

    async fn delete_with_preconditions(
        &self,
        kind: ObjectKind,
        name: &str,
        is_exact: bool,
    ) -> Result<bool, ObjectApplyError> {
        let Some(live) = self.object_cache.get(kind, name) else { return Ok(false) };
        if live.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(false);
        }
        let of = |pointer| text(&live, pointer).map(str::to_owned);
        let preconditions = Preconditions {
            uid: of("/metadata/uid"),
            resource_version: of("/metadata/resourceVersion").filter(|_| is_exact),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match kind.api(&self.client, &self.namespace).delete(name, &params).await {
            Ok(_) => self.object_cache.remove_absent(kind, name),
            Err(kube::Error::Api(status)) if status.code == 404 => self.object_cache.remove_absent(kind, name),
            // The object has changed, and the cache may hold its newer state by now.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(apply_error(kind, name, "delete", error)),
        }
        Ok(true)
    }
}

/// The hash of the object that was applied last.
fn applied_hash(live: &Value) -> Option<&str> {
    live.pointer("/metadata/annotations").and_then(|all| all.get(names::APPLIED_HASH_ANNOTATION)?.as_str())
}

/// The desired number of replicas, which defaults to one.
fn desired_replicas(live: &Value) -> i64 {
    live.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn apply_error(kind: ObjectKind, name: &str, verb: &'static str, source: kube::Error) -> ObjectApplyError {
    ObjectApplyError { kind, name: name.to_owned(), verb, source: Box::new(source) }
}

fn annotations_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let empty = || Value::Object(Map::new());
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(empty);
    metadata.as_object_mut()?.entry("annotations").or_insert_with(empty).as_object_mut()
}
