//! Applies the defaults of a schema.
//!
//! For custom resources, it runs after [`prune`](mod@super::prune) and again after admission. For built-in
//! kinds it applies the defaults in the table; each kind sets those that only its code knows. Present values
//! stay, except null where null is not a value. Applying defaults again changes nothing.

use serde_json::{Map, Value};

use super::{Schema, SchemaNode, SchemaShape, decode::MAX_DEPTH};

/// Applies defaults from the outside in: a default may be an object whose own fields have defaults.
pub fn apply_defaults(object: &mut Value, schema: &Schema) {
    apply(object, schema, 0);
}

fn apply(value: &mut Value, schema: &Schema, depth: u32) {
    if depth > MAX_DEPTH {
        return;
    }
    match (&schema.shape, value) {
        (SchemaShape::Object { fields, .. }, Value::Object(members)) => {
            for (name, node) in fields {
                fill(members, name, node);
                if let Some(member) = members.get_mut(&**name) {
                    apply(member, node, depth + 1);
                }
            }
        }
        (SchemaShape::Map { values, .. }, Value::Object(members)) => {
            members.values_mut().for_each(|value| item(value, values, depth));
        }
        (SchemaShape::List { items, .. }, Value::Array(list)) => {
            list.iter_mut().for_each(|value| item(value, items, depth))
        }
        _ => {}
    }
}

fn fill(members: &mut Map<String, Value>, name: &str, node: &SchemaNode) {
    // A referenced built-in type has no default, and is not built to find that out.
    if matches!(node, SchemaNode::Lazy(_)) {
        return;
    }
    let Some(default) = node.default.as_ref().filter(|_| is_missing(members, name, node)) else { return };
    // Go would omit it again: `""` of an optional name.
    let left_out = node.omit_empty && (default == "" || default == 0 || default == false);
    if !left_out {
        members.insert(name.to_owned(), default.clone());
    }
}

/// Absent, or null where null is not a value.
fn is_missing(members: &Map<String, Value>, name: &str, node: &SchemaNode) -> bool {
    members.get(name).is_none_or(|value| value.is_null() && !node.nullable)
}

fn item(value: &mut Value, node: &SchemaNode, depth: u32) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or_default();
    }
    apply(value, node, depth + 1);
}

#[cfg(test)]
mod tests;
