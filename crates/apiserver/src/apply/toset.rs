//! The fields of an applied configuration.

use serde_json::Value;

use super::{
    fieldset::{Node, Set},
    shape::{self, Owned, Place},
};
use crate::schema::Schema;

/// The fields that a configuration sets: its leaves, its items and its empty members, but not the objects above them.
pub(super) fn to_set(value: &Value, schema: &Schema) -> Result<Set, String> {
    node(Place::root(schema), value).map(|node| node.children)
}

fn node(place: Place<'_>, value: &Value) -> Result<Node, String> {
    let mut children = Set::default();
    match (place.owned(value), value) {
        (Owned::Members, Value::Object(members)) => {
            for (name, value) in members {
                let member = place.member(name);
                let mut below = node(member.place, value)?;
                let empty = value.is_null() || value.as_object().is_some_and(|members| members.is_empty());
                below.member |= empty || !member.declared;
                children.push(member.element(name), below);
            }
        }
        (Owned::Items(items, list), Value::Array(values)) => {
            for (element, same) in shape::index(values, items, list)? {
                let mut below = match same.as_slice() {
                    [one] => node(place.item(items), one)?,
                    _ => Node::default(),
                };
                below.member = true;
                children.push(element, below);
            }
        }
        (Owned::Leaf, _) => return Ok(Node::leaf()),
        _ => {}
    }
    Ok(Node { member: false, children })
}
