//! Schemas of custom resources, from their trees.
//!
//! A tree has the content of a structural schema, except titles, examples, and whether a list is explicitly
//! atomic. `apiVersion`, `kind` and `metadata` are added as in Kubernetes. Version 2 cannot express everything:
//! there, nullable or open values have no type or fields, so that a client that validates objects by it refuses
//! nothing that the server accepts.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Number, Value, json};

use super::{SchemaDialect, names::META, types};
use crate::{
    api::GroupVersion,
    registry::ServedResource,
    schema::{ListType, MapType, ScalarType, Schema, SchemaNode, SchemaShape, ValueValidation},
};

/// The depth below which trees are omitted.
const MAX_DEPTH: u8 = 110;
const API_VERSION: &str = "The group and version whose schema this object follows.";
const KIND: &str = "The kind of this object, in CamelCase. It cannot be changed.";
const METADATA: &str = "Standard object's metadata.";

/// The name of a type: `com.example.v1.Widget`.
pub(super) fn type_name(gv: &GroupVersion, kind: &str) -> String {
    let group: Vec<&str> = gv.group.rsplit('.').collect();
    format!("{}.{}.{kind}", group.join("."), gv.version)
}

/// The schemas of a resource's objects and lists, by name.
pub(super) fn schemas(resource: &ServedResource, dialect: SchemaDialect) -> [(String, Value); 2] {
    let object = type_name(&resource.gv, &resource.kind);
    let list = type_name(&resource.gv, &resource.list_kind);
    [(list, list_schema(resource, dialect)), (object, object_schema(resource, dialect))]
}

fn object_schema(resource: &ServedResource, dialect: SchemaDialect) -> Value {
    let writer = CrdSchemaWriter { dialect };
    let open = matches!(resource.schema.shape, SchemaShape::Object { open: true, .. } | SchemaShape::Any);
    let mut schema = match dialect {
        // A client would assume that the three fields are all there are.
        SchemaDialect::V2 if open => Map::from_iter([("type".to_owned(), json!("object"))]),
        _ => {
            let mut schema = writer.schema(&resource.schema, 0);
            schema.insert("type".into(), "object".into());
            add_meta(&mut schema, dialect);
            schema
        }
    };
    schema.insert("x-kubernetes-group-version-kind".into(), group_version_kind(&resource.gv, &resource.kind));
    schema.into()
}

fn list_schema(resource: &ServedResource, dialect: SchemaDialect) -> Value {
    let item = dialect.address(&type_name(&resource.gv, &resource.kind));
    json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": reference("ListMeta", "Standard list metadata.", dialect),
            "items": {"type": "array", "description": "The objects of the list.", "items": {"$ref": item}},
        },
        "x-kubernetes-group-version-kind": group_version_kind(&resource.gv, &resource.list_kind),
    })
}

fn group_version_kind(gv: &GroupVersion, kind: &str) -> Value {
    json!([{"group": &*gv.group, "version": &*gv.version, "kind": kind}])
}

/// Adds the fields of every object, whatever its CRD declares.
fn add_meta(schema: &mut Map<String, Value>, dialect: SchemaDialect) {
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("apiVersion".into(), json!({"type": "string", "description": API_VERSION}));
        properties.insert("kind".into(), json!({"type": "string", "description": KIND}));
        properties.insert("metadata".into(), reference("ObjectMeta", METADATA, dialect));
    }
}

fn reference(name: &str, description: &str, dialect: SchemaDialect) -> Value {
    let address = dialect.address(&format!("{META}.{name}"));
    match dialect {
        SchemaDialect::V2 => json!({"$ref": address, "description": description}),
        SchemaDialect::V3 => json!({"allOf": [{"$ref": address}], "description": description}),
    }
}

struct CrdSchemaWriter {
    dialect: SchemaDialect,
}

impl CrdSchemaWriter {
    fn schema(&self, schema: &Schema, depth: u8) -> Map<String, Value> {
        let mut out = Map::new();
        if depth > MAX_DEPTH {
            return out;
        }
        if !schema.description.is_empty() {
            out.insert("description".into(), (*schema.description).into());
        }
        let unsaid = self.dialect == SchemaDialect::V2 && schema.nullable;
        if !unsaid {
            self.shape(schema, depth, &mut out);
        }
        if let Some(rules) = &schema.rules {
            self.rules(rules, depth, &mut out);
        }
        if self.dialect == SchemaDialect::V3 {
            if schema.nullable {
                out.insert("nullable".into(), true.into());
            }
            if let Some(default) = &schema.default {
                out.insert("default".into(), default.clone());
            }
        }
        out
    }

    fn node(&self, node: &SchemaNode, depth: u8) -> Value {
        self.schema(node, depth.saturating_add(1)).into()
    }

