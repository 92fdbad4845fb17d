//! Custom resources in several versions.
//!
//! Without a conversion an object is the same in all versions, except for its `apiVersion` and for fields that
//! the schema of a version does not have. As in kube-apiserver, an object that is read is pruned and defaulted
//! by the schema of its storage version, and then pruned by that of the requested version; an object that is
//! written is pruned by the storage version.
//!
//! An object that was stored in a former storage version is read by the schema of that version, until it is
//! written again. Assumed: after a restart of the server, all objects are stored in the current storage
//! version.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::structural;
use crate::{
    api::{
        GroupVersion,
        meta::{MetaAccessor, set_meta},
    },
    registry::{CustomResourceInfo, ServedResource},
    schema::{Schema, SchemaNode, defaults, prune},
    store::Stored,
};

/// The schema of a version that the CRD does not have: no field is declared.
static UNKNOWN_VERSION_SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    Arc::new(structural::build_schema(&serde_json::json!({"type": "object"}), &SchemaNode::default()))
});

/// The schema of other kinds, which are not examined.
static OPEN_SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let open = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    Arc::new(structural::build_schema(&open, &SchemaNode::default()))
});

/// The schema for decoding a body with this kind, group and version.
pub fn body_schema<'a>(resource: &'a ServedResource, kind: &str, gv: &GroupVersion) -> &'a Schema {
    match &resource.custom {
        Some(custom) if kind == &*resource.kind && gv.group == resource.gv.group => version_schema(custom, &gv.version),
        _ => &OPEN_SCHEMA,
    }
}

pub fn version_schema<'a>(custom: &'a CustomResourceInfo, version: &str) -> &'a Schema {
    custom.schemas.get(version).unwrap_or(&UNKNOWN_VERSION_SCHEMA)
}

/// The version in which an object of this revision is stored. If the CRD no longer has it, the current storage
/// version.
fn stored_version(custom: &CustomResourceInfo, revision: u64) -> &Arc<str> {
    let former = custom.stored_before.iter().find(|(last, _)| revision <= *last).map(|(_, version)| version);
    former.filter(|version| custom.schemas.contains_key(*version)).unwrap_or(&custom.storage_version)
}

/// Whether the schemas of this version and of another one differ.
fn has_other_schema(resource: &ServedResource, custom: &CustomResourceInfo, stored: &Arc<str>) -> bool {
    let own = custom.schemas.get(&resource.gv.version);
    resource.gv.version != *stored && own != custom.schemas.get(stored)
}

/// Whether an object is not served as it is stored: its version has another schema, or it was stored under
/// other schemas.
pub fn differs_from_stored(resource: &ServedResource, stored: &Stored) -> bool {
    resource.custom.as_ref().is_some_and(|custom| {
        stored.revision <= custom.schemas_since || has_other_schema(resource, custom, &custom.storage_version)
    })
}

/// Converts an object that was stored at a revision to the resource's version.
pub fn convert_to_served(resource: &ServedResource, revision: u64, object: &mut Value) {
    let Some(custom) = &resource.custom else { return };
    let version = stored_version(custom, revision);
    let stored = version_schema(custom, version);
    if !custom.preserve_unknown {
        // Stored objects were validated; metadata that cannot be decoded stays as it is.
        let _ = prune::prune(object, stored);
    }
    defaults::apply_defaults(object, stored);
    if has_other_schema(resource, custom, version) && !custom.preserve_unknown {
        let _ = prune::prune(object, &resource.schema);
    }
    if object.generation() == 0 {
        set_meta(object, "generation", 1);
    }
}

/// Converts an object of the resource's version to the storage version. It gets the defaults that every reader
/// would see, so that the storage version can be served as it is stored.
pub fn store(resource: &ServedResource, object: &mut Value) {
    let converts = |custom: &&Arc<CustomResourceInfo>| has_other_schema(resource, custom, &custom.storage_version);
    let Some(custom) = resource.custom.as_ref().filter(converts) else { return };
    let stored = version_schema(custom, &custom.storage_version);
    if !custom.preserve_unknown {
        let _ = prune::prune(object, stored);
    }
    defaults::apply_defaults(object, stored);
}

#[cfg(test)]
mod tests;
