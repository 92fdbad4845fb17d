//! The place of work in traces: which context an object has, whether that still belongs to the object, and how work
//! relates to it.
//!
//! [`relation`] chooses the parent of a span. [`tracked_objects`] and [`repairs`] are what this process remembers
//! between runs.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use serde::Serialize;
use serde_json::Value;

use crate::{
    carrier::{ObjectContext, counts_annotations, hash},
    status::{self, ObjectConvergence},
    trail::TrailState,
};

pub(crate) mod relation;
pub(crate) mod repairs;
pub(crate) mod tracked_objects;

/// The context on an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum FoundContext {
    /// The object has none that can be read.
    #[default]
    Missing,
    /// The object is in a namespace whose contexts are not trusted.
    Untrusted(ObjectContext),
    Trusted(ObjectContext),
}

impl FoundContext {
    pub(crate) fn any(&self) -> Option<&ObjectContext> {
        match self {
            Self::Missing => None,
            Self::Untrusted(context) | Self::Trusted(context) => Some(context),
        }
    }

    pub(crate) fn trusted(&self) -> Option<&ObjectContext> {
        match self {
            Self::Missing | Self::Untrusted(_) => None,
            Self::Trusted(context) => Some(context),
        }
    }
}

/// The convergence of an object at its generation.
pub(crate) fn convergence<K: Resource + Serialize>(
    trail: &TrailState,
    object: &K,
    found: Option<&ObjectContext>,
) -> ObjectConvergence {
    let meta = object.meta();
    let created = || meta.creation_timestamp.as_ref().filter(|_| meta.generation == Some(1)).map(|time| time.0);
    let changed = found.and_then(|found| found.stamped_at).or_else(created);
    let late = changed.and_then(|changed| changed.checked_add(trail.options.drift_after).ok());
    status::convergence_state(object, meta.generation, &trail.options.ready, late)
}

/// Whether the object was changed after the context was stamped, by a writer that left none. The generation
/// decides where there is one, except for Deployments. Objects without a generation are compared by hash, but
/// only those without a `spec`: nothing adds defaults to them.
pub(crate) fn is_outdated<K: Resource + Serialize>(object: &K, found: &ObjectContext, was_seen_before: bool) -> bool {
    match (found.generation, object.meta().generation, &found.spec) {
        (Some(_), Some(generation), _) => {
            let is_deployment = || {
                let value = serde_json::to_value(object).unwrap_or_default();
                let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
                counts_annotations(text("apiVersion").split('/').next().unwrap_or_default(), text("kind"))
            };
            found.is_outdated(Some(generation)) && !(is_deployment() && is_only_annotated(object.meta(), found))
        }
        (_, None, Some(spec)) => serde_json::to_value(object)
            .is_ok_and(|value| value.get("spec").is_none_or(Value::is_null) && hash::hash_value(&value) != *spec),
        _ => was_seen_before,
    }
}

/// The most seconds from a stamp to the write of its object: the API server's times have whole seconds, and its
/// clock is not that of the writer.
const MAX_WRITE_DELAY_SECONDS: i64 = 2;

/// Whether only changes of annotations increased the generation, as far as `managedFields` show: a manager that
/// owns annotations but nothing of the spec has written since the stamp, and no manager that owns part of the
/// spec has. A spec write within [`MAX_WRITE_DELAY_SECONDS`] is the stamp's own.
pub(crate) fn is_only_annotated(meta: &ObjectMeta, found: &ObjectContext) -> bool {
    let Some(stamped) = found.stamped_at.map(Timestamp::as_second) else { return false };
    let entries =
        || meta.managed_fields.iter().flatten().filter(|entry| entry.subresource.as_ref().is_none_or(String::is_empty));
    let at = |entry: &ManagedFieldsEntry| entry.time.as_ref().map_or(i64::MAX, |time| time.0.as_second());
    let owns = |entry: &ManagedFieldsEntry, path: &str| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer(path).is_some())
    };
    let annotates = |entry: &ManagedFieldsEntry| owns(entry, "/f:metadata/f:annotations") && !owns(entry, "/f:spec");
    entries().any(|entry| annotates(entry) && at(entry) >= stamped)
        && !entries().any(|entry| owns(entry, "/f:spec") && at(entry) > stamped + MAX_WRITE_DELAY_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Pod},
    };
    use serde_json::json;

    use super::*;
    use crate::{carrier::ContextSource, context::parse};

    fn found(spec: Option<String>, generation: Option<i64>) -> ObjectContext {
        let context = parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap();
        ObjectContext { context, source: ContextSource::Own, spec, generation, stamped_at: None, previous: None }
    }

    fn config_map(value: &str) -> ConfigMap {
        let data = Some(BTreeMap::from([("key".to_owned(), value.to_owned())]));
        ConfigMap { data, ..ConfigMap::default() }
    }

    #[test]
    fn an_object_without_a_generation_tells_by_its_hash() {
        let found = found(hash::hash_object(&config_map("a")), Some(1));
        assert!(!is_outdated(&config_map("a"), &found, true));
        assert!(is_outdated(&config_map("b"), &found, false));
    }

    /// A Deployment of generation 2, applied by the operator and annotated by another writer at these seconds.
    fn deployment(applied: i64, annotated: Option<i64>) -> Deployment {
        let entry = |manager: &str, fields: Value, second: i64| {
            let time = Timestamp::from_second(second).unwrap();
            json!({"manager": manager, "fieldsV1": fields, "time": time, "operation": "Update"})
        };
        let spec = json!({"f:spec": {"f:replicas": {}}, "f:metadata": {"f:annotations": {}}});
        let status = json!({"manager": "controller", "fieldsV1": {"f:status": {}}, "time": "2026-01-01T00:00:00Z", "subresource": "status"});
        let mut entries = vec![entry("operator", spec, applied), status];
        entries.extend(
            annotated.map(|at| entry("kubectl-annotate", json!({"f:metadata": {"f:annotations": {"f:a": {}}}}), at)),
        );
        let metadata = json!({"generation": 2, "managedFields": entries});
        serde_json::from_value(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata})).unwrap()
    }

    #[test]
    fn an_annotation_makes_no_context_of_a_deployment_old() {
        let stamped = ObjectContext { stamped_at: Timestamp::from_second(100).ok(), ..found(None, Some(1)) };
        assert!(!is_outdated(&deployment(100, Some(200)), &stamped, true));
        assert!(!is_outdated(&deployment(101, Some(101)), &stamped, true), "soon after");
        assert!(is_outdated(&deployment(200, Some(200)), &stamped, true), "the spec was changed, too");
        assert!(is_outdated(&deployment(100, None), &stamped, true), "nobody annotated it");
        assert!(is_outdated(&deployment(100, Some(200)), &found(None, Some(1)), true), "nobody knows when");
        let pod = Pod { metadata: deployment(100, Some(200)).metadata, ..Pod::default() };
        assert!(is_outdated(&pod, &stamped, true), "only Deployments count annotations");
    }

    #[test]
    fn an_object_with_a_generation_tells_by_it() {
        let mut pod = Pod::default();
        pod.metadata.generation = Some(2);
        assert!(is_outdated(&pod, &found(None, Some(1)), false));
        assert!(!is_outdated(&pod, &found(Some("other".to_owned()), Some(2)), true));
        assert!(is_outdated(&pod, &found(None, None), true), "this process saw the context with an older one");
    }
}
