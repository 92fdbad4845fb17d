//! The status of an object: patched within a span, and evaluated for readiness.

use std::fmt::Debug;

use jiff::Timestamp;
use kube::{
    Api, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
};
use opentelemetry::{context::FutureExt as _, trace::SpanKind};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{run::step::RunStep, trail::Trail};

impl Trail {
    /// Patches the status of an object in a span, as [`Api::patch_status`] does. When the patch makes the
    /// object ready, its converge span is written.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn patch_status<K, P>(
        &self,
        api: &Api<K>,
        object: &K,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> kube::Result<K>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
        K::DynamicType: Default,
        P: Serialize + Debug,
    {
        let name = object.name_any();
        let kind = K::DynamicType::default();
        let Some(shared) = self.shared() else { return api.patch_status(&name, params, patch).await };
        let step = RunStep::start(shared, format!("status {}", K::kind(&kind)), SpanKind::Internal, object, &kind);
        let answer = api.patch_status(&name, params, patch).with_context(step.context.clone()).await;
        if let Ok(after) = &answer {
            let ready = |object: &K| is_ready(object, object.meta().generation, &shared.options.ready);
            if step.has_changed() && ready(after) && !ready(object) {
                self.mark_converged(after);
            }
        }
        step.finish(&answer);
        answer
    }
}

/// The convergence of an object toward its desired state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ObjectConvergence {
    /// The object is not ready yet, or its readiness is unknown.
    #[default]
    Converging,
    Ready,
    /// The object was ready and is no longer.
    NoLongerReady,
}

/// Whether the status says that the object is ready, for this generation as far as the status tells.
pub(crate) fn is_ready<K: Serialize>(object: &K, generation: Option<i64>, condition: &str) -> bool {
    convergence_state(object, generation, condition, None) == ObjectConvergence::Ready
}

/// The convergence of an object at this generation, as far as its status tells. An observed object that turned
/// not ready after `late` was ready before: a controller looks at a change soon after it, so a first verdict
/// is older.
pub(crate) fn convergence_state<K: Serialize>(
    object: &K,
    generation: Option<i64>,
    condition: &str,
    late: Option<Timestamp>,
) -> ObjectConvergence {
    serde_json::to_value(object)
        .map(|object| state_from_status(&object, generation, condition, late))
        .unwrap_or_default()
}

fn state_from_status(
    object: &Value,
    generation: Option<i64>,
    condition: &str,
    late: Option<Timestamp>,
) -> ObjectConvergence {
    let Some(status) = object.get("status") else { return ObjectConvergence::Converging };
    let conditions = status.get("conditions").and_then(Value::as_array);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let of_type = |it: &&Value| text(it, "type").as_deref() == Some(condition);
    let Some(found) = conditions.into_iter().flatten().find(of_type) else { return ObjectConvergence::Converging };
    let observed = |value: &Value| value.get("observedGeneration").and_then(Value::as_i64);
    let observed = observed(found).or_else(|| observed(status)).zip(generation).map(|(seen, now)| seen >= now);
    let turned = || text(found, "lastTransitionTime")?.parse::<Timestamp>().ok();
    match (observed, text(found, "status").as_deref() == Some("True")) {
        (Some(false), _) => ObjectConvergence::Converging,
        (_, true) => ObjectConvergence::Ready,
        (Some(true), false) if turned().zip(late).is_some_and(|(turned, late)| turned > late) => {
            ObjectConvergence::NoLongerReady
        }
        _ => ObjectConvergence::Converging,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ObjectConvergence, state_from_status};

    fn says_ready(object: &serde_json::Value, generation: Option<i64>, condition: &str) -> bool {
        state_from_status(object, generation, condition, None) == ObjectConvergence::Ready
    }

    #[test]
    fn what_turned_long_after_the_change_was_ready_before() {
        let late = "2026-01-01T00:10:00Z".parse().ok();
        let standing = |observed: Option<i64>, status: &str, turned: &str| {
            let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": turned});
            let status = json!({"observedGeneration": observed, "conditions": [condition]});
            state_from_status(&json!({"status": status}), Some(2), "Ready", late)
        };
        let (soon, later) = ("2026-01-01T00:00:01Z", "2026-01-01T00:30:00Z");
        assert_eq!(standing(Some(2), "False", later), ObjectConvergence::NoLongerReady);
        assert_eq!(standing(Some(2), "Unknown", later), ObjectConvergence::NoLongerReady);
        assert_eq!(standing(Some(2), "False", soon), ObjectConvergence::Converging);
        assert_eq!(standing(Some(1), "False", later), ObjectConvergence::Converging, "of the generation before");
        assert_eq!(standing(None, "False", later), ObjectConvergence::Converging, "nobody knows of which");
        assert_eq!(standing(Some(2), "False", "yesterday"), ObjectConvergence::Converging);
        assert_eq!(standing(Some(2), "True", later), ObjectConvergence::Ready);
    }

    #[test]
    fn ready_is_what_the_condition_says_about_this_generation() {
        let ready = |status: serde_json::Value| says_ready(&json!({"status": status}), Some(2), "Ready");
        let condition = |status: &str| json!({"type": "Ready", "status": status});
        assert!(ready(json!({"conditions": [{"type": "Other", "status": "False"}, condition("True")]})));
        assert!(!ready(json!({"conditions": [condition("False")]})));
        assert!(!ready(json!({"conditions": [condition("True")], "observedGeneration": 1})));
        assert!(ready(json!({"conditions": [condition("True")], "observedGeneration": 2})));
        let observed = json!({"type": "Ready", "status": "True", "observedGeneration": 1});
        assert!(!ready(json!({"conditions": [observed], "observedGeneration": 2})));
        for nothing in [json!(null), json!({}), json!([]), json!({"conditions": "x"}), json!({"conditions": [1]})] {
            assert!(!ready(nothing));
        }
        assert!(!says_ready(&json!({"spec": {}}), None, "Ready"));
    }
}
