//! Swagger 2.0: the definitions of every served kind, without paths.
//!
//! kubectl reads it only where version 3 does not help: to see how a custom resource is patched, it asks for the protobuf form,
//! finds no path, and takes merge patch. Others (Terraform, Argo CD) read the definitions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Dialect, custom,
    document::{self, Members},
    gnostic, types,
};
use crate::registry::Catalog;

const TITLE: &str = "Kubernetes";
const RELEASE: &str = "v1.35.8";

/// The document as JSON.
pub(super) fn json(catalog: &Catalog) -> Vec<u8> {
    let mut document = Members::after(&format!(
        r#"{{"swagger":"2.0","info":{{"title":"{TITLE}","version":"{RELEASE}"}},"paths":{{}},"definitions":{{"#
    ));
    definitions(catalog, &mut |name, schema| document.put(name, &schema));
    let key = json!({"description": "Bearer Token authentication", "in": "header", "name": "authorization", "type": "apiKey"});
    let security = json!({ "BearerToken": key });
    document.end(&format!(r#"}},"securityDefinitions":{security},"security":[{{"BearerToken":[]}}]}}"#))
}

/// The document as gnostic's protobuf.
pub(super) fn protobuf(catalog: &Catalog) -> Vec<u8> {
    let mut document = gnostic::Document::new(TITLE, RELEASE);
    definitions(catalog, &mut |name, schema| document.define(name, &schema));
    document.end()
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
