//! The lines of the table as trees.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::{Value, json};

use super::super::{ListType, MapType, Node, PatchStrategy, Rules, Scalar, Schema, Shape};

/// A field's words after its type. What the table does not say is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes<'a> {
    pub(crate) required: bool,
    pub(crate) empty: Empty,
    pub(crate) list: &'a str,
    pub(crate) keys: &'a str,
    pub(crate) map: &'a str,
    pub(crate) patch: &'a str,
    pub(crate) key: &'a str,
    pub(crate) default: &'a str,
    /// The values, or none where anything is allowed.
    pub(crate) values: Option<&'a str>,
}

/// How Go writes a field when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Empty {
    /// As it is: what is absent stays so.
    #[default]
    Keep,
    /// Not at all.
    Omit,
    /// As the zero value of its type, also when it is absent.
    Zero,
    /// As null, also when it is absent.
    Null,
}

/// Plain values without anything special, which most fields are. They share one tree each.
static PLAIN: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let scalars = WORDS.iter().filter_map(|(_, scalar)| *scalar);
    let both = scalars.flat_map(|scalar| [(scalar, false), (scalar, true)]);
    both.map(|(scalar, omit_empty)| Schema { omit_empty, ..named(scalar) }).collect()
});

/// The table's words for types that have no fields.
const WORDS: [(&str, Option<Scalar>); 12] = [
    ("any", None),
    ("string", Some(Scalar::String)),
    ("boolean", Some(Scalar::Boolean)),
    ("int32", Some(Scalar::Int32)),
    ("int64", Some(Scalar::Int64)),
    ("double", Some(Scalar::Double)),
    ("bytes", Some(Scalar::Bytes)),
    ("time", Some(Scalar::Time)),
    ("microtime", Some(Scalar::MicroTime)),
    ("duration", Some(Scalar::Duration)),
    ("quantity", Some(Scalar::Quantity)),
    ("intorstring", Some(Scalar::IntOrString)),
];

/// The tree of a type.
pub(super) fn schema(package: &str, name: &str, lines: &str) -> Schema {
    let mut lines = lines.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').skip(2);
    let map = if words.clone().any(|word| word == "map=atomic") { MapType::Atomic } else { MapType::Granular };
    let name = Arc::from(format!("{package}.{name}"));
    if words.next() == Some("=") {
        let scalar = words.next().and_then(scalar);
        return Schema { name, shape: scalar.map_or(Shape::Any, Shape::Scalar), ..Schema::default() };
    }
    let (mut fields, mut always, mut required) = (BTreeMap::new(), Vec::new(), Vec::new());
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
    let rules = (!required.is_empty()).then(|| Box::new(Rules { required, ..Rules::default() }));
    let shape = Shape::Object { fields, open: false, embedded: false, map };
    Schema { name, shape, always, rules, ..Schema::default() }
}

