//! Builds a [`Schema`] from a CRD's `openAPIV3Schema`.
//!
//! Guaranteed: any JSON gives a schema; an unknown construct becomes [`SchemaShape::Any`]. Whether the document
//! is a valid structural schema is checked by `crd::definition_check`. Assumed: the caller provides the type of
//! `metadata`, which every custom resource and every embedded resource has, whatever its CRD declares.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use crate::schema::{ListType, MapType, ScalarType, Schema, SchemaNode, SchemaShape, ValueValidation};

/// Deeper schemas are cut off. JSON from a request is never that deep.
const MAX_SCHEMA_DEPTH: u8 = 100;

/// The schema of a custom resource. `object_meta` is the type of `metadata`.
pub fn build_schema(openapi: &Value, object_meta: &SchemaNode) -> Schema {
    let mut root = SchemaBuilder { object_meta }.schema(openapi, 0);
    if matches!(root.shape, SchemaShape::Any) {
        root.shape = object(BTreeMap::new(), true);
    }
    if let SchemaShape::Object { fields, .. } = &mut root.shape {
        add_type_and_meta(fields, object_meta);
    }
    root
}

/// The schema of a part of a custom resource, such as a field with a default.
pub(crate) fn build_part(openapi: &Value) -> Schema {
    SchemaBuilder { object_meta: &SchemaNode::default() }.schema(openapi, 0)
}

struct SchemaBuilder<'a> {
    object_meta: &'a SchemaNode,
}

impl SchemaBuilder<'_> {
    fn schema(&self, from: &Value, depth: u8) -> Schema {
        let Some(from) = from.as_object().filter(|_| depth < MAX_SCHEMA_DEPTH) else { return Schema::default() };
        let shape = self.shape(from, depth);
        let mut rules = self.rules(from, depth);
        rules.untyped = text(from, "type").is_empty()
            && !bool_field(from, "x-kubernetes-int-or-string")
            && shape != SchemaShape::Any;
        Schema {
            shape,
            nullable: bool_field(from, "nullable"),
            default: from.get("default").filter(|default| !default.is_null()).cloned(),
            rules: (rules != ValueValidation::default()).then(|| Box::new(rules)),
            description: text(from, "description").into(),
            ..Schema::default()
        }
    }

    fn node(&self, from: &Value, depth: u8) -> SchemaNode {
        self.schema(from, depth + 1).into()
    }

    fn shape(&self, from: &Map<String, Value>, depth: u8) -> SchemaShape {
        if bool_field(from, "x-kubernetes-int-or-string") {
            return SchemaShape::Scalar(ScalarType::IntOrString);
        }
        match text(from, "type") {
            "object" => self.object(from, depth),
            "array" => self.list(from, depth),
            "string" => SchemaShape::Scalar(ScalarType::String),
            "boolean" => SchemaShape::Scalar(ScalarType::Boolean),
            "number" => SchemaShape::Scalar(ScalarType::Double),
            "integer" => SchemaShape::Scalar(match text(from, "format") {
                "int32" => ScalarType::Int32,
                "int64" => ScalarType::Int64,
                _ => ScalarType::Integer,
            }),
            _ if from.contains_key("properties") || from.contains_key("additionalProperties") => {
                self.object(from, depth)
            }
            _ if from.contains_key("items") => self.list(from, depth),
            _ => SchemaShape::Any,
        }
    }

    fn object(&self, from: &Map<String, Value>, depth: u8) -> SchemaShape {
        let map = if text(from, "x-kubernetes-map-type") == "atomic" { MapType::Atomic } else { MapType::Granular };
        let properties = from.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
        match (properties, from.get("additionalProperties")) {
            (None, Some(values @ Value::Object(_))) => SchemaShape::Map { values: self.node(values, depth), map },
            (None, Some(Value::Bool(true))) => SchemaShape::Map { values: anything_but_fields(), map },
            (properties, additional) => {
                let fields = properties.into_iter().flatten();
                let mut fields = fields.map(|(name, of)| (name.as_str().into(), self.node(of, depth))).collect();
                let embedded = bool_field(from, "x-kubernetes-embedded-resource");
                if embedded {
                    add_type_and_meta(&mut fields, self.object_meta);
                }
                let untyped = text(from, "type").is_empty();
                let open = untyped
                    || bool_field(from, "x-kubernetes-preserve-unknown-fields")
                    || additional == Some(&Value::Bool(true));
                SchemaShape::Object { fields, open, embedded, map }
            }
        }
    }

    fn list(&self, from: &Map<String, Value>, depth: u8) -> SchemaShape {
        let items = from.get("items").map(|items| self.node(items, depth)).unwrap_or_default();
        let list = match text(from, "x-kubernetes-list-type") {
            "set" => ListType::Set,
            "map" => ListType::Map(string_list(from, "x-kubernetes-list-map-keys")),
            _ => ListType::Atomic,
        };
        SchemaShape::List { items, list }
    }

    fn rules(&self, from: &Map<String, Value>, depth: u8) -> ValueValidation {
        let number = |name: &str| from.get(name).and_then(Value::as_f64);
        let count = |name: &str| from.get(name).and_then(Value::as_u64);
        let nodes = |name: &str| array_field(from, name).iter().map(|of| self.node(of, depth)).collect();
        let word = |name: &str| Some(text(from, name)).filter(|word| !word.is_empty()).map(Into::into);
        ValueValidation {
            required: string_list(from, "required"),
            enumeration: array_field(from, "enum").to_vec(),
            format: word("format"),
            pattern: word("pattern"),
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: bool_field(from, "exclusiveMinimum"),
            exclusive_maximum: bool_field(from, "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: bool_field(from, "uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: nodes("allOf"),
            any_of: nodes("anyOf"),
            one_of: nodes("oneOf"),
            not: from.get("not").filter(|not| !not.is_null()).map(|not| self.node(not, depth)),
            validations: array_field(from, "x-kubernetes-validations").to_vec(),
            untyped: false,
        }
    }
}