    fn shape(&self, schema: &Schema, depth: u8, out: &mut Map<String, Value>) {
        // Below `anyOf` and the like, a shape only describes the parts.
        let typed = schema.rules.as_ref().is_none_or(|rules| !rules.untyped);
        let mut say_type = |of: &str| typed.then(|| out.insert("type".into(), of.into()));
        match &schema.shape {
            SchemaShape::Any if schema.rules.is_none() => {
                out.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
            }
            SchemaShape::Any => {}
            SchemaShape::Scalar(ScalarType::IntOrString) => {
                out.insert("x-kubernetes-int-or-string".into(), true.into());
            }
            SchemaShape::Scalar(scalar) => {
                out.insert("type".into(), types::plain(*scalar).remove("type").unwrap_or_default());
            }
            SchemaShape::List { items, list } => {
                say_type("array");
                out.insert("items".into(), self.node(items, depth));
                list_type(list, out);
            }
            SchemaShape::Map { values, map } => {
                say_type("object");
                out.insert("additionalProperties".into(), self.node(values, depth));
                map_type(*map, out);
            }
            SchemaShape::Object { fields, open, embedded, map } => {
                say_type("object");
                map_type(*map, out);
                let open = *open && typed;
                if open {
                    out.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
                }
                if !open || self.dialect == SchemaDialect::V3 {
                    self.properties(fields, *embedded, depth, out);
                }
            }
        }
    }

    fn properties(
        &self,
        fields: &BTreeMap<Arc<str>, SchemaNode>,
        embedded: bool,
        depth: u8,
        out: &mut Map<String, Value>,
    ) {
        // `metadata` is a built-in type and would be copied.
        let own = fields.iter().filter(|(_, node)| node.name.is_empty());
        let properties: Map<String, Value> =
            own.map(|(name, node)| (name.to_string(), self.node(node, depth))).collect();
        if !properties.is_empty() {
            out.insert("properties".into(), properties.into());
        }
        if embedded {
            out.insert("x-kubernetes-embedded-resource".into(), true.into());
            add_meta(out, self.dialect);
        }
    }

    fn rules(&self, rules: &ValueValidation, depth: u8, out: &mut Map<String, Value>) {
        let mut say = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                out.insert(key.into(), value);
            }
        };
        let words = |words: &[Arc<str>]| words.iter().map(|word| Value::from(&**word)).collect::<Vec<_>>();
        say("required", filled(words(&rules.required)));
        say("enum", filled(rules.enumeration.clone()));
        say("format", rules.format.as_deref().map(Value::from));
        say("pattern", rules.pattern.as_deref().map(Value::from));
        say("minimum", rules.minimum.and_then(number));
        say("maximum", rules.maximum.and_then(number));
        say("exclusiveMinimum", rules.exclusive_minimum.then_some(true.into()));
        say("exclusiveMaximum", rules.exclusive_maximum.then_some(true.into()));
        say("multipleOf", rules.multiple_of.and_then(number));
        for (key, count) in [
            ("minLength", rules.min_length),
            ("maxLength", rules.max_length),
            ("minItems", rules.min_items),
            ("maxItems", rules.max_items),
            ("minProperties", rules.min_properties),
            ("maxProperties", rules.max_properties),
        ] {
            say(key, count.map(Value::from));
        }
        say("uniqueItems", rules.unique_items.then_some(true.into()));
        say("x-kubernetes-validations", filled(rules.validations.clone()));
        if self.dialect == SchemaDialect::V3 {
            let nodes = |nodes: &[SchemaNode]| nodes.iter().map(|of| self.node(of, depth)).collect::<Vec<_>>();
            say("allOf", filled(nodes(&rules.all_of)));
            say("anyOf", filled(nodes(&rules.any_of)));
            say("oneOf", filled(nodes(&rules.one_of)));
            say("not", rules.not.as_ref().map(|not| self.node(not, depth)));
        }
    }
}

fn filled(values: Vec<Value>) -> Option<Value> {
    (!values.is_empty()).then_some(Value::Array(values))
}

/// Integers without a fraction: `1` and not `1.0`.
fn number(number: f64) -> Option<Value> {
    // Above this, not every integer is a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        return Some(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

fn list_type(list: &ListType, out: &mut Map<String, Value>) {
    match list {
        ListType::Atomic => {}
        ListType::Set => {
            out.insert("x-kubernetes-list-type".into(), "set".into());
        }
        ListType::Map(keys) => {
            out.insert("x-kubernetes-list-type".into(), "map".into());
            out.insert("x-kubernetes-list-map-keys".into(), keys.iter().map(|key| Value::from(&**key)).collect());
        }
    }
}

fn map_type(map: MapType, out: &mut Map<String, Value>) {
    if map == MapType::Atomic {
        out.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
}
