//! Swagger 2.0: the definitions of every served kind, and of the paths the one by which its objects are patched.
//!
//! kubectl before 1.27, which Debian still has, asks it for the protobuf form and reads there which kinds of patch an object takes, and
//! whether a patch can be tried and validated. Others (Terraform, Argo CD) read the definitions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Dialect, custom,
    document::{self, Members},
    gnostic,
    parameters::{FORCE, NAME, NAMESPACE, WRITE},
    paths, types,
};
use crate::registry::{Catalog, Resource};

const TITLE: &str = "Kubernetes";
const RELEASE: &str = "v1.35.8";

/// The document as JSON.
pub(super) fn json(catalog: &Catalog) -> Vec<u8> {
    let mut document =
        Members::after(&format!(r#"{{"swagger":"2.0","info":{{"title":"{TITLE}","version":"{RELEASE}"}},"paths":{{"#));
    patched(catalog).for_each(|resource| document.put(&path(resource), &patch(resource)));
    document.then(r#"},"definitions":{"#);
    definitions(catalog, &mut |name, schema| document.put(name, &schema));
    let key = json!({"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"});
    let security = json!({ "BearerToken": key });
    document.end(&format!(r#"}},"securityDefinitions":{security},"security":[{{"BearerToken":[]}}]}}"#))
}

/// The document as gnostic's protobuf.
pub(super) fn protobuf(catalog: &Catalog) -> Vec<u8> {
    let mut document = gnostic::Document::new(TITLE, RELEASE);
    patched(catalog).for_each(|resource| document.path(&path(resource), &patch(resource)));
    definitions(catalog, &mut |name, schema| document.define(name, &schema));
    document.end()
}

/// What can be patched.
fn patched(catalog: &Catalog) -> impl Iterator<Item = &Resource> {
    catalog.all().map(|resource| &**resource).filter(|resource| resource.verbs.contains(&"patch"))
}

/// Where objects are.
fn path(resource: &Resource) -> String {
    let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    format!("{}{place}/{}/{{name}}", document::root(&resource.gv), resource.plural)
}

/// The item of a path, of which there is only the patch.
fn patch(resource: &Resource) -> Value {
    let parameters = [NAME, FORCE].into_iter().chain(WRITE).chain(resource.namespaced.then_some(NAMESPACE));
    let kind = json!({"group": &*resource.gv.group, "version": &*resource.gv.version, "kind": &*resource.kind});
    json!({"patch": {
        "consumes": paths::patch_media(resource),
        "parameters": parameters.map(|parameter| parameter.json_v2()).collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
    }})
}

/// Every definition once.
fn definitions(catalog: &Catalog, put: &mut dyn FnMut(&str, Value)) {
    let mut found = BTreeSet::new();
    for resource in catalog.all() {
        document::reach(resource, &mut found);
        if resource.custom.is_some() {
            custom::schemas(resource, Dialect::V2).into_iter().for_each(|(name, schema)| put(&name, schema));
        }
    }
    for name in found {
        put(&name, types::describe(&name, Dialect::V2, None));
    }
}
