//! Custom resources in OpenAPI.

use super::*;
use crate::{crd::structural, registry::ServedResource, schema::builtin};

/// A catalog with a widget that has this `openAPIV3Schema`.
fn catalog_of(schema: &Value) -> Catalog {
    let meta = builtin::schema_by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap();
    let schema = structural::build_schema(schema, &crate::schema::SchemaNode::Builtin(meta));
    catalog_with([ServedResource { schema: schema.into(), ..widgets("example.com", "v1") }])
}

fn described(schema: &Value) -> Value {
    let document = get(&catalog_of(schema), "/openapi/v3/apis/example.com/v1");
    document["components"]["schemas"]["com.example.v1.Widget"].clone()
}

fn described_v2(schema: &Value) -> Value {
    get(&catalog_of(schema), "/openapi/v2")["definitions"]["com.example.v1.Widget"].clone()
}

fn with_spec(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

#[track_caller]
fn assert_kept(spec: &Value) {
    assert_eq!(described(&with_spec(spec))["properties"]["spec"], *spec);
}

fn spec_v2(spec: &Value) -> Value {
    described_v2(&with_spec(spec))["properties"]["spec"].clone()
}

#[test]
fn an_object_has_its_own_fields_and_those_of_every_object() {
    let restricted = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}});
    let properties = json!({"spec": {"type": "object"}, "metadata": restricted});
    let widget = described(&json!({"type": "object", "description": "a widget", "properties": properties}));
    assert_eq!(widget["type"], "object");
    assert_eq!(widget["description"], "a widget");
    assert_eq!(widget["properties"]["spec"], json!({"type": "object"}));
    assert_eq!(widget["properties"]["kind"]["type"], "string");
    let meta = json!([{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]);
    assert_eq!(widget["properties"]["metadata"]["allOf"], meta);
    let gvk = json!([{"group": "example.com", "version": "v1", "kind": "Widget"}]);
    assert_eq!(widget["x-kubernetes-group-version-kind"], gvk);
}

#[test]
fn a_list_refers_to_its_objects() {
    let document = get(&catalog_of(&json!({"type": "object"})), "/openapi/v3/apis/example.com/v1");
    let list = &document["components"]["schemas"]["com.example.v1.WidgetList"];
    assert_eq!(list["required"], json!(["items"]));
    let item = json!({"$ref": "#/components/schemas/com.example.v1.Widget"});
    assert_eq!(list["properties"]["items"]["items"], item);
    assert_eq!(list["x-kubernetes-group-version-kind"][0]["kind"], "WidgetList");
}

#[test]
fn operations_are_those_of_a_custom_resource() {
    let document = get(&catalog_of(&json!({"type": "object"})), "/openapi/v3/apis/example.com/v1");
    let item = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"];
    assert_eq!(item["get"]["operationId"], "readExampleComV1NamespacedWidget");
    assert_eq!(item["get"]["tags"], json!(["exampleCom_v1"]));
    let content = |value: &Value| -> Vec<String> { value["content"].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(content(&item["get"]["responses"]["200"]), ["application/json", "application/yaml"]);
    let patches = ["apply-patch+yaml", "json-patch+json", "merge-patch+json"].map(|of| format!("application/{of}"));
    assert_eq!(content(&item["patch"]["requestBody"]), patches);
    assert!(!document["paths"].as_object().unwrap().keys().any(|path| path.contains("/watch/")));
    let scale = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/scale"];
    assert_eq!(scale["get"]["x-kubernetes-group-version-kind"]["group"], "autoscaling");
}

#[test]
fn what_a_schema_says_is_kept() {
    assert_kept(&json!({
        "type": "object",
        "description": "what is wanted",
        "required": ["size"],
        "minProperties": 1,
        "x-kubernetes-validations": [{"rule": "self.size > 0"}],
        "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 2.5, "default": 1},
            "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0, "multipleOf": 0.5},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                      "maxItems": 3, "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "colour": {"type": "string", "enum": ["red"], "pattern": "^r", "nullable": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
            "when": {"type": "string", "format": "date-time"},
            "anything": {"x-kubernetes-preserve-unknown-fields": true},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                     "properties": {"known": {"type": "boolean"}}},
        },
    }));
}

#[test]
fn alternatives_say_only_what_they_said() {
    let spec = json!({
        "type": "object",
        "oneOf": [{"required": ["a"]}, {"properties": {"port": {"enum": [1]}}}],
        "not": {"items": {"required": ["b"]}},
        "properties": {"port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}},
    });
    assert_kept(&spec);
    let expected = json!({"type": "object", "properties": {"port": {"x-kubernetes-int-or-string": true}}});
    assert_eq!(spec_v2(&spec), expected);
}

#[test]
fn an_embedded_object_has_the_fields_of_every_object() {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    let spec = &described(&with_spec(&embedded))["properties"]["spec"];
    assert_eq!(spec["x-kubernetes-embedded-resource"], true);
    assert!(spec["properties"]["metadata"]["allOf"].is_array());
}

#[test]
fn the_second_version_forbids_nothing_that_it_cannot_say() {
    let text = json!({"type": "string", "nullable": true, "default": "a"});
    assert_eq!(spec_v2(&text), json!({}));
    let known = json!({"known": {"type": "string"}});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": known});
    assert_eq!(spec_v2(&open), json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(described_v2(&open).get("properties"), None);
}
