//! Merge patch.

use serde_json::{Map, Value};

/// Merges a patch into an object: null removes, objects are merged, all else is replaced.
pub(super) fn merge(object: &mut Value, patch: Map<String, Value>) {
    let Value::Object(members) = object else {
        *object = Value::Object(patch);
        drop_nulls(object);
        return;
    };
    for (key, value) in patch {
        match (members.get_mut(&key), value) {
            (_, Value::Null) => _ = members.remove(&key),
            (Some(current @ Value::Object(_)), Value::Object(patch)) => merge(current, patch),
            // A list that replaces an object keeps its nulls, a new one loses them, as in evanphx/json-patch.
            (Some(current @ Value::Object(_)), list @ Value::Array(_)) => *current = list,
            (Some(current), mut value) => {
                drop_nulls(&mut value);
                *current = value;
            }
            (None, mut value) => {
                drop_nulls(&mut value);
                members.insert(key, value);
            }
        }
    }
}

/// Removes null members at every depth, but no items of lists.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
