//! Cache of statuses that were written but that no watch event has shown yet.
//!
//! A reconcile that used the object from before the last write would write the same status again, with another
//! time in it. So the newer one counts: the written status, or that of the watched object. Revisions are
//! compared as numbers; one that is no number is never newer.

use std::collections::HashMap;

use kube::Resource;
use kubewake_runtime::lock::Mutex;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// More than are written at once in any cluster. A status that is dropped costs a repeated write.
const MAX_OBJECTS: usize = 10_000;

/// The last written status of each object, by its uid.
#[derive(Debug)]
pub struct PendingStatuses<S>(Mutex<HashMap<String, (u64, S)>>);

impl<S> Default for PendingStatuses<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: Clone> PendingStatuses<S> {
    /// Records a status, and the object with which the API server answered the write.
    pub fn record(&self, answer: &impl Resource, status: S) {
        let Some((uid, revision)) = uid_and_revision(answer) else { return };
        let mut written = self.0.lock();
        if written.len() >= MAX_OBJECTS {
            written.clear();
        }
        written.insert(uid, (revision, status));
    }

    /// The status that was written after this revision of the object, if any.
    pub fn newer_than(&self, seen: &impl Resource) -> Option<S> {
        let (uid, revision) = uid_and_revision(seen)?;
        let mut written = self.0.lock();
        if written.get(&uid).is_some_and(|(newest, _)| *newest <= revision) {
            written.remove(&uid);
        }
        written.get(&uid).map(|(_, status)| status.clone())
    }
}

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

fn uid_and_revision(object: &impl Resource) -> Option<(String, u64)> {
    let meta = object.meta();
    Some((meta.uid.clone()?, meta.resource_version.as_ref()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use serde_json::json;

    use super::{PendingStatuses, status_patch};

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
        assert_eq!(status_patch(Some(&before), &after), json!({"status": expected}));
        assert_eq!(status_patch(None, &after), json!({"status": after}));
    }

    #[test]
    fn what_was_written_counts_until_it_is_seen() {
        let written = PendingStatuses::default();
        assert_eq!(written.newer_than(&seen("5")), None);
        written.record(&seen("10"), "status");
        assert_eq!(written.newer_than(&seen("9")), Some("status"));
        assert_eq!(written.newer_than(&seen("10")), None);
        assert_eq!(written.newer_than(&seen("9")), None, "it was seen, and is forgotten");
        written.record(&seen("x"), "status");
        assert_eq!(written.newer_than(&seen("1")), None);
    }
}
