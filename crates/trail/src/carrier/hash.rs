//! The hash of the desired state of an object.
//!
//! It covers everything but `apiVersion`, `kind`, `metadata` and `status`. Objects with the same meaning have
//! the same hash: it ignores the order of keys, nulls, empty maps and lists under a key, and whether a whole
//! number was written as `1` or `1.0`. The hash is *one writer's view*: the API server adds defaults, so the
//! hash of an object as it was sent differs from the hash of the stored object.

use serde::Serialize;
use serde_json::{Map, Number, Value};
use xxhash_rust::xxh3::Xxh3;

/// Top-level fields that are not part of the desired state.
const EXCLUDED_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
/// 2^53: up to here every whole number is exact as a floating point number.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The hash of an object; none where it cannot be serialized to JSON.
pub fn hash_object<K: Serialize>(object: &K) -> Option<String> {
    serde_json::to_value(object).ok().map(|value| hash_value(&value))
}

/// The hash of an object that is already JSON.
#[must_use]
pub fn hash_value(object: &Value) -> String {
    let mut hasher = Xxh3::new();
    if let Value::Object(map) = object {
        write_entries(map, &mut hasher, |key| !EXCLUDED_FIELDS.contains(&key));
    }
    format!("{:032x}", hasher.digest128())
}

/// Every value begins with a type tag and, where it has one, its length, so that no two values share an
/// encoding.
fn write_value(value: &Value, hasher: &mut Xxh3) {
    match value {
        Value::Null => hasher.update(b"0"),
        Value::Bool(true) => hasher.update(b"t"),
        Value::Bool(false) => hasher.update(b"f"),
        Value::Number(number) => write_text(b'n', &canonical_number(number), hasher),
        Value::String(string) => write_text(b's', string, hasher),
        Value::Array(list) => {
            write_length(b'l', list.len(), hasher);
            list.iter().for_each(|item| self::write_value(item, hasher));
        }
        Value::Object(map) => write_entries(map, hasher, |_| true),
    }
}

fn write_entries(map: &Map<String, Value>, hasher: &mut Xxh3, counts: impl Fn(&str) -> bool) {
    let mut entries: Vec<_> = map.iter().filter(|(key, value)| counts(key) && !is_empty_value(value)).collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    write_length(b'm', entries.len(), hasher);
    for (key, item) in entries {
        write_text(b'k', key, hasher);
        write_value(item, hasher);
    }
}

fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(is_empty_value),
        _ => false,
    }
}

fn canonical_number(number: &Number) -> String {
    match number.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and small enough")]
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < MAX_EXACT_INTEGER => {
            (float as i64).to_string()
        }
        _ => number.to_string(),
    }
}

fn write_text(tag: u8, text: &str, hasher: &mut Xxh3) {
    write_length(tag, text.len(), hasher);
    hasher.update(text.as_bytes());
}

fn write_length(tag: u8, length: usize, hasher: &mut Xxh3) {
    hasher.update(&[tag]);
    hasher.update(&length.to_le_bytes());
}
