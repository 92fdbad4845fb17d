//! `autoscaling/v1`, which has fields only for the cpu, and keeps all else in annotations.

use serde_json::{Value, json};

use super::{AutoscalerStrategy, cpu};
use crate::{
    api::{
        GroupVersion,
        field::FieldErrors,
        meta::{MetaAccessor, child_mut, meta_mut, remove_meta},
    },
    kinds::json_object::{JsonObject, list_at, object_member_mut, set_if_absent, text_at},
    registry::Strategy,
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// Rules of HorizontalPodAutoscaler in `autoscaling/v1`.
#[derive(Clone, Copy, Debug)]
pub struct AutoscalerV1Strategy;

impl Strategy for AutoscalerV1Strategy {
    fn default(&self, object: &mut Value) {
        AutoscalerStrategy.default(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        AutoscalerStrategy.prepare_create(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        AutoscalerStrategy.prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        AutoscalerStrategy.validate_create(object, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        AutoscalerStrategy.validate_update(new, old, subresource, errors);
    }

    fn storage_version(&self) -> Option<GroupVersion> {
        Some(GroupVersion::new("autoscaling", "v2"))
    }

    fn convert_to_stored(&self, object: &mut Value) {
        to_v2(object);
    }

    fn convert_to_served(&self, object: &mut Value) {
        to_v1(object);
    }
}

fn to_v2(object: &mut Value) {
    let mut metrics = take_annotation(object, METRICS).unwrap_or_default();
    if let Some(spec) = object_member_mut(object, "spec") {
        if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
            metrics.push(cpu(percent));
        }
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
    }
    if let Some(behavior) = take_text(object, BEHAVIOR).and_then(|text| serde_json::from_str::<Value>(&text).ok())
        && let Some(spec) = object_member_mut(object, "spec")
    {
        spec.insert("behavior".to_owned(), behavior);
    }
    let current = take_annotation(object, CURRENT);
    let conditions = take_annotation(object, CONDITIONS);
    if let Some(status) = object_member_mut(object, "status") {
        status.remove("currentCPUUtilizationPercentage");
        for (field, list) in [("currentMetrics", current), ("conditions", conditions)] {
            if let Some(list) = list {
                status.insert(field.to_owned(), list.into());
            }
        }
    }
}

fn to_v1(object: &mut Value) {
    let is_cpu = |metric: &Value| {
        text_at(metric, &["resource", "name"]) == "cpu"
            && metric.pointer("/resource/target/averageUtilization").is_some()
    };
    let metrics = list_at(object, &["spec", "metrics"]).to_vec();
    let percent = metrics
        .iter()
        .find(|metric| is_cpu(metric))
        .and_then(|metric| metric.pointer("/resource/target/averageUtilization"));
    let percent = percent.cloned();
    let others: Vec<Value> = metrics.iter().filter(|metric| !is_cpu(metric)).cloned().collect();
    let mut behavior = None;
    if let Some(spec) = object_member_mut(object, "spec") {
        spec.remove("metrics");
        behavior = spec.remove("behavior");
        if let Some(percent) = percent {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
    }
    let mut kept = vec![(METRICS, Value::from(others))];
    kept.extend(behavior.map(|behavior| (BEHAVIOR, behavior)));
    if let Some(status) = object_member_mut(object, "status") {
        set_if_absent(status, "currentReplicas", 0);
        kept.extend(status.remove("currentMetrics").map(|list| (CURRENT, list)));
        kept.extend(status.remove("conditions").map(|list| (CONDITIONS, list)));
    }
    for (key, value) in kept.into_iter().filter(|(_, value)| !value.is_null() && *value != json!([])) {
        if let Some(annotations) = meta_mut(object).and_then(|meta| child_mut(meta, "annotations")) {
            annotations.insert(key.to_owned(), value.to_string().into());
        }
    }
}

fn take_text(object: &mut Value, key: &str) -> Option<String> {
    let annotations = object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(key)?.as_str()?.to_owned();
    if object.meta("annotations").and_then(Value::as_object).is_some_and(JsonObject::is_empty) {
        remove_meta(object, "annotations");
    }
    Some(text)
}

fn take_annotation(object: &mut Value, key: &str) -> Option<Vec<Value>> {
    take_text(object, key).and_then(|text| serde_json::from_str(&text).ok())
}
