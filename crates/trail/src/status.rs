//! The status of an object: patched in a span, and read for whether the object is ready.

use std::fmt::Debug;

use jiff::Timestamp;
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

/// How an object stands with what it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is not ready yet, or nobody can tell.
    #[default]
    Converging,
    Ready,
    /// It was ready, and is not any more.
    Lost,
}

/// Whether the status says that the object is ready, for this generation as far as it tells.
pub(crate) fn is_ready<K: Serialize>(object: &K, generation: Option<i64>, condition: &str) -> bool {
    standing(object, generation, condition, None) == Standing::Ready
}

/// How the object stands with this generation, as far as its status tells. Who is observed and turned not ready after `late` was ready before: a controller looks at a change soon, and
/// whatever it finds then is older.
pub(crate) fn standing<K: Serialize>(
    object: &K,
    generation: Option<i64>,
    condition: &str,
    late: Option<Timestamp>,
) -> Standing {
    serde_json::to_value(object).map(|object| said(&object, generation, condition, late)).unwrap_or_default()
}

fn said(object: &Value, generation: Option<i64>, condition: &str, late: Option<Timestamp>) -> Standing {
    let Some(status) = object.get("status") else { return Standing::Converging };
    let conditions = status.get("conditions").and_then(Value::as_array);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let of_type = |it: &&Value| text(it, "type").as_deref() == Some(condition);
    let Some(found) = conditions.into_iter().flatten().find(of_type) else { return Standing::Converging };
    let observed = |value: &Value| value.get("observedGeneration").and_then(Value::as_i64);
    let observed = observed(found).or_else(|| observed(status)).zip(generation).map(|(seen, now)| seen >= now);
    let turned = || text(found, "lastTransitionTime")?.parse::<Timestamp>().ok();
    match (observed, text(found, "status").as_deref() == Some("True")) {
        (Some(false), _) => Standing::Converging,
        (_, true) => Standing::Ready,
        (Some(true), false) if turned().zip(late).is_some_and(|(turned, late)| turned > late) => Standing::Lost,
        _ => Standing::Converging,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Standing, said};

    fn says_ready(object: &serde_json::Value, generation: Option<i64>, condition: &str) -> bool {
        said(object, generation, condition, None) == Standing::Ready
    }

    #[test]
    fn what_turned_long_after_the_change_was_ready_before() {
        let late = "2026-01-01T00:10:00Z".parse().ok();
        let standing = |observed: Option<i64>, status: &str, turned: &str| {
            let condition = json!({"type": "Ready", "status": status, "lastTransitionTime": turned});
            let status = json!({"observedGeneration": observed, "conditions": [condition]});
            said(&json!({"status": status}), Some(2), "Ready", late)
        };
        let (soon, later) = ("2026-01-01T00:00:01Z", "2026-01-01T00:30:00Z");
        assert_eq!(standing(Some(2), "False", later), Standing::Lost);
        assert_eq!(standing(Some(2), "Unknown", later), Standing::Lost);
        assert_eq!(standing(Some(2), "False", soon), Standing::Converging);
        assert_eq!(standing(Some(1), "False", later), Standing::Converging, "of the generation before");
        assert_eq!(standing(None, "False", later), Standing::Converging, "nobody knows of which");
        assert_eq!(standing(Some(2), "False", "yesterday"), Standing::Converging);
        assert_eq!(standing(Some(2), "True", later), Standing::Ready);
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
