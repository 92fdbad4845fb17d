//! The patch of a status.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// The patch that changes the status from `before` to `after`. Fields that are gone are set to null, since a
/// merge patch does not remove them otherwise.
pub fn status_patch<S: Serialize>(before: Option<&S>, after: &S) -> Value {
    let value = |status: &S| serde_json::to_value(status).unwrap_or_default();
    json!({"status": merge_patch(&before.map(value).unwrap_or_default(), value(after))})
}

fn merge_patch(before: &Value, after: Value) -> Value {
    let (Some(old), Value::Object(new)) = (before.as_object(), &after) else { return after };
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let stays =
        new.iter().map(|(key, value)| (key.clone(), merge_patch(old.get(key).unwrap_or(&Value::Null), value.clone())));
    Value::Object(gone.chain(stays).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::status_patch;

    #[test]
    fn status_patch_removes_fields_that_are_gone() {
        let before = json!({"state": "Ready", "ready": "2/2", "endpoints": {"otlp": "a", "opencensus": "b"}, "conditions": [1, 2]});
        let after = json!({"state": "Pending", "endpoints": {"otlp": "a"}, "conditions": [1]});
        let expected = json!({"state": "Pending", "ready": null, "endpoints": {"otlp": "a", "opencensus": null}, "conditions": [1]});
        assert_eq!(status_patch(Some(&before), &after), json!({"status": expected}));
        assert_eq!(status_patch(None, &after), json!({"status": after}));
    }
}
