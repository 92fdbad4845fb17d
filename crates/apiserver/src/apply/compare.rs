//! What differs between two objects, as sets of fields.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    element::Element,
    fieldset::{Node, Set},
    shape::{self, Owned, Place},
};
use crate::schema::{ListType, Schema};

/// What differs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Comparison {
    pub(super) added: Set,
    pub(super) modified: Set,
    pub(super) removed: Set,
}

/// What differs below one field, and whether the field itself does.
#[derive(Default)]
struct Difference {
    added: Node,
    modified: Node,
    removed: Node,
}

/// Compares two objects. Errors are in structured-merge-diff's words.
pub(super) fn compare(old: &Value, new: &Value, schema: &Schema) -> Result<Comparison, String> {
    let difference = values(Place::root(schema), old, new)?;
    Ok(Comparison {
        added: difference.added.children,
        modified: difference.modified.children,
        removed: difference.removed.children,
    })
}

/// Every field of a value, and the value itself. What is always there is, also where it was left out.
fn every(place: Place<'_>, value: &Value) -> Result<Node, String> {
    let mut children = Set::default();
    match (place.owned(value), value) {
        (Owned::Members, Value::Object(members)) => {
            let always = place.schema.always.iter().map(|(name, value)| (&**name, value));
            let absent = always.filter(|(name, _)| !members.contains_key(*name));
            for (name, value) in members.iter().map(|(name, value)| (name.as_str(), value)).chain(absent) {
                let member = place.member(name);
                children.push(member.element(name), every(member.place, value)?);
            }
        }
        (Owned::Items(items, list), Value::Array(values)) => {
            for (element, same) in shape::index(values, items, list)? {
                let node = match same.as_slice() {
                    [one] => every(place.item(items), one)?,
                    _ => Node::leaf(),
                };
                children.push(element, node);
            }
        }
        _ => {}
    }
    Ok(Node { member: true, children })
}

fn values(place: Place<'_>, old: &Value, new: &Value) -> Result<Difference, String> {
    match (place.owned(new), old, new) {
        (Owned::Members, Value::Object(old), Value::Object(new)) if !(old.is_empty() && new.is_empty()) => {
            members(place, old, new)
        }
        (Owned::Members, Value::Object(old), Value::Null) if !old.is_empty() => members(place, old, &Map::new()),
        (Owned::Members, Value::Null, Value::Object(new)) if !new.is_empty() => members(place, &Map::new(), new),
        (Owned::Items(items, list), Value::Array(old), Value::Array(new)) if !(old.is_empty() && new.is_empty()) => {
            list_items(place, old, new, items, list)
        }
        (Owned::Items(items, list), Value::Array(old), Value::Null) if !old.is_empty() => {
            list_items(place, old, &[], items, list)
        }
        (Owned::Items(items, list), Value::Null, Value::Array(new)) if !new.is_empty() => {
            list_items(place, &[], new, items, list)
        }
        _ if old == new => Ok(Difference::default()),
        _ => changed_sort(place, old, new),
    }
}

/// The field changed as a whole. If it had or has fields of its own (it was of another sort), they went or came.
fn changed_sort(place: Place<'_>, old: &Value, new: &Value) -> Result<Difference, String> {
    let below = |value| every(place, value).map(|node| Node { member: false, children: node.children });
    Ok(Difference { added: below(new)?, modified: Node::leaf(), removed: below(old)? })
}

fn members(place: Place<'_>, old: &Map<String, Value>, new: &Map<String, Value>) -> Result<Difference, String> {
    let mut difference = Difference::default();
    let mut news = new.iter().peekable();
    for (name, value) in old {
        while let Some((name, value)) = news.next_if(|(new, _)| *new < name) {
            difference.member(place, name, place.always(name), Some(value))?;
        }
        let other = news.next_if(|(new, _)| *new == name).map(|(_, value)| value);
        difference.member(place, name, Some(value), other.or_else(|| place.always(name)))?;
    }
    for (name, value) in news {
        difference.member(place, name, place.always(name), Some(value))?;
    }
    Ok(difference)
}

fn list_items(
    place: Place<'_>,
    old: &[Value],
    new: &[Value],
    items: &Schema,
    list: &ListType,
) -> Result<Difference, String> {
    let (old, new) = (shape::index(old, items, list)?, shape::index(new, items, list)?);
    let place = place.item(items);
    let mut difference = Difference::default();
    for element in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (same(&old, element), same(&new, element));
        let mut differs = |old: Option<&&Value>, new: Option<&&Value>| {
            difference.field(place, element.clone(), old.copied(), new.copied())
        };
        match (old, new) {
            ([] | [_], [] | [_]) => differs(old.first(), new.first())?,
            // Items that are there twice are owned together, as if they had no fields.
            ([_, ..], [_, _, ..]) if old == new => {}
            ([_, _, ..], [_, _, ..]) => difference.modified.children.push(element.clone(), Node::leaf()),
            ([_, _, ..], _) => {
                differs(None, new.first())?;
                difference.removed.children.push(element.clone(), Node::leaf());
            }
            (_, [..]) => {
                differs(old.first(), None)?;
                difference.added.children.push(element.clone(), Node::leaf());
            }
        }
    }
    Ok(difference)
}

/// The items that are the same to an index.
fn same<'i, 'v>(index: &'i shape::Index<'v>, element: &Element) -> &'i [&'v Value] {
    index.get(element).map_or(&[], Vec::as_slice)
}

impl Difference {
    fn member(
        &mut self,
        parent: Place<'_>,
        name: &str,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), String> {
        // The books do not keep themselves.
        if old == new || (name == "managedFields" && parent.is_metadata()) {
            return Ok(());
        }
        let member = parent.member(name);
        self.field(member.place, member.element(name), old, new)
    }

    /// What differs at one field.
    fn field(
        &mut self,
        place: Place<'_>,
        element: Element,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), String> {
        match (old, new) {
            (None, None) => {}
            (None, Some(new)) => self.added.children.push(element, every(place, new)?),
            (Some(old), None) => self.removed.children.push(element, every(place, old)?),
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                let below = values(place, old, new)?;
                self.added.children.push(element.clone(), below.added);
                self.modified.children.push(element.clone(), below.modified);
                self.removed.children.push(element, below.removed);
            }
        }
        Ok(())
    }
}
