//! Status writes. A status is written as a patch of the differences, so that it does not conflict with writers
//! of the rest of the object.
//!
//! *Assumed*: each status has one writer, which processes one object at a time.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::FIELD_MANAGER;
use crate::{error::Result, informer::SharedInformer};

/// Zero is omitted, as in Go, so that the value equals the one that is read back.
pub fn non_zero(number: usize) -> Option<i32> {
    i32::try_from(number).ok().filter(|number| *number != 0)
}

/// A patch of an object's status, and of annotations that belong to it.
#[derive(Debug, Default)]
pub struct StatusPatch {
    status: Map<String, Value>,
    annotations: Map<String, Value>,
}

impl StatusPatch {
    /// The patch from `old` to `new`.
    pub fn between(old: Option<&impl Serialize>, new: &impl Serialize) -> Self {
        let old = fields(&old);
        let new = fields(&new);
        let gone = old.keys().filter(|field| !new.contains_key(*field)).map(|field| (field.clone(), Value::Null));
        let gone: Vec<_> = gone.collect();
        let changed = new.into_iter().filter(|(field, value)| old.get(field) != Some(value));
        Self { status: changed.chain(gone).collect(), annotations: Map::new() }
    }

    /// Adds an annotation, for kinds whose status subresource accepts annotations.
    pub fn set_annotation(&mut self, name: &str, value: &str) {
        self.annotations.insert(name.to_owned(), value.into());
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.status.is_empty() && self.annotations.is_empty()
    }

    /// Writes the patch, unless it is empty or the object was deleted. The uid is a precondition.
    pub async fn write<K>(self, client: &Client, view: &SharedInformer<K>, object: &K) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        if self.is_empty() {
            return Ok(());
        }
        let api: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
        let metadata = json!({ "uid": object.uid(), "annotations": self.annotations });
        let patch = Patch::Merge(json!({ "metadata": metadata, "status": self.status }));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match api.patch_status(&object.name_any(), &params, &patch).await.map_err(crate::error::ClusterError::from) {
            Ok(written) => drop(view.record_write(written)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn fields(status: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
