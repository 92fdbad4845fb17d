//! Makes objects what they should be, and sends nothing where they are.
//!
//! An object is left alone if it has everything that is asked for and carries the hash of it: the first tells that nobody changed it, the second that nothing is left of what was
//! asked for before. Else it is applied, by server-side apply under a name of our own, taking over what others own in it; what others
//! added stays.
//!
//! *Guaranteed*: a second run sends no request. *Assumed*: [`Live`] is synced.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    kind::Kind,
    live::{Live, text},
    names,
    words::{Discretion, words},
};

mod compare;
#[cfg(test)]
mod tests;

/// What did not work.
#[derive(Debug, thiserror::Error)]
#[error("{kind:?} {name} cannot be {what}")]
pub struct Error {
    kind: Kind,
    name: String,
    what: &'static str,
    source: Box<kube::Error>,
}

impl Error {
    /// What happened, as a status or a log may say it.
    pub fn words(&self) -> String {
        let discretion = if self.kind == Kind::Secret { Discretion::Secret } else { Discretion::Open };
        format!("{self}: {}", words(&self.source, discretion))
    }

    /// What the API server had against it, or why it did not answer.
    pub fn failure(&self) -> &kube::Error {
        &self.source
    }

    /// Whether it may well work in a moment: somebody else wrote the object since it was read, or a binding came before the API server's
    /// authoriser had seen its role.
    pub fn is_passing(&self) -> bool {
        matches!(&*self.source, kube::Error::Api(status) if status.code == 409 || status.code == 404)
    }
}

/// An object as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// All fields that are ours.
    pub value: Value,
}

impl Desired {
    /// The object, with its hash on it.
    fn stamped(&self) -> Value {
        let mut value = self.value.clone();
        if let Some(annotations) = annotations(&mut value) {
            annotations.insert(names::APPLIED.to_owned(), self.hash().into());
        }
        value
    }

    fn hash(&self) -> String {
        format!("{:016x}", xxh3_64(self.value.to_string().as_bytes()))
    }
}

/// Writes objects.
#[derive(Clone)]
pub struct Applier {
    client: Client,
    namespace: String,
    live: Arc<Live>,
}

impl Applier {
    /// In a namespace, with what is known of it.
    pub fn new(client: Client, namespace: &str, live: Arc<Live>) -> Self {
        Self { client, namespace: namespace.to_owned(), live }
    }

    /// Makes an object what it should be, and says whether that took a request.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn apply(&self, desired: &Desired) -> Result<bool, Error> {
        let stamped = desired.stamped();
        let live = self.live.get(desired.kind, &desired.name);
        if live.is_some_and(|live| compare::contains(&live, &stamped)) {
            return Ok(false);
        }
        let (api, params) =
            (desired.kind.api(&self.client, &self.namespace), PatchParams::apply(names::MANAGER).force());
        let answer = api.patch(&desired.name, &params, &Patch::Apply(&stamped)).await;
        let answer = answer.map_err(|error| failed(desired.kind, &desired.name, "applied", error))?;
        self.live.note(desired.kind, &answer);
        Ok(true)
    }

    /// Makes a Deployment what it should be, and sees to it that it begins with so many replicas. How many there are later is the autoscaler's: `desired` says nothing of it,
    /// as it would be taken back with every change.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn apply_scaled(&self, desired: &Desired, min_replicas: i32) -> Result<bool, Error> {
        let mut first = desired.clone();
        if let Some(spec) = first.value.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("replicas".to_owned(), min_replicas.into());
        }
        match self.live.get(desired.kind, &desired.name) {
            None => {
                self.apply(&first).await?;
                // Owned by another name before it is let go of under ours.
                self.hold_replicas(desired, min_replicas, None).await?;
            }
            // It was made, and whoever made it came no further.
            Some(live) if applied(&live) == Some(first.hash().as_str()) => {
                self.hold_replicas(desired, min_replicas, None).await?;
            }
            // Somebody who scales it to none stops it, as the autoscaler understands it.
            Some(live) if (1..i64::from(min_replicas)).contains(&replicas(&live)) => {
                let revision = text(&live, "/metadata/resourceVersion");
                self.hold_replicas(desired, min_replicas, revision).await?;
            }
            Some(_) => {}
        }
        self.apply(desired).await
    }

    /// Asks for so many replicas, if the object is still at that revision: nothing that the autoscaler has just written is taken back.
    async fn hold_replicas(&self, desired: &Desired, replicas: i32, revision: Option<&str>) -> Result<(), Error> {
        let api: Api<DynamicObject> = desired.kind.api(&self.client, &self.namespace);
        let resource = desired.kind.resource();
        let mut patch = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {"name": desired.name}, "spec": {"replicas": replicas},
        });
        if let (Some(revision), Some(metadata)) = (revision, patch.get_mut("metadata").and_then(Value::as_object_mut)) {
            metadata.insert("resourceVersion".to_owned(), revision.into());
        }
        let params = PatchParams::apply(names::REPLICAS_MANAGER).force();
        match api.patch(&desired.name, &params, &Patch::Apply(&patch)).await {
            Ok(answer) => self.live.note(desired.kind, &answer),
            // Somebody wrote it since. A watch will show it, and the next run looks again.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(failed(desired.kind, &desired.name, "scaled", error)),
        }
        Ok(())
    }

    /// Writes a ConfigMap only if it still is what was read, which is nothing, if there was none.
    ///
    /// # Errors
    /// What the API server says; also that it is not what was read.
    pub async fn replace(&self, read: Option<&ConfigMap>, desired: &Desired) -> Result<bool, Error> {
        let params = PostParams { field_manager: Some(names::MANAGER.to_owned()), ..PostParams::default() };
        let api: Api<DynamicObject> = desired.kind.api(&self.client, &self.namespace);
        let failed = |error| failed(desired.kind, &desired.name, "written", error);
        let unreadable = |error| failed(kube::Error::SerdeError(error));
        let mut base = desired.stamped();
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
        self.live.note(desired.kind, &answer.map_err(failed)?);
        Ok(true)
    }

    /// Removes an object, if it still is the one that was seen.
    ///
    /// # Errors
    /// What the API server says. That the object is gone already, or is another one, is no error: a watch will show it.
    pub async fn delete(&self, kind: Kind, name: &str) -> Result<bool, Error> {
        self.remove(kind, name, false).await
    }

    /// Removes an object, if nothing about it has changed since it was seen.
    ///
    /// # Errors
    /// Those of [`Self::delete`].
    pub async fn delete_unchanged(&self, kind: Kind, name: &str) -> Result<bool, Error> {
        self.remove(kind, name, true).await
    }

    async fn remove(&self, kind: Kind, name: &str, is_exact: bool) -> Result<bool, Error> {
        let Some(live) = self.live.get(kind, name) else { return Ok(false) };
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
            Ok(_) => {}
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => return Err(failed(kind, name, "deleted", error)),
        }
        self.live.forget(kind, name);
        Ok(true)
    }
}

/// The hash of what was applied last.
fn applied(live: &Value) -> Option<&str> {
    live.pointer("/metadata/annotations").and_then(|all| all.get(names::APPLIED)?.as_str())
}

/// How many replicas are asked for; one is the default.
fn replicas(live: &Value) -> i64 {
    live.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn failed(kind: Kind, name: &str, what: &'static str, source: kube::Error) -> Error {
    Error { kind, name: name.to_owned(), what, source: Box::new(source) }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let empty = || Value::Object(Map::new());
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(empty);
    metadata.as_object_mut()?.entry("annotations").or_insert_with(empty).as_object_mut()
}
