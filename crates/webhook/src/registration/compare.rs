//! Compares a live object with its desired state.

use serde_json::Value;

/// The paths at which `live` lacks what is `wanted`; empty if it has everything. Additions by the API server do
/// not count.
///
/// Lists are compared element by element. Lists whose elements have names are matched by name, as server-side
/// apply does. Selectors are compared as a whole, since one more requirement changes their meaning.
pub(super) fn differences(wanted: &Value, live: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_differences(wanted, Some(live), "", &mut found);
    found
}

fn collect_differences(wanted: &Value, live: Option<&Value>, path: &str, found: &mut Vec<String>) {
    match (wanted, live) {
        (Value::Object(wanted), Some(Value::Object(live))) => {
            for (key, value) in wanted {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match live.get(key) {
                    Some(there) if key.ends_with("Selector") && there != value => found.push(path),
                    Some(_) if key.ends_with("Selector") => {}
                    there => collect_differences(value, there, &path, found),
                }
            }
        }
        (Value::Array(wanted), Some(Value::Array(live)))
            if wanted.iter().all(|element| element_name(element).is_some()) =>
        {
            for element in wanted {
                let named = live.iter().find(|there| element_name(there) == element_name(element));
                collect_differences(
                    element,
                    named,
                    &format!("{path}[{}]", element_name(element).unwrap_or_default()),
                    found,
                );
            }
        }
        (Value::Array(wanted), Some(Value::Array(live))) if wanted.len() == live.len() => {
            for (at, (wanted, live)) in wanted.iter().zip(live).enumerate() {
                collect_differences(wanted, Some(live), &format!("{path}[{at}]"), found);
            }
        }
        (wanted, live) if Some(wanted) != live => found.push(path.to_owned()),
        _ => {}
    }
}

fn element_name(element: &Value) -> Option<&str> {
    element.get("name")?.as_str()
}
