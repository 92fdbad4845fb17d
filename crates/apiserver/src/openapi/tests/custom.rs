//! Custom resources in OpenAPI.

use std::{collections::BTreeMap, sync::Arc};

use super::*;
use crate::{
    registry::Resource,
    schema::{ListType, MapType, Node, Rules, Scalar, Schema, Shape, builtin},
};

fn object<const N: usize>(fields: [(&str, Schema); N]) -> Schema {
    let fields: BTreeMap<Arc<str>, Node> =
        fields.into_iter().map(|(name, schema)| (name.into(), schema.into())).collect();
    let shape = Shape::Object { fields, open: false, embedded: false, map: MapType::Granular };
    Schema { shape, ..Schema::default() }
}

fn with(rules: Rules, schema: Schema) -> Schema {
    Schema { rules: Some(Box::new(rules)), ..schema }
}

fn changed(mut schema: Schema, change: impl FnOnce(&mut bool, &mut bool)) -> Schema {
    if let Shape::Object { open, embedded, .. } = &mut schema.shape {
        change(open, embedded);
    }
    schema
}

/// The catalog with a widget of this schema, whose metadata is as the server builds it.
fn catalog_of(mut schema: Schema) -> Catalog {
    let meta = builtin::by_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap();
    if let Shape::Object { fields, .. } = &mut schema.shape {
        fields.insert("metadata".into(), Node::Builtin(meta));
    }
    catalog_with([Resource { schema: schema.into(), ..widgets("example.com", "v1") }])
}

fn described(schema: Schema) -> Value {
    let document = get(&catalog_of(schema), "/openapi/v3/apis/example.com/v1");
    document["components"]["schemas"]["com.example.v1.Widget"].clone()
}

fn described_v2(schema: Schema) -> Value {
    get(&catalog_of(schema), "/openapi/v2")["definitions"]["com.example.v1.Widget"].clone()
}

fn spec(schema: Schema) -> Value {
    described(object([("spec", schema)]))["properties"]["spec"].clone()
}

fn spec_v2(schema: Schema) -> Value {
    described_v2(object([("spec", schema)]))["properties"]["spec"].clone()
}

#[test]
fn an_object_has_its_own_fields_and_those_of_every_object() {
    let schema = Schema { description: "a widget".into(), ..object([("spec", object([]))]) };
    let widget = described(schema);
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
    let document = get(&catalog_of(object([])), "/openapi/v3/apis/example.com/v1");
    let list = &document["components"]["schemas"]["com.example.v1.WidgetList"];
    assert_eq!(list["required"], json!(["items"]));
    let item = json!({"$ref": "#/components/schemas/com.example.v1.Widget"});
    assert_eq!(list["properties"]["items"]["items"], item);
    assert_eq!(list["x-kubernetes-group-version-kind"][0]["kind"], "WidgetList");
}

#[test]
fn operations_are_those_of_a_custom_resource() {
    let document = get(&catalog_of(object([])), "/openapi/v3/apis/example.com/v1");
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
    let text = || Schema::scalar(Scalar::String);
    let rules = Rules {
        required: vec!["size".into()],
        min_properties: Some(1),
        validations: vec![json!({"rule": "self.size > 0"})],
        ..Rules::default()
    };
    let size = Rules { minimum: Some(1.0), maximum: Some(2.5), format: Some("int32".into()), ..Rules::default() };
    let size = Schema { default: Some(json!(1)), ..with(size, Schema::scalar(Scalar::Int32)) };
    let shape = Shape::List { items: object([("name", text())]).into(), list: ListType::Map(vec!["name".into()]) };
    let colours = Rules { enumeration: vec![json!("red")], pattern: Some("^r".into()), ..Rules::default() };
    let labels = Shape::Map { values: text().into(), map: MapType::Atomic };
    let schema = with(
        rules,
        object([
            ("size", size),
            ("parts", Schema { shape, ..Schema::default() }),
            ("colour", Schema { nullable: true, ..with(colours, text()) }),
            ("labels", Schema { shape: labels, ..Schema::default() }),
        ]),
    );
    let expected = json!({
        "type": "object",
        "required": ["size"],
        "minProperties": 1,
        "x-kubernetes-validations": [{"rule": "self.size > 0"}],
        "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 2.5, "default": 1},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                      "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "colour": {"type": "string", "enum": ["red"], "pattern": "^r", "nullable": true},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        },
    });
    assert_eq!(spec(schema), expected);
}

#[test]
fn alternatives_name_types_of_plain_values_only() {
    let integer = Schema::scalar(Scalar::Integer);
    let any_of = vec![integer.into(), Schema::scalar(Scalar::String).into()];
    let port = with(Rules { any_of, ..Rules::default() }, Schema::scalar(Scalar::IntOrString));
    let either = with(Rules { required: vec!["a".into()], ..Rules::default() }, object([]));
    let schema = with(Rules { one_of: vec![either.into()], ..Rules::default() }, object([("port", port)]));
    let expected = json!({
        "type": "object",
        "oneOf": [{"required": ["a"]}],
        "properties": {"port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}},
    });
    assert_eq!(spec(schema.clone()), expected);
    let expected = json!({"type": "object", "properties": {"port": {"x-kubernetes-int-or-string": true}}});
    assert_eq!(spec_v2(schema), expected);
}

#[test]
fn open_and_embedded_objects_say_so() {
    let open = changed(object([("known", Schema::scalar(Scalar::String))]), |open, _| *open = true);
    let expected = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"known": {"type": "string"}}});
    assert_eq!(spec(open.clone()), expected);
    assert_eq!(spec_v2(open.clone()), json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(described_v2(open)["properties"], Value::Null, "a client would refuse all other fields");

    let embedded = spec(changed(object([]), |_, embedded| *embedded = true));
    assert_eq!(embedded["x-kubernetes-embedded-resource"], true);
    assert!(embedded["properties"]["metadata"]["allOf"].is_array());
    assert_eq!(spec(Schema::default()), json!({"x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn the_second_version_cannot_say_null() {
    let schema = Schema { nullable: true, default: Some(json!("a")), ..Schema::scalar(Scalar::String) };
    assert_eq!(spec_v2(schema), json!({}));
}
