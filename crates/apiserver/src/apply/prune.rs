//! Removing what a manager applied before, applies no longer, and nobody else owns.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    fieldset::{Node, Set},
    shape::{self, Owned, Place},
    toset::to_set,
};
use crate::schema::{ListType, Schema};

/// The merged object without what only `last` has: `owned` is what all managers own now, the one who applies included.
pub(super) fn prune(merged: Value, last: &Set, owned: &Set, schema: &Schema) -> Result<Value, String> {
    let top = Place::root(schema);
    let last = with_parents(last.clone(), top);
    let all = with_parents(to_set(&merged, schema)?, top);
    // First everything that was applied goes, then comes back what somebody owns.
    let left = with_parents(to_set(&without(&merged, &last, top), schema)?, top);
    let kept = left.union(&with_parents(owned.clone(), top));
    let kept = without(&merged, &all.clone().difference(&kept), top);
    // What went with it and was never applied by this manager comes back too.
    let kept = with_parents(to_set(&kept, schema)?, top);
    let gone = all.difference(&kept).intersection(&last);
    Ok(if gone.is_empty() { merged } else { without(&merged, &gone, top).into_owned() })
}

/// A set with the named fields above its fields, which usually are not in it.
fn with_parents(set: Set, place: Place<'_>) -> Set {
    let mut all = Set::default();
    for (element, node) in set.iter() {
        let (below, named) = place.step(element);
        let children = with_parents(node.children.clone(), below);
        all.push(element.clone(), Node { member: node.member || named, children });
    }
    all
}

fn without<'v>(value: &'v Value, gone: &Set, place: Place<'_>) -> Cow<'v, Value> {
    if gone.is_empty() {
        return Cow::Borrowed(value);
    }
    match (place.owned(value), value) {
        (Owned::Members, Value::Object(members)) => {
            Cow::Owned(without_members(members, gone, place).map_or(Value::Null, Value::Object))
        }
        (Owned::Items(items, list), Value::Array(values)) => {
            let left = without_items(values, gone, place.item(items), items, list);
            Cow::Owned(if left.is_empty() { Value::Null } else { Value::Array(left) })
        }
        _ => Cow::Borrowed(value),
    }
}

fn without_members(members: &Map<String, Value>, gone: &Set, place: Place<'_>) -> Option<Map<String, Value>> {
    let mut left = Map::new();
    for (name, value) in members {
        let member = place.member(name);
        let value = match gone.get(&member.element(name)) {
            Some(node) if node.member => continue,
            Some(node) => without(value, &node.children, member.place).into_owned(),
            None => value.clone(),
        };
        left.insert(name.clone(), value);
    }
    (!left.is_empty()).then_some(left)
}

fn without_items(values: &[Value], gone: &Set, place: Place<'_>, items: &Schema, list: &ListType) -> Vec<Value> {
    let mut left = Vec::with_capacity(values.len());
    for value in values {
        let node = shape::element(value, items, list).ok().and_then(|element| gone.get(&element));
        match node {
            Some(node) if node.member => {}
            Some(node) => left.push(without(value, &node.children, place).into_owned()),
            None => left.push(value.clone()),
        }
    }
    left
}
