//! The status of an object: patched in a span, and read for whether the object is ready.

use std::fmt::Debug;

use kube::{
    Api, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
};
use opentelemetry::{context::FutureExt as _, trace::SpanKind};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{step::Step, trail::Trail};

impl Trail {
    /// Patches the status of an object, as [`Api::patch_status`] does, in a span. When the object becomes ready by it, its converge span is written.
    ///
    /// # Errors
    /// What the API server answers.
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
        let step = Step::start(shared, format!("status {}", K::kind(&kind)), SpanKind::Internal, object, &kind);
        let answer = api.patch_status(&name, params, patch).with_context(step.context.clone()).await;
        if let Ok(after) = &answer {
            let ready = |object: &K| is_ready(object, object.meta().generation, &shared.options.ready);
            if step.has_changed() && ready(after) && !ready(object) {
                self.converged(after);
            }
        }
        step.finish(&answer);
        answer
    }
}

/// Whether the status says that the object is ready, for this generation as far as it tells.
pub(crate) fn is_ready<K: Serialize>(object: &K, generation: Option<i64>, condition: &str) -> bool {
    serde_json::to_value(object).is_ok_and(|object| says_ready(&object, generation, condition))
}

fn says_ready(object: &Value, generation: Option<i64>, condition: &str) -> bool {
    let Some(status) = object.get("status") else { return false };
    let conditions = status.get("conditions").and_then(Value::as_array);
    let of_type = |it: &&Value| it.get("type").and_then(Value::as_str) == Some(condition);
    let Some(found) = conditions.into_iter().flatten().find(of_type) else { return false };
    let observed = |value: &Value| value.get("observedGeneration").and_then(Value::as_i64);
    let current = observed(found).or_else(|| observed(status)).zip(generation).is_none_or(|(seen, now)| seen >= now);
    current && found.get("status").and_then(Value::as_str) == Some("True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::says_ready;

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
