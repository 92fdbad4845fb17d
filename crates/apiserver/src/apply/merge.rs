//! Merging a configuration into a live object.

use std::{iter::Peekable, vec::IntoIter};

use serde_json::{Map, Value};

use super::{
    element::Element,
    shape::{self, Owned, Place},
};
use crate::schema::{ListType, Schema};

/// The live object with what the configuration sets. Nothing is removed.
pub(super) fn merge(live: &Value, config: &Value, schema: &Schema) -> Result<Value, String> {
    both(Place::root(schema), live, config)
}

fn both(place: Place<'_>, live: &Value, config: &Value) -> Result<Value, String> {
    match (place.owned(config), live, config) {
        (Owned::Members, Value::Object(live), Value::Object(config)) => members(place, live, config).map(Value::Object),
        (Owned::Items(items, list), Value::Array(live), Value::Array(config)) => {
            Lists { place: place.item(items), items, list }.merge(live, config).map(Value::Array)
        }
        // Null in a configuration owns the field, and takes nothing away from others.
        (Owned::Members, Value::Object(members), Value::Null) if !members.is_empty() => Ok(live.clone()),
        (Owned::Items(..), Value::Array(items), Value::Null) if !items.is_empty() => Ok(live.clone()),
        _ => Ok(config.clone()),
    }
}

fn members(
    place: Place<'_>,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let mut merged = live.clone();
    for (name, config) in config {
        let value = match live.get(name) {
            Some(live) => both(place.member(name).place, live, config)?,
            None => config.clone(),
        };
        merged.insert(name.clone(), value);
    }
    Ok(merged)
}

/// Merges two lists. The items of the configuration come in its order, and live ones stay before those that they were before.
struct Lists<'s> {
    place: Place<'s>,
    items: &'s Schema,
    list: &'s ListType,
}

/// The items of a list, with what tells them apart.
type Items<'v> = Peekable<IntoIter<(Element, &'v Value)>>;

impl Lists<'_> {
    fn merge(&self, live: &[Value], config: &[Value]) -> Result<Vec<Value>, String> {
        let in_live = shape::index(live, self.items, self.list)?;
        let in_config = shape::index(config, self.items, self.list)?;
        let (mut lives, config) = (self.elements(live)?, self.elements(config)?.collect::<Vec<_>>());
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

    fn elements<'v>(&self, list: &'v [Value]) -> Result<Items<'v>, String> {
        let elements = list.iter().map(|item| Ok((shape::element(item, self.items, self.list)?, item)));
        Ok(elements.collect::<Result<Vec<_>, String>>()?.into_iter().peekable())
    }

    /// An item of the configuration, with what the live item has. An item that is there twice is replaced.
    fn item(&self, live: Option<&Vec<&Value>>, config: &Value) -> Result<Value, String> {
        match live.map(Vec::as_slice) {
            Some([live]) => both(self.place, live, config),
            _ => Ok(config.clone()),
        }
    }
}

/// Takes the live items up to the next one that both lists have. Shared items that come too early wait for their place in the
/// configuration. Where no shared one is to come, a shared item that has had its turn ends it too: structured-merge-diff does so.
fn take_live(lives: &mut Items<'_>, in_config: &shape::Index<'_>, until: Option<&Element>, merged: &mut Vec<Value>) {
    while let Some((element, item)) = lives.next_if(|(element, _)| Some(element) != until) {
        if !in_config.contains_key(&element) {
            merged.push(item.clone());
        } else if until.is_none() {
            return;
        }
    }
}
