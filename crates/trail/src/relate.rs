//! How work hangs together with the context on its object, given what this process knows.

use std::time::Duration;

use kube::Resource;
use opentelemetry::trace::SpanContext;
use serde::Serialize;
use serde_json::Value;

use crate::{
    carrier::{Found, hash},
    controller::relation::{Facts, Relation, relation},
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
        relation(Facts {
            mode: self.options.mode,
            found,
            believed,
            link_others: self.options.trust.links_others(),
            outdated,
            converged,
            age: self.age(found),
            drift_after: self.options.drift_after,
            causes,
        })
    }

    /// How old a context is, where it says when it was stamped.
    pub(crate) fn age(&self, found: Option<&Found>) -> Option<Duration> {
        let changed = found?.changed?;
        Some(Duration::try_from(self.options.clock.timestamp().duration_since(changed)).unwrap_or_default())
    }
}

/// Whether somebody changed the object after the context was stamped, and left none. Objects with a generation tell by it; of those without one, only those
/// without a `spec` are as their writer wrote them, and tell by the hash.
pub(crate) fn is_outdated<K: Resource + Serialize>(object: &K, found: &Found, seen_before: bool) -> bool {
    match (found.generation, object.meta().generation, &found.spec) {
        (Some(_), Some(_), _) => found.is_outdated(object.meta().generation),
        (_, None, Some(spec)) => serde_json::to_value(object)
            .is_ok_and(|value| value.get("spec").is_none_or(Value::is_null) && hash::of_value(&value) != *spec),
        _ => seen_before,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::{ConfigMap, Pod};

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

    #[test]
    fn an_object_with_a_generation_tells_by_it() {
        let mut pod = Pod::default();
        pod.metadata.generation = Some(2);
        assert!(is_outdated(&pod, &found(None, Some(1)), false));
        assert!(!is_outdated(&pod, &found(Some("other".to_owned()), Some(2)), true));
        assert!(is_outdated(&pod, &found(None, None), true), "this process saw the context with an older one");
    }
}
