//! Builds trees from the lines of the table.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::{Value, json};

use super::super::{ListType, MapType, PatchStrategy, ScalarType, Schema, SchemaNode, SchemaShape, ValueValidation};

/// The attributes of a field after its type. Absent ones are empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FieldAttributes<'a> {
    pub(crate) required: bool,
    pub(crate) empty: EmptyEncoding,
    pub(crate) list: &'a str,
    pub(crate) keys: &'a str,
    pub(crate) map: &'a str,
    pub(crate) patch: &'a str,
    pub(crate) key: &'a str,
    pub(crate) default: &'a str,
    /// The enum values; none if any value is allowed.
    pub(crate) values: Option<&'a str>,
}

/// How Go encodes an empty field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EmptyEncoding {
    /// As it is: absent stays absent.
    #[default]
    Keep,
    Omit,
    /// As the zero value of its type, also if it is absent.
    Zero,
    /// As null, also if it is absent.
    Null,
}

/// Scalars without further attributes, which most fields are. They share one tree each.
static SCALAR_SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let scalars = SCALAR_WORDS.iter().filter_map(|(_, scalar)| *scalar);
    let both = scalars.flat_map(|scalar| [(scalar, false), (scalar, true)]);
    both.map(|(scalar, omit_empty)| Schema { omit_empty, ..named(scalar) }).collect()
});

/// The table's names of types without fields.
const SCALAR_WORDS: [(&str, Option<ScalarType>); 12] = [
    ("any", None),
    ("string", Some(ScalarType::String)),
    ("boolean", Some(ScalarType::Boolean)),
    ("int32", Some(ScalarType::Int32)),
    ("int64", Some(ScalarType::Int64)),
    ("double", Some(ScalarType::Double)),
    ("bytes", Some(ScalarType::Bytes)),
    ("time", Some(ScalarType::Time)),
    ("microtime", Some(ScalarType::MicroTime)),
    ("duration", Some(ScalarType::Duration)),
    ("quantity", Some(ScalarType::Quantity)),
    ("intorstring", Some(ScalarType::IntOrString)),
];

/// The tree of a type.
pub(super) fn schema(package: &str, name: &str, lines: &str) -> Schema {
    let mut lines = lines.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').skip(2);
    let map = if words.clone().any(|word| word == "map=atomic") { MapType::Atomic } else { MapType::Granular };
    let name = Arc::from(format!("{package}.{name}"));
    if words.next() == Some("=") {
        let scalar = words.next().and_then(scalar);
        return Schema { name, shape: scalar.map_or(SchemaShape::Any, SchemaShape::Scalar), ..Schema::default() };
    }
    let mut fields = BTreeMap::new();
    let mut always = Vec::new();
    let mut required = Vec::new();
    for (name, of, attributes) in lines.filter_map(field) {
        let name: Arc<str> = name.into();
        let node = node(package, of, attributes);
        if attributes.required {
            required.push(Arc::clone(&name));
        }
        if let Some(zero) = written_when_absent(&node, attributes.empty) {
            always.push((Arc::clone(&name), zero));
        }
        fields.insert(name, node);
    }
    let rules = (!required.is_empty()).then(|| Box::new(ValueValidation { required, ..ValueValidation::default() }));
    let shape = SchemaShape::Object { fields, open: false, embedded: false, map };
    Schema { name, shape, always, rules, ..Schema::default() }
}

/// The name of a field, the name of its type, and the rest.
pub(super) fn field(line: &str) -> Option<(&str, &str, FieldAttributes<'_>)> {
    let (line, values) = match line.split_once(" enum=") {
        Some((line, values)) => (line, Some(values)),
        None => (line, None),
    };
    let mut words = line.trim_start().split(' ');
    let name = words.next()?;
    let of = words.next()?;
    let mut attributes = FieldAttributes { values, ..FieldAttributes::default() };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("required", _) => attributes.required = true,
            ("omit", _) => attributes.empty = EmptyEncoding::Omit,
            ("zero", _) => attributes.empty = EmptyEncoding::Zero,
            ("null", _) => attributes.empty = EmptyEncoding::Null,
            ("list", value) => attributes.list = value,
            ("keys", value) => attributes.keys = value,
            ("map", value) => attributes.map = value,
            ("patch", value) => attributes.patch = value,
            ("key", value) => attributes.key = value,
            ("default", value) => attributes.default = value,
            _ => {}
        }
    }
    Some((name, of, attributes))
}

/// The tree of a field, or of its items.
fn node(package: &str, of: &str, attributes: FieldAttributes<'_>) -> SchemaNode {
    // The items of lists and maps inherit only the enum values.
    let inner = FieldAttributes { values: attributes.values, ..FieldAttributes::default() };
    if let Some(items) = of.strip_prefix("[]") {
        let shape = SchemaShape::List { items: node(package, items, inner), list: list_type(attributes) };
        return special(shape, attributes).into();
    }
    if let Some(values) = of.strip_prefix("{}") {
        let map = if attributes.map == "atomic" { MapType::Atomic } else { MapType::Granular };
        return special(SchemaShape::Map { values: node(package, values, inner), map }, attributes).into();
    }
    match scalar(of) {
        Some(scalar) => plain(scalar, attributes),
        None if of == "any" => special(SchemaShape::Any, attributes).into(),
        None => reference(package, of, attributes),
    }
}

