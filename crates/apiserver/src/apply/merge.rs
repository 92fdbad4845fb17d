//! Merging a configuration into a live object.

use std::collections::BTreeSet;

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

fn members(place: Place<'_>, live: &Map<String, Value>, config: &Map<String, Value>) -> Result<Map<String, Value>, String> {
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

/// Merges two lists. The items of the configuration come in its order, the live ones stay before those that they were before.
struct Lists<'s> {
    place: Place<'s>,
    items: &'s Schema,
    list: &'s ListType,
}

impl Lists<'_> {
    fn merge(&self, live: &[Value], config: &[Value]) -> Result<Vec<Value>, String> {
        let in_live = shape::index(live, self.items, self.list)?;
        let in_config = shape::index(config, self.items, self.list)?;
        let (live, config) = (self.elements(live)?, self.elements(config)?);
        let mut shared = config.iter().map(|(element, _)| element).filter(|element| in_live.contains_key(element)).peekable();
        let (mut lives, mut configs) = (live.iter().peekable(), config.iter().peekable());
        let mut done: BTreeSet<&Element> = BTreeSet::new();
        let mut merged = Vec::with_capacity(live.len().max(config.len()));
        loop {
            if let (Some((element, _)), Some((next, item))) = (lives.peek(), configs.peek()) {
                if element == next {
                    done.insert(element);
                    merged.push(self.item(in_live.get(element), item)?);
                    (lives.next(), configs.next(), shared.next());
                    continue;
                }
                // It has its place in the configuration, further on.
                if in_config.contains_key(element) && shared.peek().is_some_and(|shared| shared != &element) {
                    lives.next();
                    continue;
                }
            }
            if let Some((element, item)) = lives.peek() {
                if !in_config.contains_key(element) {
                    merged.push((*item).clone());
                    lives.next();
                    continue;
                }
                if done.contains(element) {
                    lives.next();
                }
            }
            match configs.next() {
                Some((element, item)) => {
                    done.insert(element);
                    merged.push(self.item(in_live.get(element), item)?);
                    shared.next_if(|shared| shared == &element);
                }
                None if lives.peek().is_none() => return Ok(merged),
                None => {}
            }
        }
    }

    fn elements<'v>(&self, list: &'v [Value]) -> Result<Vec<(Element, &'v Value)>, String> {
        list.iter().map(|item| Ok((shape::element(item, self.items, self.list)?, item))).collect()
    }

    /// An item of the configuration, with what the live item has. An item that is there twice is replaced.
    fn item(&self, live: Option<&Vec<&Value>>, config: &Value) -> Result<Value, String> {
        match live.map(Vec::as_slice) {
            Some([live]) => both(self.place, live, config),
            _ => Ok(config.clone()),
        }
    }
}
