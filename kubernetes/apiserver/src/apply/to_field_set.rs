//! The field set of an applied configuration.

use serde_json::Value;

use super::{
    fieldset::{FieldSet, FieldSetNode},
    schema_position::{self, OwnershipUnit, SchemaPosition},
};
use crate::schema::Schema;

/// The fields that a configuration sets: its leaves, items and empty members, but not the objects above them.
pub(super) fn to_set(value: &Value, schema: &Schema) -> Result<FieldSet, String> {
    node(SchemaPosition::root(schema), value).map(|node| node.children)
}

fn node(place: SchemaPosition<'_>, value: &Value) -> Result<FieldSetNode, String> {
    let mut children = FieldSet::default();
    match (place.ownership_unit(value), value) {
        (OwnershipUnit::Members, Value::Object(members)) => {
            for (name, value) in members {
                let member = place.member(name);
                let mut below = node(member.place, value)?;
                let empty = value.is_null() || value.as_object().is_some_and(|members| members.is_empty());
                below.member |= empty || !member.declared;
                children.push(member.element(name), below);
            }
        }
        (OwnershipUnit::Items(items, list), Value::Array(values)) => {
            for (element, same) in schema_position::index_items(values, items, list)? {
                let mut below = match same.as_slice() {
                    [one] => node(place.item(items), one)?,
                    _ => FieldSetNode::default(),
                };
                below.member = true;
                children.push(element, below);
            }
        }
        (OwnershipUnit::Leaf, _) => return Ok(FieldSetNode::leaf()),
        _ => {}
    }
    Ok(FieldSetNode { member: false, children })
}