/// `apiVersion`, `kind` and `metadata`. A CRD can only restrict the name in `metadata`; everything else there
/// is built in.
fn add_type_and_meta(fields: &mut BTreeMap<Arc<str>, SchemaNode>, object_meta: &SchemaNode) {
    for name in ["apiVersion", "kind"] {
        fields.entry(name.into()).or_insert_with(|| Schema::scalar(ScalarType::String).into());
    }
    let restricted = fields.get("metadata").map(|own| restricted_meta(own, object_meta));
    fields.insert("metadata".into(), restricted.unwrap_or_else(|| object_meta.clone()));
}

fn restricted_meta(own: &Schema, object_meta: &SchemaNode) -> SchemaNode {
    let mut whole = Schema::clone(object_meta);
    if let SchemaShape::Any = whole.shape {
        whole.shape = object(BTreeMap::new(), true);
    }
    if let (SchemaShape::Object { fields, .. }, SchemaShape::Object { fields: own, .. }) =
        (&mut whole.shape, &own.shape)
    {
        for name in ["name", "generateName"] {
            if let Some(rules) = own.get(name) {
                fields.insert(name.into(), rules.clone());
            }
        }
    }
    whole.into()
}

/// With `additionalProperties: true` values are kept, but objects among them lose their fields, which are not
/// declared.
fn anything_but_fields() -> SchemaNode {
    let rules = ValueValidation { untyped: true, ..ValueValidation::default() };
    Schema { shape: object(BTreeMap::new(), false), rules: Some(Box::new(rules)), ..Schema::default() }.into()
}

fn object(fields: BTreeMap<Arc<str>, SchemaNode>, open: bool) -> SchemaShape {
    SchemaShape::Object { fields, open, embedded: false, map: MapType::Granular }
}

pub(crate) fn text<'a>(from: &'a Map<String, Value>, name: &str) -> &'a str {
    from.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn bool_field(from: &Map<String, Value>, name: &str) -> bool {
    from.get(name).and_then(Value::as_bool).unwrap_or_default()
}

pub(crate) fn array_field<'a>(from: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    from.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn string_list(from: &Map<String, Value>, name: &str) -> Vec<Arc<str>> {
    array_field(from, name).iter().filter_map(Value::as_str).map(Into::into).collect()
}
