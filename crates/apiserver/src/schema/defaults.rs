//! Fills in the defaults that a schema names.
//!
//! For custom resources, after [`prune`](super::prune) and again after admission. For built-in kinds it fills in the defaults
//! that the table has, and leaves to each kind those that only its code knows. What is there stays, except null where null is
//! no value. Applying defaults again changes nothing.

use serde_json::{Map, Value};

use super::{Node, Schema, Shape, decode::MAX_DEPTH};

/// Fills in defaults, from the outside in: a default may be an object whose own fields have defaults.
pub fn apply_defaults(object: &mut Value, schema: &Schema) {
    apply(object, schema, 0);
}

fn apply(value: &mut Value, schema: &Schema, depth: u32) {
    if depth > MAX_DEPTH {
        return;
    }
    match (&schema.shape, value) {
        (Shape::Object { fields, .. }, Value::Object(members)) => {
            for (name, node) in fields {
                fill(members, name, node);
                if let Some(member) = members.get_mut(&**name) {
                    apply(member, node, depth + 1);
                }
            }
        }
        (Shape::Map { values, .. }, Value::Object(members)) => {
            members.values_mut().for_each(|value| item(value, values, depth));
        }
        (Shape::List { items, .. }, Value::Array(list)) => list.iter_mut().for_each(|value| item(value, items, depth)),
        _ => {}
    }
}

fn fill(members: &mut Map<String, Value>, name: &str, node: &Node) {
    // Built-in types that are only named here have no default, and are not built to find that out.
    if matches!(node, Node::Lazy(_)) {
        return;
    }
    let Some(default) = node.default.as_ref().filter(|_| is_missing(members, name, node)) else { return };
    // Go would leave it out again: `""` of an optional name.
    let left_out = node.omit_empty && (default == "" || default == 0 || default == false);
    if !left_out {
        members.insert(name.to_owned(), default.clone());
    }
}

/// Absent, or null where null is no value.
fn is_missing(members: &Map<String, Value>, name: &str, node: &Node) -> bool {
    members.get(name).is_none_or(|value| value.is_null() && !node.nullable)
}

fn item(value: &mut Value, node: &Node, depth: u32) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or_default();
    }
    apply(value, node, depth + 1);
}

#[cfg(test)]
mod tests;
