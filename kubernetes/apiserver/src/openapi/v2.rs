//! Swagger 2.0: the definitions of every served kind, and only those paths by which objects are patched.
//!
//! kubectl before 1.27, which Debian still has, requests the protobuf form and reads there which types of patch
//! an object supports, and whether a patch supports dry run and field validation. Others (Terraform, Argo CD)
//! read the definitions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    SchemaDialect, custom,
    document::{self, JsonObjectWriter},
    gnostic,
    parameters::{FORCE, NAME, NAMESPACE, WRITE},
    paths, types,
};
use crate::registry::{Catalog, ServedResource};

const TITLE: &str = "Kubernetes";
const RELEASE: &str = "v1.35.8";

pub(super) fn json(catalog: &Catalog) -> Vec<u8> {
    let mut document = JsonObjectWriter::with_prefix(&format!(
        r#"{{"swagger":"2.0","info":{{"title":"{TITLE}","version":"{RELEASE}"}},"paths":{{"#
    ));
    patched(catalog).for_each(|resource| document.put(&path(resource), &patch(resource)));
    document.start_next_object(r#"},"definitions":{"#);
    definitions(catalog, &mut |name, schema| document.put(name, &schema));
    let key = json!({"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"});
    let security = json!({ "BearerToken": key });
    document.finish(&format!(r#"}},"securityDefinitions":{security},"security":[{{"BearerToken":[]}}]}}"#))
}

/// The document in gnostic's protobuf form.
pub(super) fn protobuf(catalog: &Catalog) -> Vec<u8> {
    let mut document = gnostic::GnosticDocument::new(TITLE, RELEASE);
    patched(catalog).for_each(|resource| document.path(&path(resource), &patch(resource)));
    definitions(catalog, &mut |name, schema| document.define(name, &schema));
    document.end()
}

fn patched(catalog: &Catalog) -> impl Iterator<Item = &ServedResource> {
    catalog.all().map(|resource| &**resource).filter(|resource| resource.verbs.contains(&"patch"))
}

fn path(resource: &ServedResource) -> String {
    let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    format!("{}{place}/{}/{{name}}", document::root(&resource.gv), resource.plural)
}

/// The item of a path, with the patch only.
fn patch(resource: &ServedResource) -> Value {
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

fn definitions(catalog: &Catalog, put: &mut dyn FnMut(&str, Value)) {
    let mut found = BTreeSet::new();
    for resource in catalog.all() {
        document::collect_types(resource, &mut found);
        if resource.custom.is_some() {
            custom::schemas(resource, SchemaDialect::V2).into_iter().for_each(|(name, schema)| put(&name, schema));
        }
    }
    for name in found {
        put(&name, types::type_schema(&name, SchemaDialect::V2, None));
    }
}
