//! Merges an applied configuration into a live object.

use std::{iter::Peekable, vec::IntoIter};

use serde_json::{Map, Value};

use super::{
    element::PathElement,
    schema_position::{self, OwnershipUnit, SchemaPosition},
};
use crate::schema::{ListType, Schema};

/// The live object with the fields of the configuration. Nothing is removed.
pub(super) fn merge(live: &Value, config: &Value, schema: &Schema) -> Result<Value, String> {
    merge_values(SchemaPosition::root(schema), live, config)
}

fn merge_values(place: SchemaPosition<'_>, live: &Value, config: &Value) -> Result<Value, String> {
    match (place.ownership_unit(config), live, config) {
        (OwnershipUnit::Members, Value::Object(live), Value::Object(config)) => {
            merge_members(place, live, config).map(Value::Object)
        }
        (OwnershipUnit::Items(items, list), Value::Array(live), Value::Array(config)) => {
            ListMerge { place: place.item(items), items, list }.merge(live, config).map(Value::Array)
        }
        // Null in a configuration owns the field, and removes nothing of other managers.
        (OwnershipUnit::Members, Value::Object(members), Value::Null) if !members.is_empty() => Ok(live.clone()),
        (OwnershipUnit::Items(..), Value::Array(items), Value::Null) if !items.is_empty() => Ok(live.clone()),
        _ => Ok(config.clone()),
    }
}

fn merge_members(
    place: SchemaPosition<'_>,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut merged = live.clone();
    for (name, config) in config {
        let value = match live.get(name) {
            Some(live) => merge_values(place.member(name).place, live, config)?,
            None => config.clone(),
        };
        merged.insert(name.clone(), value);
    }
    Ok(merged)
}

/// Merges two lists. The items of the configuration are in its order, and live items stay before those that
/// they preceded.
struct ListMerge<'s> {
    place: SchemaPosition<'s>,
    items: &'s Schema,
    list: &'s ListType,
}

/// The items of a list, with their path elements.
type KeyedItems<'v> = Peekable<IntoIter<(PathElement, &'v Value)>>;

impl ListMerge<'_> {
    fn merge(&self, live: &[Value], config: &[Value]) -> Result<Vec<Value>, String> {
        let in_live = schema_position::index_items(live, self.items, self.list)?;
        let in_config = schema_position::index_items(config, self.items, self.list)?;
        let mut lives = self.elements(live)?;
        let config = self.elements(config)?.collect::<Vec<_>>();
        let mut shared =
            config.iter().map(|(element, _)| element).filter(|element| in_live.contains_key(element)).peekable();
        let mut merged = Vec::with_capacity(live.len().max(config.len()));
        for (element, item) in &config {
            take_live(&mut lives, &in_config, shared.peek().copied(), &mut merged);
            if shared.next_if(|shared| *shared == element).is_some() {
                lives.next_if(|(live, _)| live == element);
            }
            merged.push(self.item(in_live.get(element), item)?);
        }
        let left = lives.filter(|(element, _)| !in_config.contains_key(element));
        merged.extend(left.map(|(_, item)| item.clone()));
        Ok(merged)
    }

    fn elements<'v>(&self, list: &'v [Value]) -> Result<KeyedItems<'v>, String> {
        let elements = list.iter().map(|item| Ok((schema_position::item_element(item, self.items, self.list)?, item)));
        Ok(elements.collect::<Result<Vec<_>, String>>()?.into_iter().peekable())
    }

    /// An item of the configuration, merged with the live item. A duplicate item is replaced.
    fn item(&self, live: Option<&Vec<&Value>>, config: &Value) -> Result<Value, String> {
        match live.map(Vec::as_slice) {
            Some([live]) => merge_values(self.place, live, config),
            _ => Ok(config.clone()),
        }
    }
}

/// Takes the live items up to the next one that both lists have. Shared items that come too early wait for
/// their position in the configuration. If no shared item is left, one that was already taken also ends the
/// run, as in structured-merge-diff.
fn take_live(
    lives: &mut KeyedItems<'_>,
    in_config: &schema_position::ItemIndex<'_>,
    until: Option<&PathElement>,
    merged: &mut Vec<Value>,
) {
    while let Some((element, item)) = lives.next_if(|(element, _)| Some(element) != until) {
        if !in_config.contains_key(&element) {
            merged.push(item.clone());
        } else if until.is_none() {
            return;
        }
    }
}
