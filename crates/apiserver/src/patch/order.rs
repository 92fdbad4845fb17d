//! The order of a merged list: what the patch says first, then what the live list had.

use std::collections::HashMap;

use serde_json::Value;

/// Where the items of a list are, by their merge key or, in lists of plain values, by themselves.
pub(super) struct Places<'a> {
    key: Option<&'a str>,
    places: HashMap<&'a Value, usize>,
}

impl<'a> Places<'a> {
    /// The places of a list's items. Of equal items the first counts.
    pub(super) fn of(list: &'a [Value], key: Option<&'a str>) -> Self {
        let mut places = HashMap::with_capacity(list.len());
        for (place, item) in list.iter().enumerate() {
            if let Some(value) = identity(item, key) {
                places.entry(value).or_insert(place);
            }
        }
        Self { key, places }
    }

    /// Where an item like this one is.
    pub(super) fn get(&self, item: &Value) -> Option<usize> {
        self.places.get(identity(item, self.key)?).copied()
    }
}

fn identity<'v>(item: &'v Value, key: Option<&str>) -> Option<&'v Value> {
    key.map_or(Some(item), |key| item.get(key))
}

/// Orders a merged list. The items that are in `asked` come in the order of `asked`, the others in the order of `live`; an item of the
/// others comes before one of the asked if it did so in `live`.
pub(super) fn ordered(merged: Vec<Value>, asked: &[Value], live: &[Value], key: Option<&str>) -> Vec<Value> {
    let (asked, live) = (Places::of(asked, key), Places::of(live, key));
    let (mut first, mut others): (Vec<_>, Vec<_>) = merged.into_iter().partition(|item| asked.get(item).is_some());
    first.sort_by_key(|item| asked.get(item));
    others.sort_by_key(|item| live.get(item));
    let mut all = Vec::with_capacity(others.len() + first.len());
    let mut others = others.into_iter().peekable();
    for item in first {
        let here = live.get(&item);
        while let Some(other) = others.next_if(|other| before(live.get(other), here)) {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(others);
    all
}

/// Whether both places are known and the first is before the second.
fn before(first: Option<usize>, second: Option<usize>) -> bool {
    matches!((first, second), (Some(first), Some(second)) if first < second)
}
