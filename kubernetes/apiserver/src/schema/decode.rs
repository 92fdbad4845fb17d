//! Decodes objects of built-in kinds with the same result as a round trip through Kubernetes' Go types.
//!
//! One walk over an object and its tree: wrong types are refused with Go's messages, nulls count as absent,
//! unknown fields are dropped and reported, and values are normalized as Go prints them: canonical quantities
//! and times, empty fields omitted or written as zero. The result is stable: a second walk changes nothing.
//!
//! Not done: fields that differ from a known one only in case, and the names of Go's string types in errors
//! (`v1.PullPolicy` is called `string`). Members are visited in the order of their names, so that of several
//! errors the first by name is reported, and unknown fields are reported in that order.

mod base64;
mod error;
mod scalar;
mod time;

use serde_json::{Map, Value};

pub use self::error::DecodeError;
use super::{Schema, SchemaNode, SchemaShape, builtin};

/// The deepest nesting of a walk. Kubernetes' own types are never deeper, except the schemas in a CRD.
pub const MAX_DEPTH: u32 = 256;
/// The limit of reported unknown fields, as in Kubernetes.
const MAX_UNKNOWN_FIELDS: usize = 100;

const JSON_SCHEMA_PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Checks and normalizes an object by a built-in type. Returns the paths of its unknown fields, as in `unknown
/// field "spec.replica"`.
pub fn check_types(object: &mut Value, schema: &Schema) -> Result<Vec<String>, DecodeError> {
    if object.is_null() {
        *object = Value::Object(Map::new());
    }
    let mut walk = DecodeWalk::default();
    walk.value(object, schema)?;
    Ok(walk.unknown)
}

#[derive(Default)]
struct DecodeWalk {
    depth: u32,
    /// Paths relative to the current value.
    unknown: Vec<String>,
}

impl DecodeWalk {
    fn value(&mut self, value: &mut Value, schema: &Schema) -> Result<(), DecodeError> {
        match (&schema.shape, value) {
            (SchemaShape::Scalar(scalar), value) => scalar::check_scalar(*scalar, value),
            (SchemaShape::Any, value) => self.any(value, schema),
            (SchemaShape::Object { .. }, Value::Object(members)) => self.nested(|walk| walk.object(members, schema)),
            (SchemaShape::Map { values, .. }, Value::Object(members)) => self.nested(|walk| walk.map(members, values)),
            (SchemaShape::List { items, .. }, Value::Array(list)) => self.nested(|walk| walk.list(list, items)),
            (_, value) => Err(error::wrong_type(value, schema)),
        }
    }

    fn nested(&mut self, inside: impl FnOnce(&mut Self) -> Result<(), DecodeError>) -> Result<(), DecodeError> {
        if self.depth == MAX_DEPTH {
            return Err(DecodeError::too_deep());
        }
        self.depth += 1;
        inside(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, members: &mut Map<String, Value>, schema: &Schema) -> Result<(), DecodeError> {
        let SchemaShape::Object { fields, open, .. } = &schema.shape else { return Ok(()) };
        let mut failed = None;
        members.retain(|name, value| match fields.get(name.as_str()) {
            _ if failed.is_some() => true,
            None => *open || self.report(name),
            Some(_) if value.is_null() => false,
            Some(node) => self.field(name, value, node).unwrap_or_else(|error| {
                failed = Some(error.in_struct_field(schema, name));
                true
            }),
        });
        match failed {
            Some(error) => Err(error),
            None => self.fill(members, schema),
        }
    }

    /// Adds fields that Go writes even when they are absent.
    fn fill(&mut self, members: &mut Map<String, Value>, schema: &Schema) -> Result<(), DecodeError> {
        for (name, zero) in &schema.always {
            if members.contains_key(&**name) {
                continue;
            }
            let mut value = zero.clone();
            if let (Value::Object(_), Some(of)) = (&value, schema.field(name)) {
                self.value(&mut value, of)?;
            }
            members.insert(name.to_string(), value);
        }
        Ok(())
    }

    /// Walks a field, and returns whether it is kept.
    fn field(&mut self, name: &str, value: &mut Value, node: &SchemaNode) -> Result<bool, DecodeError> {
        self.with_path_prefix(|| name.to_owned(), |walk| walk.value(value, node))?;
        if node.omit_empty {
            return Ok(!is_empty(value));
        }
        // Empty lists and maps are nil after they were stored. A nil field that is always written is added as
        // null.
        let many = matches!(node.shape, SchemaShape::List { .. } | SchemaShape::Map { .. });
        Ok(!(value.is_null() || many && is_empty(value)))
    }

    fn map(&mut self, members: &mut Map<String, Value>, values: &SchemaNode) -> Result<(), DecodeError> {
        members.iter_mut().try_for_each(|(name, value)| self.item(|| name.clone(), value, values))
    }

    fn list(&mut self, list: &mut [Value], items: &SchemaNode) -> Result<(), DecodeError> {
        list.iter_mut().enumerate().try_for_each(|(index, value)| self.item(|| format!("[{index}]"), value, items))
    }

    /// Walks an item of a list or a value of a map. It is always kept: null becomes the zero value.
    fn item(&mut self, step: impl Fn() -> String, value: &mut Value, node: &SchemaNode) -> Result<(), DecodeError> {
        if value.is_null() {
            *value = scalar::zero_item(&node.shape);
        }
        if value.is_null() { Ok(()) } else { self.with_path_prefix(step, |walk| walk.value(value, node)) }
    }

    /// Prepends a step to the paths of unknown fields that are found inside.
    fn with_path_prefix(
        &mut self,
        step: impl Fn() -> String,
        inside: impl FnOnce(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let before = self.unknown.len();
        inside(self)?;
        for path in self.unknown.iter_mut().skip(before) {
            *path = join(&step(), path);
        }
        Ok(())
    }

    /// Reports an unknown field, which is dropped.
    fn report(&mut self, name: &str) -> bool {
        if self.unknown.len() < MAX_UNKNOWN_FIELDS {
            self.unknown.push(name.to_owned());
        }
        false
    }

    /// The schemas inside a CRD have fields that hold a schema or something else. Kubernetes decodes them
    /// separately, and reports no unknown fields in them.
    fn any(&mut self, value: &mut Value, schema: &Schema) -> Result<(), DecodeError> {
        let either = schema.name.strip_prefix(JSON_SCHEMA_PROPS).is_some_and(|or| or.starts_with("Or"));
        let Some(props) = either.then(|| builtin::schema_by_name(JSON_SCHEMA_PROPS)).flatten() else { return Ok(()) };
        let mut silent = DecodeWalk { depth: self.depth, ..DecodeWalk::default() };
        match value {
            Value::Object(_) => silent.value(value, props),
            Value::Array(list) => {
                list.iter_mut().filter(|item| item.is_object()).try_for_each(|item| silent.value(item, props))
            }
            _ => Ok(()),
        }
    }
}

/// Joins two parts of a path: `spec` and `containers`, `containers` and `[0]`.
pub(super) fn join(step: &str, path: &str) -> String {
    if path.starts_with('[') { format!("{step}{path}") } else { format!("{step}.{path}") }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

#[cfg(test)]
mod tests;
