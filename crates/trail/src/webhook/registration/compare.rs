//! Whether an object says all that another one does.

use serde_json::Value;

/// Whether `live` has everything that is `wanted`. What the API server fills in beside it does not matter.
///
/// Lists are equal element by element, but those whose elements have names: there, names are found wherever they are, as server-side apply does. Selectors are
/// equal as a whole, since one requirement more changes what they mean.
pub(super) fn covers(wanted: &Value, live: &Value) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().all(|(key, value)| match live.get(key) {
            Some(there) if key.ends_with("Selector") => there == value,
            Some(there) => covers(value, there),
            None => false,
        }),
        (Value::Array(wanted), Value::Array(live)) if wanted.iter().all(|element| name(element).is_some()) => {
            wanted.iter().all(|element| {
                let named = live.iter().find(|there| name(there) == name(element));
                named.is_some_and(|there| covers(element, there))
            })
        }
        (Value::Array(wanted), Value::Array(live)) => {
            wanted.len() == live.len() && wanted.iter().zip(live).all(|(wanted, live)| covers(wanted, live))
        }
        (wanted, live) => wanted == live,
    }
}

fn name(element: &Value) -> Option<&str> {
    element.get("name")?.as_str()
}
