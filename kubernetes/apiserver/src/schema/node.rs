//! The nodes of a schema tree.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use serde_json::Value;

/// The schema of one value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The name of a built-in type, as in OpenAPI (`io.k8s.api.core.v1.Container`); empty for anonymous and
    /// custom ones.
    pub name: Arc<str>,
    pub shape: SchemaShape,
    /// Whether `null` is a value of its own (custom resources only; elsewhere null means absent).
    pub nullable: bool,
    pub default: Option<Value>,
    /// Omitted when it is empty (built-in types only): zero, no items, no members.
    pub omit_empty: bool,
    /// The fields that are written even when they are absent, with their values (built-in types only).
    pub always: Vec<(Arc<str>, Value)>,
    /// How strategic merge patch treats this field.
    pub patch: PatchStrategy,
    /// Validation rules, if the schema has any.
    pub rules: Option<Box<ValueValidation>>,
    /// The description, as in `kubectl explain`.
    pub description: Arc<str>,
}

/// The structure of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum SchemaShape {
    /// Any value, kept as it is.
    #[default]
    Any,
    Scalar(ScalarType),
    /// An object with known fields.
    Object {
        fields: BTreeMap<Arc<str>, SchemaNode>,
        /// Undeclared fields are kept (`x-kubernetes-preserve-unknown-fields`).
        open: bool,
        /// The value is a complete object, with `apiVersion`, `kind` and `metadata`
        /// (`x-kubernetes-embedded-resource`).
        embedded: bool,
        map: MapType,
    },
    /// An object whose keys are data.
    Map {
        values: SchemaNode,
        map: MapType,
    },
    List {
        items: SchemaNode,
        list: ListType,
    },
}

/// A value without parts. The numeric and special types of Kubernetes are distinguished, since they are decoded
/// and printed differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarType {
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

/// A subtree: of this tree, or of a built-in type, so that types may contain themselves.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaNode {
    Own(Arc<Schema>),
    /// A built-in type whose tree exists.
    Builtin(&'static Schema),
    /// A built-in type whose tree is not built yet. It breaks the cycle of types that contain themselves.
    Lazy(LazyNode),
}

/// Looks up a built-in type on its first use.
#[derive(Clone, Copy, Debug)]
pub struct LazyNode {
    /// The index in the table of built-in types.
    pub index: u32,
    pub find: fn(u32) -> &'static Schema,
}

impl PartialEq for LazyNode {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

/// Ownership of a list in server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    #[default]
    Atomic,
    Set,
    /// Each item, by these keys.
    Map(Vec<Arc<str>>),
}

/// Ownership of a map or an object in server-side apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapType {
    #[default]
    Granular,
    Atomic,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged instead of replaced.
    pub merge: bool,
    /// Only the fields of the patch are kept.
    pub retain_keys: bool,
    /// The key by which items are merged; none for lists of scalars.
    pub merge_key: Option<Arc<str>>,
}

/// Validation rules of JSON schema and CEL. Built-in types have few; custom resources have those of their CRD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueValidation {
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
    pub all_of: Vec<SchemaNode>,
    pub any_of: Vec<SchemaNode>,
    pub one_of: Vec<SchemaNode>,
    pub not: Option<SchemaNode>,
    /// `x-kubernetes-validations`, as in the CRD.
    pub validations: Vec<Value>,
    /// The schema has no type: the shape only describes the parts, and a value of another type is not an error.
    pub untyped: bool,
}

impl Deref for SchemaNode {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            SchemaNode::Own(schema) => schema,
            SchemaNode::Builtin(schema) => schema,
            SchemaNode::Lazy(lazy) => (lazy.find)(lazy.index),
        }
    }
}

impl Default for SchemaNode {
    fn default() -> Self {
        SchemaNode::Own(Arc::default())
    }
}

impl From<Arc<Schema>> for SchemaNode {
    fn from(schema: Arc<Schema>) -> Self {
        SchemaNode::Own(schema)
    }
}

impl From<Schema> for SchemaNode {
    fn from(schema: Schema) -> Self {
        SchemaNode::Own(Arc::new(schema))
    }
}

impl Schema {
    pub fn scalar(scalar: ScalarType) -> Self {
        Self { shape: SchemaShape::Scalar(scalar), ..Self::default() }
    }

    /// The schema of a field of an object, or of the values of a map.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        match &self.shape {
            SchemaShape::Object { fields, .. } => fields.get(name).map(Deref::deref),
            SchemaShape::Map { values, .. } => Some(values),
            _ => None,
        }
    }
}
