//! The JSON patch that sets the annotations under our keys and touches no others.

use kubewake_trail::carrier::{AnnotationKeys, Annotations};
use serde_json::{Value, json};

/// The API server's limit for all annotations of an object, keys included.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

/// The annotations have no room for a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object's annotations have reached their maximum total size")]
pub struct AnnotationsTooLarge;

/// The operations that turn the annotations under our keys into `wanted`; none if they are equal already.
pub fn patch_operations(
    now: Option<&Annotations>,
    wanted: &[(String, String)],
    keys: &AnnotationKeys,
) -> Result<Vec<Value>, AnnotationsTooLarge> {
    let none = Annotations::new();
    let there = now.unwrap_or(&none);
    let is_wanted = |key: &str| wanted.iter().any(|(wanted, _)| wanted == key);
    let gone = keys.all().into_iter().filter(|key| there.contains_key(*key) && !is_wanted(key));
    let set = wanted.iter().filter(|(key, value)| there.get(key) != Some(value));
    let added: usize = set.clone().map(|(key, value)| key.len() + value.len()).sum();
    let all: usize = there.iter().map(|(key, value)| key.len() + value.len()).sum();
    if added > 0 && all + added > MAX_ANNOTATION_BYTES {
        return Err(AnnotationsTooLarge);
    }
    if now.is_none() && added > 0 {
        let map: serde_json::Map<String, Value> =
            set.map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        return Ok(vec![json!({ "op": "add", "path": "/metadata/annotations", "value": map })]);
    }
    let set = set.map(|(key, value)| json!({ "op": "add", "path": escape_pointer_token(key), "value": value }));
    Ok(set.chain(gone.map(|key| json!({ "op": "remove", "path": escape_pointer_token(key) }))).collect())
}

/// Escapes a key for a JSON pointer.
fn escape_pointer_token(key: &str) -> String {
    format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests;
