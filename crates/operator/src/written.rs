//! Statuses that were written and that no watch has shown yet.
//!
//! A reconcile that goes by an object as it was before the last write would write the same again, with another time in it. So the newer of the two counts: what
//! was written, or what a watch shows. Revisions are compared as the numbers that they are; one that is no number is never newer.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use kube::Resource;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// More than are written at once in any cluster. What is forgotten costs a repeated write.
const MAX_OBJECTS: usize = 10_000;

/// What was written last of each object, by its uid.
#[derive(Debug)]
pub struct Written<S>(Mutex<HashMap<String, (u64, S)>>);

impl<S> Default for Written<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: Clone> Written<S> {
    /// The API server answered a write of this status with this object.
    pub fn note(&self, answer: &impl Resource, status: S) {
        let Some((uid, revision)) = identity(answer) else { return };
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MAX_OBJECTS {
            written.clear();
        }
        written.insert(uid, (revision, status));
    }

    /// What was written after the object was as it is seen here, if anything was.
    pub fn after(&self, seen: &impl Resource) -> Option<S> {
        let (uid, revision) = identity(seen)?;
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.get(&uid).is_some_and(|(newest, _)| *newest <= revision) {
            written.remove(&uid);
        }
        written.get(&uid).map(|(_, status)| status.clone())
    }
}

/// The patch that makes the status `after` of what it was `before`: what is not said any more is taken away, which a merge does not do by itself.
pub fn patch<S: Serialize>(before: Option<&S>, after: &S) -> Value {
    let value = |status: &S| serde_json::to_value(status).unwrap_or_default();
    json!({"status": merge(&before.map(value).unwrap_or_default(), value(after))})
}

fn merge(before: &Value, after: Value) -> Value {
    let (Some(old), Value::Object(new)) = (before.as_object(), &after) else { return after };
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let stays =
        new.iter().map(|(key, value)| (key.clone(), merge(old.get(key).unwrap_or(&Value::Null), value.clone())));
    Value::Object(gone.chain(stays).collect::<Map<_, _>>())
}

fn identity(object: &impl Resource) -> Option<(String, u64)> {
    let meta = object.meta();
    Some((meta.uid.clone()?, meta.resource_version.as_ref()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use serde_json::json;

    use super::{Written, patch};

    fn seen(revision: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.uid = Some("uid".into());
        object.metadata.resource_version = Some(revision.into());
        object
    }

    #[test]
    fn what_is_not_said_any_more_is_taken_away() {
        let before = json!({"state": "Ready", "ready": "2/2", "endpoints": {"otlp": "a", "opencensus": "b"}, "conditions": [1, 2]});
        let after = json!({"state": "Pending", "endpoints": {"otlp": "a"}, "conditions": [1]});
        let expected = json!({"state": "Pending", "ready": null, "endpoints": {"otlp": "a", "opencensus": null}, "conditions": [1]});
        assert_eq!(patch(Some(&before), &after), json!({"status": expected}));
        assert_eq!(patch(None, &after), json!({"status": after}));
    }

    #[test]
    fn what_was_written_counts_until_it_is_seen() {
        let written = Written::default();
        assert_eq!(written.after(&seen("5")), None);
        written.note(&seen("10"), "status");
        assert_eq!(written.after(&seen("9")), Some("status"));
        assert_eq!(written.after(&seen("10")), None);
        assert_eq!(written.after(&seen("9")), None, "it was seen, and is forgotten");
        written.note(&seen("x"), "status");
        assert_eq!(written.after(&seen("1")), None);
    }
}
