//! Removes fields that the manager applied before, no longer applies, and that have no other owner.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    fieldset::{FieldSet, FieldSetNode},
    schema_position::{self, OwnershipUnit, SchemaPosition},
    to_field_set::to_set,
};
use crate::schema::{ListType, Schema};

/// The merged object without fields that only `last` contains. `owned` are the fields that all managers own
/// now, including the applier.
pub(super) fn prune(merged: Value, last: &FieldSet, owned: &FieldSet, schema: &Schema) -> Result<Value, String> {
    let top = SchemaPosition::root(schema);
    let last = with_parents(last.clone(), top);
    let all = with_parents(to_set(&merged, schema)?, top);
    // First all fields of the last apply are removed, then those with an owner are restored.
    let left = with_parents(to_set(&remove_fields(&merged, &last, top), schema)?, top);
    let kept = left.union(&with_parents(owned.clone(), top));
    let kept = remove_fields(&merged, &all.clone().difference(&kept), top);
    // Fields that were removed with their parent, and never applied by this manager, are restored, too.
    let kept = with_parents(to_set(&kept, schema)?, top);
    let gone = all.difference(&kept).intersection(&last);
    Ok(if gone.is_empty() { merged } else { remove_fields(&merged, &gone, top).into_owned() })
}

/// The set with its named parent fields, which usually are not members.
fn with_parents(set: FieldSet, place: SchemaPosition<'_>) -> FieldSet {
    let mut all = FieldSet::default();
    for (element, node) in set.iter() {
        let (below, named) = place.descend(element);
        let children = with_parents(node.children.clone(), below);
        all.push(element.clone(), FieldSetNode { member: node.member || named, children });
    }
    all
}

fn remove_fields<'v>(value: &'v Value, gone: &FieldSet, place: SchemaPosition<'_>) -> Cow<'v, Value> {
    if gone.is_empty() {
        return Cow::Borrowed(value);
    }
    match (place.ownership_unit(value), value) {
        (OwnershipUnit::Members, Value::Object(members)) => {
            Cow::Owned(remove_members(members, gone, place).map_or(Value::Null, Value::Object))
        }
        (OwnershipUnit::Items(items, list), Value::Array(values)) => {
            let left = remove_items(values, gone, place.item(items), items, list);
            Cow::Owned(if left.is_empty() { Value::Null } else { Value::Array(left) })
        }
        _ => Cow::Borrowed(value),
    }
}

fn remove_members(
    members: &Map<String, Value>,
    gone: &FieldSet,
    place: SchemaPosition<'_>,
) -> Option<Map<String, Value>> {
    let mut left = Map::new();
    for (name, value) in members {
        let member = place.member(name);
        let value = match gone.get(&member.element(name)) {
            Some(node) if node.member => continue,
            Some(node) => remove_fields(value, &node.children, member.place).into_owned(),
            None => value.clone(),
        };
        left.insert(name.clone(), value);
    }
    (!left.is_empty()).then_some(left)
}

fn remove_items(
    values: &[Value],
    gone: &FieldSet,
    place: SchemaPosition<'_>,
    items: &Schema,
    list: &ListType,
) -> Vec<Value> {
    let mut left = Vec::with_capacity(values.len());
    for value in values {
        let node = schema_position::item_element(value, items, list).ok().and_then(|element| gone.get(&element));
        match node {
            Some(node) if node.member => {}
            Some(node) => left.push(remove_fields(value, &node.children, place).into_owned()),
            None => left.push(value.clone()),
        }
    }
    left
}
