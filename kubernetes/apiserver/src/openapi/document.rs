//! The document of a group and version: its paths, and every schema that they refer to.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    KUBERNETES_VERSION, SchemaDialect, custom,
    names::{self, META, capitalized},
    operation::MediaContent,
    paths::{BUILTIN_MEDIA, PathWriter},
    types,
};
use crate::{
    api::GroupVersion,
    registry::{Catalog, ServedResource},
};

/// Writes the members of a JSON object one after the other, so that only one of them is in memory twice.
pub(super) struct JsonObjectWriter {
    out: Vec<u8>,
    first: bool,
}

impl JsonObjectWriter {
    /// Starts with this text, which opens the object.
    pub(super) fn with_prefix(text: &str) -> Self {
        Self { out: text.as_bytes().to_vec(), first: true }
    }

    pub(super) fn put(&mut self, key: &str, value: &Value) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        // Writing a value to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.out, key);
        self.out.push(b':');
        let _ = serde_json::to_writer(&mut self.out, value);
    }

    /// Continues with another object.
    pub(super) fn start_next_object(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.first = true;
    }

    pub(super) fn finish(mut self, text: &str) -> Vec<u8> {
        self.out.extend_from_slice(text.as_bytes());
        self.out
    }
}

/// A document that is built in memory as a whole.
pub(super) fn small_document(paths: &Value, schemas: &Value) -> Vec<u8> {
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES_VERSION},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": security()},
    });
    document.to_string().into_bytes()
}

/// The document of a group and version.
pub(super) fn write(catalog: &Catalog, gv: &GroupVersion) -> Vec<u8> {
    let names = OperationNames::new(gv);
    let mut document = JsonObjectWriter::with_prefix(&format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"Kubernetes","version":"{KUBERNETES_VERSION}"}},"paths":{{"#
    ));
    document.put(&format!("{}/", names.root), &names.resources_item());
    for resource in catalog.resources_of_version(gv) {
        let paths = PathWriter { root: &names.root, prefix: &names.prefix, tag: &names.tag, resource };
        paths.write_paths(&mut |path, item| document.put(&path, &item));
    }
    document.start_next_object(r#"},"components":{"schemas":{"#);
    for resource in catalog.resources_of_version(gv).filter(|resource| resource.custom.is_some()) {
        for (name, schema) in custom::schemas(resource, SchemaDialect::V3) {
            document.put(&name, &schema);
        }
    }
    let mut found = BTreeSet::new();
    types::collect_types(&format!("{META}.APIResourceList"), &mut found);
    catalog.resources_of_version(gv).for_each(|resource| collect_types(resource, &mut found));
    for name in &found {
        document.put(name, &types::type_schema(name, SchemaDialect::V3, Some(gv)));
    }
    document.finish(&format!(r#"}},"securitySchemes":{}}}}}"#, security()))
}

/// The built-in types that the paths of a resource refer to.
pub(super) fn collect_types(resource: &ServedResource, found: &mut BTreeSet<String>) {
    let can = |verb: &str| resource.verbs.contains(&verb);
    let mut roots = vec![names::object_type(resource), format!("{META}.ObjectMeta")];
    roots.extend(can("list").then(|| names::list_type(resource)));
    roots.extend(resource.subresources.iter().map(|sub| names::part_type(resource, sub)));
    if resource.custom.is_some() {
        roots.push(format!("{META}.ListMeta"));
    }
    let changes = can("patch") || resource.subresources.iter().any(|sub| sub.verbs.contains(&"patch"));
    let mut meta = |needed: bool, names: &[&str]| {
        roots.extend(names.iter().filter(|_| needed).map(|name| format!("{META}.{name}")));
    };
    meta(can("delete") || can("deletecollection"), &["DeleteOptions", "Status"]);
    meta(changes, &["Patch"]);
    meta(can("watch") && resource.custom.is_none(), &["WatchEvent"]);
    for root in roots {
        types::collect_types(&root, found);
    }
}

fn security() -> Value {
    json!({"BearerToken": {
        "type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"}})
}

/// The path of a group and version: `/api/v1`, `/apis/apps/v1`.
pub(super) fn root(gv: &GroupVersion) -> String {
    if gv.group.is_empty() { format!("/api/{}", gv.version) } else { format!("/apis/{gv}") }
}

/// The parts of operation names for a group and version.
struct OperationNames {
    root: String,
    /// `AppsV1`
    prefix: String,
    /// `apps_v1`
    tag: String,
}

impl OperationNames {
    fn new(gv: &GroupVersion) -> Self {
        let group = group_tag(&gv.group);
        Self {
            root: root(gv),
            prefix: format!("{}{}", capitalized(&group), capitalized(&gv.version)),
            tag: format!("{group}_{}", gv.version),
        }
    }

    fn resources_item(&self) -> Value {
        let content = MediaContent { media: BUILTIN_MEDIA.to_vec(), of: Some(format!("{META}.APIResourceList")) };
        let id = format!("get{}APIResources", self.prefix);
        get_item(&self.tag, &id, "get available resources", &content)
    }
}

/// A group in the name of a tag: `rbacAuthorization`.
pub(super) fn group_tag(group: &str) -> String {
    let group = if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) };
    let mut words = group.split(|letter: char| !letter.is_ascii_alphanumeric());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |tag, word| tag + &capitalized(word))
}

/// A path that can only be read, and has no kind.
pub(super) fn get_item(tag: &str, id: &str, description: &str, content: &MediaContent) -> Value {
    json!({"get": {
        "tags": [tag],
        "description": description,
        "operationId": id,
        "responses": {"200": {"description": "OK", "content": content.json()}, "401": {"description": "Unauthorized"}},
    }})
}
