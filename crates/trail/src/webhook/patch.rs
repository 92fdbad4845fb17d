//! The JSON patch that makes the annotations under our keys what they should be, and touches no other.

use serde_json::{Value, json};

use crate::carrier::{Annotations, Keys};

/// All annotations of an object together, their keys included, as the API server counts them. It refuses an object that has more.
const MOST_BYTES: usize = 256 << 10;

/// There is no room for a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object's annotations are as long as they may be")]
pub struct NoRoom;

/// The operations that make `wanted` of what stands under our keys; none where it is so already.
pub fn operations(now: Option<&Annotations>, wanted: &[(String, String)], keys: &Keys) -> Result<Vec<Value>, NoRoom> {
    let none = Annotations::new();
    let there = now.unwrap_or(&none);
    let is_wanted = |key: &str| wanted.iter().any(|(wanted, _)| wanted == key);
    let gone = keys.all().into_iter().filter(|key| there.contains_key(*key) && !is_wanted(key));
    let set = wanted.iter().filter(|(key, value)| there.get(key) != Some(value));
    let added: usize = set.clone().map(|(key, value)| key.len() + value.len()).sum();
    let all: usize = there.iter().map(|(key, value)| key.len() + value.len()).sum();
    if added > 0 && all + added > MOST_BYTES {
        return Err(NoRoom);
    }
    if now.is_none() && added > 0 {
        let map: serde_json::Map<String, Value> =
            set.map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        return Ok(vec![json!({ "op": "add", "path": "/metadata/annotations", "value": map })]);
    }
    let set = set.map(|(key, value)| json!({ "op": "add", "path": path(key), "value": value }));
    Ok(set.chain(gone.map(|key| json!({ "op": "remove", "path": path(key) }))).collect())
}

/// A key as part of a path: `~` and `/` are written otherwise.
fn path(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests;