/// A field's name, the word for its type, and the rest.
pub(super) fn field(line: &str) -> Option<(&str, &str, Attributes<'_>)> {
    let (line, values) = match line.split_once(" enum=") {
        Some((line, values)) => (line, Some(values)),
        None => (line, None),
    };
    let mut words = line.trim_start().split(' ');
    let (name, of) = (words.next()?, words.next()?);
    let mut attributes = Attributes { values, ..Attributes::default() };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("required", _) => attributes.required = true,
            ("omit", _) => attributes.empty = Empty::Omit,
            ("zero", _) => attributes.empty = Empty::Zero,
            ("null", _) => attributes.empty = Empty::Null,
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

/// The tree of a field, or of the items of one.
fn node(package: &str, of: &str, attributes: Attributes<'_>) -> Node {
    // What lists and maps hold has only the values of an enum of its own.
    let inner = Attributes { values: attributes.values, ..Attributes::default() };
    if let Some(items) = of.strip_prefix("[]") {
        let shape = Shape::List { items: node(package, items, inner), list: list_type(attributes) };
        return special(shape, attributes).into();
    }
    if let Some(values) = of.strip_prefix("{}") {
        let map = if attributes.map == "atomic" { MapType::Atomic } else { MapType::Granular };
        return special(Shape::Map { values: node(package, values, inner), map }, attributes).into();
    }
    match scalar(of) {
        Some(scalar) => plain(scalar, attributes),
        None if of == "any" => special(Shape::Any, attributes).into(),
        None => reference(package, of, attributes),
    }
}

fn plain(scalar: Scalar, attributes: Attributes<'_>) -> Node {
    let omit_empty = attributes.empty == Empty::Omit;
    let shared = PLAIN.iter().find(|plain| plain.shape == Shape::Scalar(scalar) && plain.omit_empty == omit_empty);
    match shared {
        Some(shared) if attributes.values.is_none() && default(scalar, attributes).is_none() => Node::Builtin(shared),
        _ => {
            let values = attributes.values.into_iter().flat_map(|values| values.split('|'));
            let enumeration: Vec<Value> = values.map(Value::from).collect();
            let rules = (!enumeration.is_empty()).then(|| Box::new(Rules { enumeration, ..Rules::default() }));
            Schema { omit_empty, default: default(scalar, attributes), rules, ..named(scalar) }.into()
        }
    }
}

/// Another type, copied only where the field says more of it than the type does.
fn reference(package: &str, of: &str, attributes: Attributes<'_>) -> Node {
    let full = if of.contains('.') { of.to_owned() } else { format!("{package}.{of}") };
    let Some(found) = super::lazy(&full) else { return Node::default() };
    let patch = patch(attributes);
    if attributes.map.is_empty() && patch == PatchStrategy::default() {
        return found;
    }
    let mut copy = Schema { patch, ..Schema::clone(&found) };
    if let Shape::Object { map, .. } = &mut copy.shape {
        *map = if attributes.map == "atomic" { MapType::Atomic } else { MapType::Granular };
    }
    copy.into()
}

fn special(shape: Shape, attributes: Attributes<'_>) -> Schema {
    let omit_empty = matches!(attributes.empty, Empty::Omit);
    Schema { shape, omit_empty, patch: patch(attributes), ..Schema::default() }
}

/// OpenAPI's default: the table's own, or the zero value that Go writes.
pub(crate) fn default(scalar: Scalar, attributes: Attributes<'_>) -> Option<Value> {
    match (attributes.default, attributes.empty, scalar) {
        ("", Empty::Zero, Scalar::String) => Some(json!("")),
        ("", Empty::Zero, Scalar::Boolean) => Some(json!(false)),
        ("", Empty::Zero, Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Double) => Some(json!(0)),
        (text, ..) => serde_json::from_str(text).ok(),
    }
}

fn written_when_absent(node: &Node, empty: Empty) -> Option<Value> {
    match (empty, node) {
        (Empty::Keep | Empty::Omit, _) => None,
        (Empty::Null, _) => Some(Value::Null),
        // A struct. Other types are not looked at here, since they may contain this one.
        (Empty::Zero, Node::Lazy(_)) => Some(if is_any(node) { Value::Null } else { json!({}) }),
        (Empty::Zero, node) => Some(zero(&node.shape)),
    }
}

/// Whether a type is one of those that hold anything, without building it.
fn is_any(node: &Node) -> bool {
    matches!(node, Node::Lazy(lazy) if super::is_any(lazy.index))
}

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Scalar(Scalar::String | Scalar::Duration) => json!(""),
        Shape::Scalar(Scalar::Boolean) => json!(false),
        Shape::Scalar(Scalar::Quantity) => json!("0"),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Double | Scalar::IntOrString) => {
            json!(0)
        }
        Shape::Scalar(Scalar::Bytes | Scalar::Time | Scalar::MicroTime) => Value::Null,
        Shape::Object { .. } => json!({}),
        Shape::Any | Shape::Map { .. } | Shape::List { .. } => Value::Null,
    }
}

/// The table's word for a type without fields.
pub(crate) fn scalar(word: &str) -> Option<Scalar> {
    WORDS.iter().find_map(|(known, scalar)| scalar.filter(|_| *known == word))
}

/// A scalar, with the name of its type where it has one in OpenAPI.
pub(crate) fn named(scalar: Scalar) -> Schema {
    let name = match scalar {
        Scalar::Time => "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        Scalar::MicroTime => "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        Scalar::Duration => "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
        Scalar::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity",
        Scalar::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        _ => "",
    };
    Schema { name: if name.is_empty() { Arc::default() } else { name.into() }, ..Schema::scalar(scalar) }
}

fn list_type(attributes: Attributes<'_>) -> ListType {
    match attributes.list {
        "set" => ListType::Set,
        "map" => ListType::Map(attributes.keys.split(',').map(Arc::from).collect()),
        _ => ListType::Atomic,
    }
}

fn patch(attributes: Attributes<'_>) -> PatchStrategy {
    let has = |word| attributes.patch.split(',').any(|strategy| strategy == word);
    let merge_key = (!attributes.key.is_empty()).then(|| attributes.key.into());
    PatchStrategy { merge: has("merge"), retain_keys: has("retainKeys"), merge_key }
}
