//! Objects of built-in kinds, as a trip through Kubernetes' Go types leaves them.
//!
//! One walk over an object and its tree: wrong types are refused in Go's words, nulls mean absent, unknown fields go and are
//! reported, and values come back as Go prints them: canonical quantities and times, empty fields left out or written as
//! zero. The result is stable: a second walk changes nothing.
//!
//! Not done: fields that differ from a known one only in case, and the names of Go's string types in errors (`v1.PullPolicy`
//! is called `string`). An object's members are visited in the order of their names, so that of several errors the first by
//! name is reported, and unknown fields come in that order.

mod base64;
mod error;
mod scalar;
mod time;

use serde_json::{Map, Value};

pub use self::error::DecodeError;
use super::{Node, Schema, Shape, builtin};

/// Nesting that a walk follows. Kubernetes' own types are never deeper, except the schemas in a CRD.
pub const MAX_DEPTH: u32 = 256;
/// Unknown fields that are reported, as many as Kubernetes reports.
const MAX_UNKNOWN: usize = 100;

const PROPS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// Makes an object what a built-in type says, and gives the paths of the unknown fields that it had, as in
/// `unknown field "spec.replica"`.
pub fn check(object: &mut Value, schema: &Schema) -> Result<Vec<String>, DecodeError> {
    if object.is_null() {
        *object = Value::Object(Map::new());
    }
    let mut walk = Walk::default();
    walk.value(object, schema)?;
    Ok(walk.unknown)
}

#[derive(Default)]
struct Walk {
    depth: u32,
    /// Paths from the value that is being walked.
    unknown: Vec<String>,
}

impl Walk {
    fn value(&mut self, value: &mut Value, schema: &Schema) -> Result<(), DecodeError> {
        match (&schema.shape, value) {
            (Shape::Scalar(scalar), value) => scalar::check(*scalar, value),
            (Shape::Any, value) => self.any(value, schema),
            (Shape::Object { .. }, Value::Object(members)) => self.nested(|walk| walk.object(members, schema)),
            (Shape::Map { values, .. }, Value::Object(members)) => self.nested(|walk| walk.map(members, values)),
            (Shape::List { items, .. }, Value::Array(list)) => self.nested(|walk| walk.list(list, items)),
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
        let Shape::Object { fields, open, .. } = &schema.shape else { return Ok(()) };
        let mut failed = None;
        members.retain(|name, value| match fields.get(name.as_str()) {
            _ if failed.is_some() => true,
            None => *open || self.report(name),
            Some(_) if value.is_null() => false,
            Some(node) => self.field(name, value, node).unwrap_or_else(|error| {
                failed = Some(error.inside(schema, name));
                true
            }),
        });
        match failed {
            Some(error) => Err(error),
            None => self.fill(members, schema),
        }
    }

    /// Adds what Go writes even when it is absent.
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

    /// Walks a field, and says whether it stays.
    fn field(&mut self, name: &str, value: &mut Value, node: &Node) -> Result<bool, DecodeError> {
        self.within(|| name.to_owned(), |walk| walk.value(value, node))?;
        if node.omit_empty {
            return Ok(!is_empty(value));
        }
        // Lists and maps without items are nil after they were stored. What is nil and always written is added as null.
        let many = matches!(node.shape, Shape::List { .. } | Shape::Map { .. });
        Ok(!(value.is_null() || many && is_empty(value)))
    }

    fn map(&mut self, members: &mut Map<String, Value>, values: &Node) -> Result<(), DecodeError> {
        members.iter_mut().try_for_each(|(name, value)| self.item(|| name.clone(), value, values))
    }

    fn list(&mut self, list: &mut [Value], items: &Node) -> Result<(), DecodeError> {
        list.iter_mut().enumerate().try_for_each(|(index, value)| self.item(|| format!("[{index}]"), value, items))
    }

    /// Walks what a list or a map holds. It is never left out: null is the zero value.
    fn item(&mut self, step: impl Fn() -> String, value: &mut Value, node: &Node) -> Result<(), DecodeError> {
        if value.is_null() {
            *value = scalar::zero_item(&node.shape);
        }
        if value.is_null() { Ok(()) } else { self.within(step, |walk| walk.value(value, node)) }
    }

    /// Puts a step in front of the unknown fields that are found inside.
    fn within(
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

    /// Notes an unknown field. It does not stay.
    fn report(&mut self, name: &str) -> bool {
        if self.unknown.len() < MAX_UNKNOWN {
            self.unknown.push(name.to_owned());
        }
        false
    }

    /// The schemas inside a CRD have places for a schema or something else. Kubernetes reads them apart from the rest, and
    /// reports nothing that is unknown in them.
    fn any(&mut self, value: &mut Value, schema: &Schema) -> Result<(), DecodeError> {
        let either = schema.name.strip_prefix(PROPS).is_some_and(|or| or.starts_with("Or"));
        let Some(props) = either.then(|| builtin::by_name(PROPS)).flatten() else { return Ok(()) };
        let mut silent = Walk { depth: self.depth, ..Walk::default() };
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
