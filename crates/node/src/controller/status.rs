//! Statuses are written as what differs, so that nobody who changes the rest of the object at the same time is in the way.
//!
//! *Assumes* that each status has one writer, which looks at one object at a time.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::MANAGER;
use crate::{error::Result, view::View};

/// Zero is written by leaving the field out, as Go does: what is read back is what was written.
pub fn count(number: usize) -> Option<i32> {
    i32::try_from(number).ok().filter(|number| *number != 0)
}

/// A change of an object's status, and of annotations that belong to it.
#[derive(Debug, Default)]
pub struct Update {
    status: Map<String, Value>,
    annotations: Map<String, Value>,
}

impl Update {
    /// What makes `new` of `old`.
    pub fn between(old: Option<&impl Serialize>, new: &impl Serialize) -> Self {
        let (old, new) = (fields(&old), fields(&new));
        let gone = old.keys().filter(|field| !new.contains_key(*field)).map(|field| (field.clone(), Value::Null));
        let gone: Vec<_> = gone.collect();
        let changed = new.into_iter().filter(|(field, value)| old.get(field) != Some(value));
        Self { status: changed.chain(gone).collect(), annotations: Map::new() }
    }

    /// With an annotation, for kinds that let whoever writes the status write these too.
    pub fn annotate(&mut self, name: &str, value: &str) {
        self.annotations.insert(name.to_owned(), value.into());
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.status.is_empty() && self.annotations.is_empty()
    }

    /// Writes it, unless it is empty or the object is gone. The uid is a precondition.
    pub async fn write<K>(self, client: &Client, view: &View<K>, object: &K) -> Result<()>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        if self.is_empty() {
            return Ok(());
        }
        let api: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
        let metadata = json!({ "uid": object.uid(), "annotations": self.annotations });
        let patch = Patch::Merge(json!({ "metadata": metadata, "status": self.status }));
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match api.patch_status(&object.name_any(), &params, &patch).await.map_err(crate::error::Error::from) {
            Ok(written) => drop(view.note(written)),
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
