//! A node of the tree.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use serde_json::Value;

/// What one field may hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The name of a built-in type, as in OpenAPI (`io.k8s.api.core.v1.Container`); empty for anonymous and custom ones.
    pub name: Arc<str>,
    /// Its structure.
    pub shape: Shape,
    /// Whether `null` is a value of its own (custom resources only; elsewhere null means absent).
    pub nullable: bool,
    /// Filled in when absent.
    pub default: Option<Value>,
    /// Left out when it is empty (built-in types only): zero, no items, no members.
    pub omit_empty: bool,
    /// The fields of this object that are written even when they are absent, and as what (built-in types only).
    pub always: Vec<(Arc<str>, Value)>,
    /// How strategic merge patch treats this field.
    pub patch: PatchStrategy,
    /// What a value must hold to be valid, where the schema says so.
    pub rules: Option<Box<Rules>>,
    /// For people, as in `kubectl explain`.
    pub description: Arc<str>,
}

/// The structure of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Shape {
    /// Anything at all, kept as it is.
    #[default]
    Any,
    /// One value.
    Scalar(Scalar),
    /// An object with known fields.
    Object {
        /// The fields by name.
        fields: BTreeMap<Arc<str>, Node>,
        /// Fields that are not named above are kept (`x-kubernetes-preserve-unknown-fields`).
        open: bool,
        /// The whole is an object of its own, with `apiVersion`, `kind` and `metadata` (`x-kubernetes-embedded-resource`).
        embedded: bool,
        /// How server-side apply owns it.
        map: MapType,
    },
    /// An object whose keys are data.
    Map {
        /// What each value is.
        values: Node,
        /// How server-side apply owns it.
        map: MapType,
    },
    /// A list.
    List {
        /// What each item is.
        items: Node,
        /// How server-side apply owns it.
        list: ListType,
    },
}

/// A value without parts. The numbers and special types of Kubernetes are told apart, since they decode and print differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Scalar {
    String,
    Boolean,
    Int32,
    Int64,
    /// An integer of a custom resource, without a format.
    Integer,
    Double,
    /// base64 in JSON
    Bytes,
    /// RFC 3339, seconds
    Time,
    /// RFC 3339, microseconds
    MicroTime,
    /// `metav1.Duration`
    Duration,
    Quantity,
    IntOrString,
}

/// A subtree: one's own, or a built-in type by its name, so that types may contain themselves.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A subtree of this tree.
    Own(Arc<Schema>),
    /// A built-in type, looked up when it is needed.
    Builtin(&'static Schema),
    /// A built-in type whose own tree is not built yet. It breaks the cycle of types that contain themselves.
    Lazy(LazyNode),
}

/// Finds a built-in type when it is first needed.
#[derive(Clone, Copy, Debug)]
pub struct LazyNode {
    /// Its number in the table of built-in types.
    pub index: u32,
    /// How to find it.
    pub find: fn(u32) -> &'static Schema,
}

impl PartialEq for LazyNode {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

/// How server-side apply owns a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    /// As a whole.
    #[default]
    Atomic,
    /// Each value by itself.
    Set,
    /// Each item by these keys.
    Map(Vec<Arc<str>>),
}

/// How server-side apply owns a map or an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    /// Each field by itself.
    #[default]
    Granular,
    /// As a whole.
    Atomic,
}

/// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists merge instead of being replaced.
    pub merge: bool,
    /// Only the fields of the patch are kept.
    pub retain_keys: bool,
    /// The key that items merge by; none for lists of plain values.
    pub merge_key: Option<Arc<str>>,
}

/// What a value must hold, of JSON schema and CEL. Built-in types have few; custom resources have what their CRD says.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are JSON schema's own")]
pub struct Rules {
    pub required: Vec<Arc<str>>,
    pub enumeration: Vec<Value>,
    pub format: Option<Arc<str>>,
    pub pattern: Option<Arc<str>>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    /// `allOf`, `anyOf`, `oneOf` and `not`, which only validate.
    pub all_of: Vec<Node>,
    pub any_of: Vec<Node>,
    pub one_of: Vec<Node>,
    pub not: Option<Node>,
    /// `x-kubernetes-validations`, as they stand in the CRD.
    pub validations: Vec<Value>,
    /// The schema names no type: the shape only says what the parts are, and a value of another type is not an error.
    pub untyped: bool,
}

impl Deref for Node {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            Node::Own(schema) => schema,
            Node::Builtin(schema) => schema,
            Node::Lazy(lazy) => (lazy.find)(lazy.index),
        }
    }
}

impl Default for Node {
    fn default() -> Self {
        Node::Own(Arc::default())
    }
}

impl From<Arc<Schema>> for Node {
    fn from(schema: Arc<Schema>) -> Self {
        Node::Own(schema)
    }
}

impl From<Schema> for Node {
    fn from(schema: Schema) -> Self {
        Node::Own(Arc::new(schema))
    }
}

impl Schema {
    /// A plain value.
    pub fn scalar(scalar: Scalar) -> Self {
        Self { shape: Shape::Scalar(scalar), ..Self::default() }
    }

    /// A field of an object, or what the values of a map are.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        match &self.shape {
            Shape::Object { fields, .. } => fields.get(name).map(Deref::deref),
            Shape::Map { values, .. } => Some(values),
            _ => None,
        }
    }
}