fn plain(scalar: ScalarType, attributes: FieldAttributes<'_>) -> SchemaNode {
    let omit_empty = attributes.empty == EmptyEncoding::Omit;
    let shared = SCALAR_SCHEMAS
        .iter()
        .find(|plain| plain.shape == SchemaShape::Scalar(scalar) && plain.omit_empty == omit_empty);
    match shared {
        Some(shared) if attributes.values.is_none() && default(scalar, attributes).is_none() => {
            SchemaNode::Builtin(shared)
        }
        _ => {
            let values = attributes.values.into_iter().flat_map(|values| values.split('|'));
            let enumeration: Vec<Value> = values.map(Value::from).collect();
            let rules = (!enumeration.is_empty())
                .then(|| Box::new(ValueValidation { enumeration, ..ValueValidation::default() }));
            Schema { omit_empty, default: default(scalar, attributes), rules, ..named(scalar) }.into()
        }
    }
}

/// A reference to another type. The type is copied only if the field has attributes of its own.
fn reference(package: &str, of: &str, attributes: FieldAttributes<'_>) -> SchemaNode {
    let full = if of.contains('.') { of.to_owned() } else { format!("{package}.{of}") };
    let Some(found) = super::lazy_node(&full) else { return SchemaNode::default() };
    let patch = patch(attributes);
    if attributes.map.is_empty() && patch == PatchStrategy::default() {
        return found;
    }
    let mut copy = Schema { patch, ..Schema::clone(&found) };
    if let SchemaShape::Object { map, .. } = &mut copy.shape {
        *map = if attributes.map == "atomic" { MapType::Atomic } else { MapType::Granular };
    }
    copy.into()
}

fn special(shape: SchemaShape, attributes: FieldAttributes<'_>) -> Schema {
    let omit_empty = matches!(attributes.empty, EmptyEncoding::Omit);
    Schema { shape, omit_empty, patch: patch(attributes), ..Schema::default() }
}

/// OpenAPI's default: that of the table, or the zero value that Go writes.
pub(crate) fn default(scalar: ScalarType, attributes: FieldAttributes<'_>) -> Option<Value> {
    match (attributes.default, attributes.empty, scalar) {
        ("", EmptyEncoding::Zero, ScalarType::String) => Some(json!("")),
        ("", EmptyEncoding::Zero, ScalarType::Boolean) => Some(json!(false)),
        ("", EmptyEncoding::Zero, ScalarType::Int32 | ScalarType::Int64 | ScalarType::Integer | ScalarType::Double) => {
            Some(json!(0))
        }
        (text, ..) => serde_json::from_str(text).ok(),
    }
}

fn written_when_absent(node: &SchemaNode, empty: EmptyEncoding) -> Option<Value> {
    match (empty, node) {
        (EmptyEncoding::Keep | EmptyEncoding::Omit, _) => None,
        (EmptyEncoding::Null, _) => Some(Value::Null),
        // A struct. Other types are not looked up here, since they may contain this one.
        (EmptyEncoding::Zero, SchemaNode::Lazy(_)) => Some(if is_any(node) { Value::Null } else { json!({}) }),
        (EmptyEncoding::Zero, node) => Some(zero(&node.shape)),
    }
}

/// Whether a type accepts any value, without building its tree.
fn is_any(node: &SchemaNode) -> bool {
    matches!(node, SchemaNode::Lazy(lazy) if super::is_any(lazy.index))
}

fn zero(shape: &SchemaShape) -> Value {
    match shape {
        SchemaShape::Scalar(ScalarType::String | ScalarType::Duration) => json!(""),
        SchemaShape::Scalar(ScalarType::Boolean) => json!(false),
        SchemaShape::Scalar(ScalarType::Quantity) => json!("0"),
        SchemaShape::Scalar(
            ScalarType::Int32 | ScalarType::Int64 | ScalarType::Integer | ScalarType::Double | ScalarType::IntOrString,
        ) => {
            json!(0)
        }
        SchemaShape::Scalar(ScalarType::Bytes | ScalarType::Time | ScalarType::MicroTime) => Value::Null,
        SchemaShape::Object { .. } => json!({}),
        SchemaShape::Any | SchemaShape::Map { .. } | SchemaShape::List { .. } => Value::Null,
    }
}

/// The type without fields of this name.
pub(crate) fn scalar(word: &str) -> Option<ScalarType> {
    SCALAR_WORDS.iter().find_map(|(known, scalar)| scalar.filter(|_| *known == word))
}

/// A scalar, with the name of its type in OpenAPI, if it has one.
pub(crate) fn named(scalar: ScalarType) -> Schema {
    let name = match scalar {
        ScalarType::Time => "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        ScalarType::MicroTime => "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        ScalarType::Duration => "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
        ScalarType::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity",
        ScalarType::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        _ => "",
    };
    Schema { name: if name.is_empty() { Arc::default() } else { name.into() }, ..Schema::scalar(scalar) }
}

fn list_type(attributes: FieldAttributes<'_>) -> ListType {
    match attributes.list {
        "set" => ListType::Set,
        "map" => ListType::Map(attributes.keys.split(',').map(Arc::from).collect()),
        _ => ListType::Atomic,
    }
}

fn patch(attributes: FieldAttributes<'_>) -> PatchStrategy {
    let has = |word| attributes.patch.split(',').any(|strategy| strategy == word);
    let merge_key = (!attributes.key.is_empty()).then(|| attributes.key.into());
    PatchStrategy { merge: has("merge"), retain_keys: has("retainKeys"), merge_key }
}
