//! The hash of what an object asks for.
//!
//! It covers everything but `apiVersion`, `kind`, `metadata` and `status`. Two objects that mean the same have the same hash: the order of keys does
//! not matter, nor do nulls and empty maps and lists under a key, nor whether a whole number was written as `1` or `1.0`.
//! It is the hash of *one writer's view*: an API server adds defaults, so that a hash of what was sent and one of what is stored differ.

use serde::Serialize;
use serde_json::{Map, Number, Value};
use xxhash_rust::xxh3::Xxh3;

/// What is not part of the question.
const LEFT_OUT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
/// Whole numbers up to here are the same as integer and as floating point.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// The hash of an object; none where it cannot be written as JSON.
pub fn of<K: Serialize>(object: &K) -> Option<String> {
    serde_json::to_value(object).ok().map(|value| of_value(&value))
}

/// The hash of an object that is JSON already.
#[must_use]
pub fn of_value(object: &Value) -> String {
    let mut hasher = Xxh3::new();
    if let Value::Object(map) = object {
        entries(map, &mut hasher, |key| !LEFT_OUT.contains(&key));
    }
    format!("{:032x}", hasher.digest128())
}

/// Every value begins with a tag and, where it has one, its length, so that no two values have the same bytes.
fn value(value: &Value, hasher: &mut Xxh3) {
    match value {
        Value::Null => hasher.update(b"0"),
        Value::Bool(true) => hasher.update(b"t"),
        Value::Bool(false) => hasher.update(b"f"),
        Value::Number(number) => text(b'n', &canonical(number), hasher),
        Value::String(string) => text(b's', string, hasher),
        Value::Array(list) => {
            length(b'l', list.len(), hasher);
            list.iter().for_each(|item| self::value(item, hasher));
        }
        Value::Object(map) => entries(map, hasher, |_| true),
    }
}

fn entries(map: &Map<String, Value>, hasher: &mut Xxh3, counts: impl Fn(&str) -> bool) {
    let mut entries: Vec<_> = map.iter().filter(|(key, value)| counts(key) && !says_nothing(value)).collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    length(b'm', entries.len(), hasher);
    for (key, item) in entries {
        text(b'k', key, hasher);
        value(item, hasher);
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.values().all(says_nothing),
        _ => false,
    }
}

fn canonical(number: &Number) -> String {
    match number.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and small enough")]
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < MAX_EXACT => (float as i64).to_string(),
        _ => number.to_string(),
    }
}

fn text(tag: u8, text: &str, hasher: &mut Xxh3) {
    length(tag, text.len(), hasher);
    hasher.update(text.as_bytes());
}

fn length(tag: u8, length: usize, hasher: &mut Xxh3) {
    hasher.update(&[tag]);
    hasher.update(&length.to_le_bytes());
}
