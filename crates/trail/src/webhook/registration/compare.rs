//! Where an object does not say what another one does.

use serde_json::Value;

/// Where `live` does not have what is `wanted`, as paths; nowhere, if it has everything. What the API server fills in beside it does not matter.
///
/// Lists are equal element by element, but those whose elements have names: there, names are found wherever they are, as server-side apply does. Selectors are
/// equal as a whole, since one requirement more changes what they mean.
pub(super) fn differences(wanted: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(wanted, Some(live), "", &mut found);
    found
}

fn compare(wanted: &Value, live: Option<&Value>, path: &str, found: &mut Vec<String>) {
    match (wanted, live) {
        (Value::Object(wanted), Some(Value::Object(live))) => {
            for (key, value) in wanted {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match live.get(key) {
                    Some(there) if key.ends_with("Selector") && there != value => found.push(path),
                    Some(_) if key.ends_with("Selector") => {}
                    there => compare(value, there, &path, found),
                }
            }
        }
        (Value::Array(wanted), Some(Value::Array(live))) if wanted.iter().all(|element| name(element).is_some()) => {
            for element in wanted {
                let named = live.iter().find(|there| name(there) == name(element));
                compare(element, named, &format!("{path}[{}]", name(element).unwrap_or_default()), found);
            }
        }
        (Value::Array(wanted), Some(Value::Array(live))) if wanted.len() == live.len() => {
            for (at, (wanted, live)) in wanted.iter().zip(live).enumerate() {
                compare(wanted, Some(live), &format!("{path}[{at}]"), found);
            }
        }
        (wanted, live) if Some(wanted) != live => found.push(path.to_owned()),
        _ => {}
    }
}

fn name(element: &Value) -> Option<&str> {
    element.get("name")?.as_str()
}
