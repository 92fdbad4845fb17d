//! Comparison of a live object with its desired state. Pure.

use serde_json::Value;

/// Lists to which others may add entries: those that server-side apply merges by a key.
const MERGE_KEYED_LISTS: [&str; 10] = [
    "containers",
    "env",
    "finalizers",
    "imagePullSecrets",
    "initContainers",
    "ownerReferences",
    "ports",
    "secrets",
    "volumeMounts",
    "volumes",
];

/// Whether `live` contains all of `desired`. Fields that the API server omits because they are empty count as
/// contained.
pub fn contains(live: &Value, desired: &Value) -> bool {
    contains_field("", live, desired)
}

fn contains_field(key: &str, live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            desired.iter().all(|(key, value)| contains_field(key, live.get(key).unwrap_or(&Value::Null), value))
        }
        (Value::Array(live), Value::Array(desired)) if MERGE_KEYED_LISTS.contains(&key) => {
            desired.iter().all(|value| live.iter().any(|live| contains_field("", live, value)))
        }
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len()
                && live.iter().zip(desired).all(|(live, desired)| contains_field("", live, desired))
        }
        (Value::Null, desired) => is_empty(desired),
        (Value::String(live), Value::String(desired)) if live != desired => {
            parse_quantity(live).zip(parse_quantity(desired)).is_some_and(|(live, desired)| live == desired)
        }
        (live, desired) => live == desired,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Merges `over` into `base`: objects are merged, everything else and the field `data` is replaced.
pub fn overlay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(old) if key != "data" => overlay(old, value),
                    _ => _ = base.insert(key.clone(), value.clone()),
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// Parses a quantity such as `100m` or `1.5Gi`, which the API server may write in another form.
fn parse_quantity(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(end)?;
    let binary = |power: i32| 1024_f64.powi(power);
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => 10_f64.powi(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    Some(number.parse::<f64>().ok()? * factor)
}
