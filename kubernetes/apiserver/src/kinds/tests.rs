//! Applies the rules of a kind to objects, in the order of a write: defaults, preparation, validation.

mod admission;
mod catalog;
mod events;
mod limits;
mod metadata;
mod networking;
mod pod_rules;
mod pods;
mod rbac;
mod small;
mod spec_rules;
mod tables;
mod values;
mod workloads;

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::metadata::{self as meta_rules, MetaRules};
use crate::{
    api::{
        GroupVersion,
        meta::{remove_meta, set_meta},
    },
    registry::{Catalog, ServedResource},
};

static CATALOG: LazyLock<Catalog> = LazyLock::new(super::catalog);

fn resource(api_version: &str, kind: &str) -> Arc<ServedResource> {
    CATALOG.find_by_kind(&GroupVersion::parse(api_version).unwrap(), kind).unwrap().clone()
}

fn rules(resource: &ServedResource) -> MetaRules {
    MetaRules { namespaced: resource.namespaced, names: resource.strategy.names(), custom: false }
}

fn lines(errors: &[crate::api::field::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// A new object as it is stored, or all its errors. It is in the namespace `ns` and has the uid `U`.
fn create(api_version: &str, kind: &str, body: Value) -> Result<Value, Vec<String>> {
    let resource = resource(api_version, kind);
    let strategy = &resource.strategy;
    let mut object = body;
    strategy.convert_to_stored(&mut object);
    strategy.default(&mut object);
    if resource.namespaced {
        set_meta(&mut object, "namespace", "ns");
    }
    set_meta(&mut object, "uid", "U");
    strategy.prepare_create(&mut object);
    let mut errors = Vec::new();
    strategy.validate_create(&object, &mut errors);
    meta_rules::validate_create(&object, rules(&resource), &mut errors);
    if errors.is_empty() { Ok(object) } else { Err(lines(&errors)) }
}

/// The same for a merge patch of an object.
fn patch(api_version: &str, kind: &str, old: &Value, change: &Value) -> Result<Value, Vec<String>> {
    patch_part(api_version, kind, "", old, change)
}

fn patch_part(api_version: &str, kind: &str, part: &str, old: &Value, change: &Value) -> Result<Value, Vec<String>> {
    let resource = resource(api_version, kind);
    let mut new = old.clone();
    json_patch::merge(&mut new, change);
    resource.strategy.default(&mut new);
    meta_rules::prepare_update(&mut new, old);
    resource.strategy.prepare_update(&mut new, old, part);
    let mut errors = Vec::new();
    resource.strategy.validate_update(&new, old, part, &mut errors);
    meta_rules::validate_update(&new, old, rules(&resource), &mut errors);
    if errors.is_empty() { Ok(new) } else { Err(lines(&errors)) }
}

/// An object without the fields that these tests add.
fn bare(mut object: Value) -> Value {
    remove_meta(&mut object, "namespace");
    remove_meta(&mut object, "uid");
    object
}

/// A template of one container `c`, with the label `a: b`.
fn template() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// The same with all defaults.
fn full_template() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": full_pod_spec()})
}

fn full_pod_spec() -> Value {
    json!({
        "containers": [{
            "name": "c", "image": "i", "resources": {}, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "imagePullPolicy": "Always",
        }],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "securityContext": {},
        "schedulerName": "default-scheduler",
    })
}
