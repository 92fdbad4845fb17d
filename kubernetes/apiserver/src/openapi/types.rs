//! Built-in types as OpenAPI schemas, directly from the lines of their table.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::SchemaDialect;
use crate::{
    api::GroupVersion,
    schema::{
        ScalarType,
        builtin::{
            self, RawType,
            parse::{self, EmptyEncoding, FieldAttributes},
        },
    },
};

/// The package whose types without a structure may contain more than objects.
const EXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";

/// Unions: types with a field that says which other one is set.
const UNIONS: [(&str, &str, &[&str]); 8] = [
    ("io.k8s.api.core.v1.AppArmorProfile", "type", &["localhostProfile"]),
    ("io.k8s.api.core.v1.PodSchedulingGroup", "", &["podGroupName"]),
    ("io.k8s.api.core.v1.SeccompProfile", "type", &["localhostProfile"]),
    ("io.k8s.api.flowcontrol.v1.LimitResponse", "type", &["queuing"]),
    ("io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec", "type", &["exempt", "limited"]),
    ("io.k8s.api.flowcontrol.v1.Subject", "kind", &["group", "serviceAccount", "user"]),
    ("io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupDisruptionMode", "", &["all", "single"]),
    ("io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy", "", &["basic", "gang"]),
];

/// Adds a type, and every type that it refers to.
pub(super) fn collect_types(name: &str, found: &mut BTreeSet<String>) {
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let Some(raw) = builtin::raw(&name).filter(|_| !found.contains(&name)) else { continue };
        open.extend(raw.fields().filter_map(|(_, word, _)| raw.target(word)));
        found.insert(name);
    }
}

/// The schema of a type. Of a type with many kinds, only those of the core group and of `gv` are listed.
pub(super) fn type_schema(name: &str, dialect: SchemaDialect, gv: Option<&GroupVersion>) -> Value {
    let Some(raw) = builtin::raw(name) else { return json!({}) };
    if let Some(word) = raw.alias() {
        return alias(&raw, word, dialect);
    }
    let writer = TypeSchemaWriter { raw: &raw, dialect };
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    let properties: Map<String, Value> = raw
        .fields()
        .map(|(field, word, attributes)| (field.to_owned(), writer.field(field, word, attributes)))
        .collect();
    let required: Vec<Value> =
        raw.fields().filter(|(.., attributes)| attributes.required).map(|(field, ..)| field.into()).collect();
    insert_unless_empty(&mut schema, "required", required);
    insert_unless_empty(&mut schema, "x-kubernetes-group-version-kind", kinds(&raw, gv));
    insert_unless_empty(&mut schema, "x-kubernetes-unions", union(name).into_iter().collect());
    if raw.is_atomic() {
        schema.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
    if !properties.is_empty() {
        schema.insert("properties".into(), properties.into());
    }
    schema.into()
}

fn insert_unless_empty(schema: &mut Map<String, Value>, key: &str, values: Vec<Value>) {
    if !values.is_empty() {
        schema.insert(key.into(), values.into());
    }
}

fn alias(raw: &RawType, word: &str, dialect: SchemaDialect) -> Value {
    match (parse::scalar(word), dialect) {
        (None, _) if raw.package == EXTENSIONS => json!({}),
        (None, _) => json!({"type": "object"}),
        (Some(ScalarType::Quantity), SchemaDialect::V3) => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        (Some(ScalarType::IntOrString), SchemaDialect::V3) => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        (Some(scalar), _) => plain(scalar).into(),
    }
}

pub(super) fn plain(scalar: ScalarType) -> Map<String, Value> {
    let (of, format) = match scalar {
        ScalarType::Boolean => ("boolean", ""),
        ScalarType::Int32 => ("integer", "int32"),
        ScalarType::Int64 => ("integer", "int64"),
        ScalarType::Integer => ("integer", ""),
        ScalarType::Double => ("number", "double"),
        ScalarType::Bytes => ("string", "byte"),
        ScalarType::Time | ScalarType::MicroTime => ("string", "date-time"),
        ScalarType::IntOrString => ("string", "int-or-string"),
        ScalarType::String | ScalarType::Duration | ScalarType::Quantity => ("string", ""),
    };
    let mut schema = Map::new();
    schema.insert("type".into(), of.into());
    if !format.is_empty() {
        schema.insert("format".into(), format.into());
    }
    schema
}

fn kinds(raw: &RawType, gv: Option<&GroupVersion>) -> Vec<Value> {
    let mut kinds: Vec<_> = raw.served_in().collect();
    kinds.sort_unstable();
    if kinds.len() > 1
        && let Some(gv) = gv
    {
        kinds.retain(|(group, version)| group.is_empty() || (*group == &*gv.group && *version == &*gv.version));
    }
    kinds.iter().map(|(group, version)| json!({"group": group, "version": version, "kind": raw.name})).collect()
}

fn union(name: &str) -> Option<Value> {
    let (_, discriminator, fields) = UNIONS.iter().find(|(known, ..)| *known == name)?;
    let value = |field: &&str| field.get(..1).unwrap_or_default().to_uppercase() + field.get(1..).unwrap_or_default();
    let fields: Map<String, Value> = fields.iter().map(|field| ((*field).to_owned(), value(field).into())).collect();
    let mut union = json!({ "fields-to-discriminateBy": fields });
    if let Some(union) = union.as_object_mut().filter(|_| !discriminator.is_empty()) {
        union.insert("discriminator".into(), (*discriminator).into());
    }
    Some(union)
}

struct TypeSchemaWriter<'r> {
    raw: &'r RawType,
    dialect: SchemaDialect,
}

