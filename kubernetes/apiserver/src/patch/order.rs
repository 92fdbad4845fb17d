//! The order of a merged list: first that of the patch, then that of the live list.

use std::collections::HashMap;

use serde_json::Value;

/// The positions of list items, by their merge key or, in lists of scalars, by value.
pub(super) struct ItemPositions<'a> {
    key: Option<&'a str>,
    places: HashMap<&'a Value, usize>,
}

impl<'a> ItemPositions<'a> {
    /// The positions of a list's items. The first of equal items counts.
    pub(super) fn from_items(list: &'a [Value], key: Option<&'a str>) -> Self {
        let mut places = HashMap::with_capacity(list.len());
        for (place, item) in list.iter().enumerate() {
            if let Some(value) = identity(item, key) {
                places.entry(value).or_insert(place);
            }
        }
        Self { key, places }
    }

    /// The position of an equal item.
    pub(super) fn get(&self, item: &Value) -> Option<usize> {
        self.places.get(identity(item, self.key)?).copied()
    }
}

fn identity<'v>(item: &'v Value, key: Option<&str>) -> Option<&'v Value> {
    key.map_or(Some(item), |key| item.get(key))
}

/// Sorts a merged list. The items in `asked` are in the order of `asked`, the others in the order of `live`;
/// one of the others precedes one of `asked` if it did so in `live`.
pub(super) fn order_items(merged: Vec<Value>, asked: &[Value], live: &[Value], key: Option<&str>) -> Vec<Value> {
    let asked = ItemPositions::from_items(asked, key);
    let live = ItemPositions::from_items(live, key);
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

/// Whether both positions are known and the first is smaller.
fn before(first: Option<usize>, second: Option<usize>) -> bool {
    matches!((first, second), (Some(first), Some(second)) if first < second)
}
