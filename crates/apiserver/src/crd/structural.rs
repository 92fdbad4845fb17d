//! A [`Schema`] from a CRD's `openAPIV3Schema`.
//!
//! Guaranteed: any JSON gives a schema; what cannot be understood is [`Shape::Any`]. Whether the document is a valid structural
//! schema is the concern of [`super::check`]. Assumed: the caller knows the type of `metadata`, which every custom resource and
//! every embedded resource has, whatever its CRD says.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use crate::schema::{ListType, MapType, Node, Rules, Scalar, Schema, Shape};

/// Deeper schemas are cut off. JSON that was read from a request is never that deep.
const MAX_DEPTH: u8 = 100;

/// The schema of a custom resource. `object_meta` is the type of `metadata`.
pub fn build(openapi: &Value, object_meta: &Node) -> Schema {
    let mut root = Builder { object_meta }.schema(openapi, 0);
    if matches!(root.shape, Shape::Any) {
        root.shape = object(BTreeMap::new(), true);
    }
    if let Shape::Object { fields, .. } = &mut root.shape {
        add_type_and_meta(fields, object_meta);
    }
    root
}

/// The schema of a part of a custom resource, as of a field with a default.
pub(crate) fn part(openapi: &Value) -> Schema {
    Builder { object_meta: &Node::default() }.schema(openapi, 0)
}

struct Builder<'a> {
    object_meta: &'a Node,
}

impl Builder<'_> {
    fn schema(&self, from: &Value, depth: u8) -> Schema {
        let Some(from) = from.as_object().filter(|_| depth < MAX_DEPTH) else { return Schema::default() };
        let shape = self.shape(from, depth);
        let mut rules = self.rules(from, depth);
        rules.untyped =
            text(from, "type").is_empty() && !flag(from, "x-kubernetes-int-or-string") && shape != Shape::Any;
        Schema {
            shape,
            nullable: flag(from, "nullable"),
            default: from.get("default").filter(|default| !default.is_null()).cloned(),
            rules: (rules != Rules::default()).then(|| Box::new(rules)),
            description: text(from, "description").into(),
            ..Schema::default()
        }
    }

    fn node(&self, from: &Value, depth: u8) -> Node {
        self.schema(from, depth + 1).into()
    }

    fn shape(&self, from: &Map<String, Value>, depth: u8) -> Shape {
        if flag(from, "x-kubernetes-int-or-string") {
            return Shape::Scalar(Scalar::IntOrString);
        }
        match text(from, "type") {
            "object" => self.object(from, depth),
            "array" => self.list(from, depth),
            "string" => Shape::Scalar(Scalar::String),
            "boolean" => Shape::Scalar(Scalar::Boolean),
            "number" => Shape::Scalar(Scalar::Double),
            "integer" => Shape::Scalar(match text(from, "format") {
                "int32" => Scalar::Int32,
                "int64" => Scalar::Int64,
                _ => Scalar::Integer,
            }),
            _ if from.contains_key("properties") || from.contains_key("additionalProperties") => {
                self.object(from, depth)
            }
            _ if from.contains_key("items") => self.list(from, depth),
            _ => Shape::Any,
        }
    }

    fn object(&self, from: &Map<String, Value>, depth: u8) -> Shape {
        let map = if text(from, "x-kubernetes-map-type") == "atomic" { MapType::Atomic } else { MapType::Granular };
        let properties = from.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
        match (properties, from.get("additionalProperties")) {
            (None, Some(values @ Value::Object(_))) => Shape::Map { values: self.node(values, depth), map },
            (None, Some(Value::Bool(true))) => Shape::Map { values: anything_but_fields(), map },
            (properties, additional) => {
                let fields = properties.into_iter().flatten();
                let mut fields = fields.map(|(name, of)| (name.as_str().into(), self.node(of, depth))).collect();
                let embedded = flag(from, "x-kubernetes-embedded-resource");
                if embedded {
                    add_type_and_meta(&mut fields, self.object_meta);
                }
                let untyped = text(from, "type").is_empty();
                let open = untyped
                    || flag(from, "x-kubernetes-preserve-unknown-fields")
                    || additional == Some(&Value::Bool(true));
                Shape::Object { fields, open, embedded, map }
            }
        }
    }

    fn list(&self, from: &Map<String, Value>, depth: u8) -> Shape {
        let items = from.get("items").map(|items| self.node(items, depth)).unwrap_or_default();
        let list = match text(from, "x-kubernetes-list-type") {
            "set" => ListType::Set,
            "map" => ListType::Map(texts(from, "x-kubernetes-list-map-keys")),
            _ => ListType::Atomic,
        };
        Shape::List { items, list }
    }

    fn rules(&self, from: &Map<String, Value>, depth: u8) -> Rules {
        let number = |name: &str| from.get(name).and_then(Value::as_f64);
        let count = |name: &str| from.get(name).and_then(Value::as_u64);
        let nodes = |name: &str| array(from, name).iter().map(|of| self.node(of, depth)).collect();
        let word = |name: &str| Some(text(from, name)).filter(|word| !word.is_empty()).map(Into::into);
        Rules {
            required: texts(from, "required"),
            enumeration: array(from, "enum").to_vec(),
            format: word("format"),
            pattern: word("pattern"),
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag(from, "exclusiveMinimum"),
            exclusive_maximum: flag(from, "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag(from, "uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            all_of: nodes("allOf"),
            any_of: nodes("anyOf"),
            one_of: nodes("oneOf"),
            not: from.get("not").filter(|not| !not.is_null()).map(|not| self.node(not, depth)),
            validations: array(from, "x-kubernetes-validations").to_vec(),
            untyped: false,
        }
    }
}