impl TypeSchemaWriter<'_> {
    fn field(&self, name: &str, word: &str, attributes: FieldAttributes<'_>) -> Value {
        let mut schema = match self.raw.target(word).filter(|_| !is_container(word)) {
            Some(target) => self.reference(name, &target, attributes),
            None => self.part(word, attributes),
        };
        let mut say = |key: &str, value: Value| schema.insert(key.into(), value);
        for (key, value) in [
            ("x-kubernetes-list-type", attributes.list),
            ("x-kubernetes-map-type", attributes.map),
            ("x-kubernetes-patch-strategy", attributes.patch),
            ("x-kubernetes-patch-merge-key", attributes.key),
        ] {
            if !value.is_empty() {
                say(key, value.into());
            }
        }
        if !attributes.keys.is_empty() {
            say("x-kubernetes-list-map-keys", attributes.keys.split(',').collect());
        }
        schema.into()
    }

    /// A field of another type. Version 3 allows nothing beside a reference, so the attributes of the field are
    /// wrapped around it.
    fn reference(&self, name: &str, target: &str, attributes: FieldAttributes<'_>) -> Map<String, Value> {
        let reference = self.bare(target);
        // A CRD's schema mirrors JSON schema; most of its fields are bare references.
        let bare = self.raw.package == EXTENSIONS && self.raw.name == "JSONSchemaProps" && name != "default";
        if self.dialect == SchemaDialect::V2 || bare {
            return reference;
        }
        let mut schema = Map::new();
        schema.insert("allOf".into(), vec![Value::from(reference)].into());
        let is_struct = builtin::raw(target).is_some_and(|raw| raw.alias().is_none());
        if attributes.empty == EmptyEncoding::Zero && is_struct {
            schema.insert("default".into(), json!({}));
        }
        schema
    }

    fn bare(&self, target: &str) -> Map<String, Value> {
        Map::from_iter([("$ref".to_owned(), self.dialect.address(target).into())])
    }

    /// A list, a map or a scalar.
    fn part(&self, word: &str, attributes: FieldAttributes<'_>) -> Map<String, Value> {
        let (of, key, inner) = match (word.strip_prefix("[]"), word.strip_prefix("{}")) {
            (Some(inner), _) => ("array", "items", inner),
            (_, Some(inner)) => ("object", "additionalProperties", inner),
            (None, None) => return self.plain(word, attributes),
        };
        let values = FieldAttributes { values: attributes.values, ..FieldAttributes::default() };
        let inner = match self.raw.target(inner).filter(|_| !is_container(inner)) {
            Some(target) => self.bare(&target),
            None => self.part(inner, values),
        };
        Map::from_iter([("type".to_owned(), of.into()), (key.to_owned(), inner.into())])
    }

    fn plain(&self, word: &str, attributes: FieldAttributes<'_>) -> Map<String, Value> {
        let Some(scalar) = parse::scalar(word) else { return Map::new() };
        let mut schema = plain(scalar);
        if let Some(values) = attributes.values {
            schema.insert("enum".into(), values.split('|').collect());
        }
        // Version 2 has no defaults: clients would compare them with values.
        if let Some(default) = parse::default(scalar, attributes).filter(|_| self.dialect == SchemaDialect::V3) {
            schema.insert("default".into(), default);
        }
        schema
    }
}

fn is_container(word: &str) -> bool {
    word.starts_with("[]") || word.starts_with("{}")
}
