//! How work hangs together with the context on its object, given what this process knows.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use kube::Resource;
use opentelemetry::trace::SpanContext;
use serde::Serialize;
use serde_json::Value;

use crate::{
    carrier::{Found, hash},
    controller::relation::{Facts, Relation, relation},
    status::{self, Standing},
    trail::Shared,
};

impl Shared {
    /// How a piece of work hangs together with the context on its object.
    pub(crate) fn relation(
        &self,
        found: Option<&Found>,
        believed: bool,
        outdated: bool,
        converged: bool,
        causes: &[SpanContext],
    ) -> Relation {
        let repair = found.filter(|_| converged).and_then(|found| self.repair_of(&found.context));
        relation(Facts {
            mode: self.options.mode,
            found,
            believed,
            link_others: self.options.trust.links_others(),
            outdated,
            converged,
            age: self.age(found),
            drift_after: self.options.drift_after,
            repair: repair.as_ref(),
            causes,
        })
    }

    /// The first run of the repair that is under way of what this context's change made.
    fn repair_of(&self, context: &SpanContext) -> Option<SpanContext> {
        let now = self.options.clock.timestamp();
        self.repairs.of(context.trace_id(), now, self.options.drift_after)
    }

    /// How an object stands with its generation.
    pub(crate) fn standing<K: Resource + Serialize>(&self, object: &K, found: Option<&Found>) -> Standing {
        let meta = object.meta();
        let created = || meta.creation_timestamp.as_ref().filter(|_| meta.generation == Some(1)).map(|time| time.0);
        let changed = found.and_then(|found| found.changed).or_else(created);
        let late = changed.and_then(|changed| changed.checked_add(self.options.drift_after).ok());
        status::standing(object, meta.generation, &self.options.ready, late)
    }

    /// How old a context is, where it says when it was stamped.
    pub(crate) fn age(&self, found: Option<&Found>) -> Option<Duration> {
        let changed = found?.changed?;
        Some(Duration::try_from(self.options.clock.timestamp().duration_since(changed)).unwrap_or_default())
    }
}

/// Whether somebody changed the object after the context was stamped, and left none. Objects with a generation tell by it, but for Deployments; of those without one, only those
/// without a `spec` are as their writer wrote them, and tell by the hash.
pub(crate) fn is_outdated<K: Resource + Serialize>(object: &K, found: &Found, seen_before: bool) -> bool {
    match (found.generation, object.meta().generation, &found.spec) {
        (Some(_), Some(generation), _) => {
            let is_deployment = || {
                let value = serde_json::to_value(object).unwrap_or_default();
                let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
                counts_annotations(text("apiVersion").split('/').next().unwrap_or_default(), text("kind"))
            };
            found.is_outdated(Some(generation)) && !(is_deployment() && is_annotated(object.meta(), found))
        }
        (_, None, Some(spec)) => serde_json::to_value(object)
            .is_ok_and(|value| value.get("spec").is_none_or(Value::is_null) && hash::of_value(&value) != *spec),
        _ => seen_before,
    }
}

/// Whether the generation of such objects also counts changes of annotations: of Deployments, whose controller copies them.
pub(crate) fn counts_annotations(group: &str, kind: &str) -> bool {
    (group, kind) == ("apps", "Deployment")
}

/// How many seconds after a stamp was made its object is written, as the API server tells: its clock has seconds, and is not that of the writer.
const WRITTEN_WITHIN: i64 = 2;

/// Whether annotations made the generation newer, and nothing else, as far as `managedFields` tell: somebody who owns annotations and nothing of the spec has written since the stamp, and nobody who owns something
/// of the spec has. Soon after the stamp, that is its own writer: [`WRITTEN_WITHIN`].
pub(crate) fn is_annotated(meta: &ObjectMeta, found: &Found) -> bool {
    let Some(stamped) = found.changed.map(Timestamp::as_second) else { return false };
    let entries =
        || meta.managed_fields.iter().flatten().filter(|entry| entry.subresource.as_ref().is_none_or(String::is_empty));
    let at = |entry: &ManagedFieldsEntry| entry.time.as_ref().map_or(i64::MAX, |time| time.0.as_second());
    let owns = |entry: &ManagedFieldsEntry, path: &str| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer(path).is_some())
    };
    let annotates = |entry: &ManagedFieldsEntry| owns(entry, "/f:metadata/f:annotations") && !owns(entry, "/f:spec");
    entries().any(|entry| annotates(entry) && at(entry) >= stamped)
        && !entries().any(|entry| owns(entry, "/f:spec") && at(entry) > stamped + WRITTEN_WITHIN)
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
    use crate::{carrier::Source, context::parse};

    fn found(spec: Option<String>, generation: Option<i64>) -> Found {
        let context = parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap();
        Found { context, source: Source::Own, spec, generation, changed: None, previous: None }
    }

    fn config_map(value: &str) -> ConfigMap {
        let data = Some(BTreeMap::from([("key".to_owned(), value.to_owned())]));
        ConfigMap { data, ..ConfigMap::default() }
    }

    #[test]
    fn an_object_without_a_generation_tells_by_its_hash() {
        let found = found(hash::of(&config_map("a")), Some(1));
        assert!(!is_outdated(&config_map("a"), &found, true));
        assert!(is_outdated(&config_map("b"), &found, false));
    }

    /// A Deployment of the second generation that the operator applied and somebody annotated, at these seconds.
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
        let stamped = Found { changed: Timestamp::from_second(100).ok(), ..found(None, Some(1)) };
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
