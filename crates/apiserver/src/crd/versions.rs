//! Custom resources in several versions.
//!
//! Without a conversion an object is the same in all versions, but for its `apiVersion` and for what the schema of a version does not
//! know. As in kube-apiserver, what is read is pruned and defaulted by the schema of the version that it is stored in, and then pruned
//! by that of the version that is asked for; what is written loses what the stored version does not know.
//!
//! An object that was stored before its definition stored another version is read by the schema of that former version, until it is
//! written again. Assumed: after a restart of the server, all objects are stored in the version that their definition stores now.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::structural;
use crate::{
    api::{
        GroupVersion,
        meta::{Meta, set_meta},
    },
    registry::{Custom, Resource},
    schema::{Node, Schema, defaults, prune},
    store::Stored,
};

/// The schema of a version that a definition does not have: nothing is known.
static NOTHING: LazyLock<Arc<Schema>> =
    LazyLock::new(|| Arc::new(structural::build(&serde_json::json!({"type": "object"}), &Node::default())));

/// What is of another kind is not looked into.
static ANYTHING: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let open = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    Arc::new(structural::build(&open, &Node::default()))
});

/// The schema by which a body is read that says that it is of this kind, group and version.
pub fn schema_of_body<'a>(resource: &'a Resource, kind: &str, gv: &GroupVersion) -> &'a Schema {
    match &resource.custom {
        Some(custom) if kind == &*resource.kind && gv.group == resource.gv.group => schema(custom, &gv.version),
        _ => &ANYTHING,
    }
}

/// The schema of a version.
pub fn schema<'a>(custom: &'a Custom, version: &str) -> &'a Schema {
    custom.schemas.get(version).unwrap_or(&NOTHING)
}

/// The version that an object of this revision is stored in. One that the definition no longer has is not looked for.
fn stored_version(custom: &Custom, revision: u64) -> &Arc<str> {
    let former = custom.stored_before.iter().find(|(last, _)| revision <= *last).map(|(_, version)| version);
    former.filter(|version| custom.schemas.contains_key(*version)).unwrap_or(&custom.storage_version)
}

/// Whether the schemas of this version and of another one differ.
fn converts(resource: &Resource, custom: &Custom, stored: &Arc<str>) -> bool {
    let own = custom.schemas.get(&resource.gv.version);
    resource.gv.version != *stored && own != custom.schemas.get(stored)
}

/// Whether an object is not shown as it is stored: its version has another schema, or it was stored under other schemas.
pub fn is_shown_otherwise(resource: &Resource, stored: &Stored) -> bool {
    resource.custom.as_ref().is_some_and(|custom| {
        stored.revision <= custom.schemas_since || converts(resource, custom, &custom.storage_version)
    })
}

/// Makes what was stored at a revision what the resource's version shows.
pub fn show(resource: &Resource, revision: u64, object: &mut Value) {
    let Some(custom) = &resource.custom else { return };
    let version = stored_version(custom, revision);
    let stored = schema(custom, version);
    if !custom.preserve_unknown {
        // What was stored was checked; metadata that cannot be read stays as it is.
        let _ = prune::prune(object, stored);
    }
    defaults::apply_defaults(object, stored);
    if converts(resource, custom, version) && !custom.preserve_unknown {
        let _ = prune::prune(object, &resource.schema);
    }
    if object.generation() == 0 {
        set_meta(object, "generation", 1);
    }
}

/// Makes an object of the resource's version one that can be stored. It gets the defaults that every reader would see, so that the
/// stored version can show it as it is.
pub fn store(resource: &Resource, object: &mut Value) {
    let converts = |custom: &&Arc<Custom>| converts(resource, custom, &custom.storage_version);
    let Some(custom) = resource.custom.as_ref().filter(converts) else { return };
    let stored = schema(custom, &custom.storage_version);
    if !custom.preserve_unknown {
        let _ = prune::prune(object, stored);
    }
    defaults::apply_defaults(object, stored);
}

#[cfg(test)]
mod tests;