/// `apiVersion`, `kind` and `metadata`. A CRD can only restrict the name in `metadata`; everything else there is built in.
fn add_type_and_meta(fields: &mut BTreeMap<Arc<str>, Node>, object_meta: &Node) {
    for name in ["apiVersion", "kind"] {
        fields.entry(name.into()).or_insert_with(|| Schema::scalar(Scalar::String).into());
    }
    let restricted = fields.get("metadata").map(|own| restricted_meta(own, object_meta));
    fields.insert("metadata".into(), restricted.unwrap_or_else(|| object_meta.clone()));
}

fn restricted_meta(own: &Schema, object_meta: &Node) -> Node {
    let mut whole = Schema::clone(object_meta);
    if let Shape::Any = whole.shape {
        whole.shape = object(BTreeMap::new(), true);
    }
    if let (Shape::Object { fields, .. }, Shape::Object { fields: own, .. }) = (&mut whole.shape, &own.shape) {
        for name in ["name", "generateName"] {
            if let Some(rules) = own.get(name) {
                fields.insert(name.into(), rules.clone());
            }
        }
    }
    whole.into()
}

/// With `additionalProperties: true` values are kept, but an object among them loses its fields, since none is known.
fn anything_but_fields() -> Node {
    let rules = Rules { untyped: true, ..Rules::default() };
    Schema { shape: object(BTreeMap::new(), false), rules: Some(Box::new(rules)), ..Schema::default() }.into()
}

fn object(fields: BTreeMap<Arc<str>, Node>, open: bool) -> Shape {
    Shape::Object { fields, open, embedded: false, map: MapType::Granular }
}

pub(crate) fn text<'a>(from: &'a Map<String, Value>, name: &str) -> &'a str {
    from.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn flag(from: &Map<String, Value>, name: &str) -> bool {
    from.get(name).and_then(Value::as_bool).unwrap_or_default()
}

pub(crate) fn array<'a>(from: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    from.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn texts(from: &Map<String, Value>, name: &str) -> Vec<Arc<str>> {
    array(from, name).iter().filter_map(Value::as_str).map(Into::into).collect()
}
