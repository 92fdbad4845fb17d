//! Compares two objects, and returns the differences as field sets.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    element::PathElement,
    fieldset::{FieldSet, FieldSetNode},
    schema_position::{self, OwnershipUnit, SchemaPosition},
};
use crate::schema::{ListType, Schema};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

/// The differences below one field, and whether the field itself differs.
#[derive(Default)]
struct FieldDifference {
    added: FieldSetNode,
    modified: FieldSetNode,
    removed: FieldSetNode,
}

/// Compares two objects. Errors have structured-merge-diff's messages.
pub(super) fn compare(old: &Value, new: &Value, schema: &Schema) -> Result<Comparison, String> {
    let difference = compare_values(SchemaPosition::root(schema), old, new)?;
    Ok(Comparison {
        added: difference.added.children,
        modified: difference.modified.children,
        removed: difference.removed.children,
    })
}

/// Every field of a value, and the value itself. Fields with an implied value are included where they are
/// absent.
fn all_fields(place: SchemaPosition<'_>, value: &Value) -> Result<FieldSetNode, String> {
    let mut children = FieldSet::default();
    match (place.ownership_unit(value), value) {
        (OwnershipUnit::Members, Value::Object(members)) => {
            let always = place.schema.always.iter().map(|(name, value)| (&**name, value));
            let absent = always.filter(|(name, _)| !members.contains_key(*name));
            for (name, value) in members.iter().map(|(name, value)| (name.as_str(), value)).chain(absent) {
                let member = place.member(name);
                children.push(member.element(name), all_fields(member.place, value)?);
            }
        }
        (OwnershipUnit::Items(items, list), Value::Array(values)) => {
            for (element, same) in schema_position::index_items(values, items, list)? {
                let node = match same.as_slice() {
                    [one] => all_fields(place.item(items), one)?,
                    _ => FieldSetNode::leaf(),
                };
                children.push(element, node);
            }
        }
        _ => {}
    }
    Ok(FieldSetNode { member: true, children })
}

fn compare_values(place: SchemaPosition<'_>, old: &Value, new: &Value) -> Result<FieldDifference, String> {
    match (place.ownership_unit(new), old, new) {
        (OwnershipUnit::Members, Value::Object(old), Value::Object(new)) if !(old.is_empty() && new.is_empty()) => {
            compare_members(place, old, new)
        }
        (OwnershipUnit::Members, Value::Object(old), Value::Null) if !old.is_empty() => {
            compare_members(place, old, &Map::new())
        }
        (OwnershipUnit::Members, Value::Null, Value::Object(new)) if !new.is_empty() => {
            compare_members(place, &Map::new(), new)
        }
        (OwnershipUnit::Items(items, list), Value::Array(old), Value::Array(new))
            if !(old.is_empty() && new.is_empty()) =>
        {
            compare_items(place, old, new, items, list)
        }
        (OwnershipUnit::Items(items, list), Value::Array(old), Value::Null) if !old.is_empty() => {
            compare_items(place, old, &[], items, list)
        }
        (OwnershipUnit::Items(items, list), Value::Null, Value::Array(new)) if !new.is_empty() => {
            compare_items(place, &[], new, items, list)
        }
        _ if old == new => Ok(FieldDifference::default()),
        _ => replaced_value(place, old, new),
    }
}

/// The field changed as a whole. If the old or the new value has fields of its own (its type changed), they
/// were removed or added.
fn replaced_value(place: SchemaPosition<'_>, old: &Value, new: &Value) -> Result<FieldDifference, String> {
    let below = |value| all_fields(place, value).map(|node| FieldSetNode { member: false, children: node.children });
    Ok(FieldDifference { added: below(new)?, modified: FieldSetNode::leaf(), removed: below(old)? })
}

fn compare_members(
    place: SchemaPosition<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Result<FieldDifference, String> {
    let mut difference = FieldDifference::default();
    let mut news = new.iter().peekable();
    for (name, value) in old {
        while let Some((name, value)) = news.next_if(|(new, _)| *new < name) {
            difference.add_member(place, name, place.implied_value(name), Some(value))?;
        }
        let other = news.next_if(|(new, _)| *new == name).map(|(_, value)| value);
        difference.add_member(place, name, Some(value), other.or_else(|| place.implied_value(name)))?;
    }
    for (name, value) in news {
        difference.add_member(place, name, place.implied_value(name), Some(value))?;
    }
    Ok(difference)
}

fn compare_items(
    place: SchemaPosition<'_>,
    old: &[Value],
    new: &[Value],
    items: &Schema,
    list: &ListType,
) -> Result<FieldDifference, String> {
    let old = schema_position::index_items(old, items, list)?;
    let new = schema_position::index_items(new, items, list)?;
    let place = place.item(items);
    let mut difference = FieldDifference::default();
    for element in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let old = items_at(&old, element);
        let new = items_at(&new, element);
        let mut differs = |old: Option<&&Value>, new: Option<&&Value>| {
            difference.add_field(place, element.clone(), old.copied(), new.copied())
        };
        match (old, new) {
            ([] | [_], [] | [_]) => differs(old.first(), new.first())?,
            // Duplicate items are owned together, as if they had no fields.
            ([_, ..], [_, _, ..]) if old == new => {}
            ([_, _, ..], [_, _, ..]) => difference.modified.children.push(element.clone(), FieldSetNode::leaf()),
            ([_, _, ..], _) => {
                differs(None, new.first())?;
                difference.removed.children.push(element.clone(), FieldSetNode::leaf());
            }
            (_, [..]) => {
                differs(old.first(), None)?;
                difference.added.children.push(element.clone(), FieldSetNode::leaf());
            }
        }
    }
    Ok(difference)
}

/// The items of an index that match an element.
fn items_at<'i, 'v>(index: &'i schema_position::ItemIndex<'v>, element: &PathElement) -> &'i [&'v Value] {
    index.get(element).map_or(&[], Vec::as_slice)
}

impl FieldDifference {
    fn add_member(
        &mut self,
        parent: SchemaPosition<'_>,
        name: &str,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), String> {
        // `managedFields` is not owned itself.
        if old == new || (name == "managedFields" && parent.is_metadata()) {
            return Ok(());
        }
        let member = parent.member(name);
        self.add_field(member.place, member.element(name), old, new)
    }

    /// The differences at one field.
    fn add_field(
        &mut self,
        place: SchemaPosition<'_>,
        element: PathElement,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), String> {
        match (old, new) {
            (None, None) => {}
            (None, Some(new)) => self.added.children.push(element, all_fields(place, new)?),
            (Some(old), None) => self.removed.children.push(element, all_fields(place, old)?),
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                let below = compare_values(place, old, new)?;
                self.added.children.push(element.clone(), below.added);
                self.modified.children.push(element.clone(), below.modified);
                self.removed.children.push(element, below.removed);
            }
        }
        Ok(())
    }
}
