//! HorizontalPodAutoscaler: `autoscaling/v2`, and `v1` as a narrower view of the same objects.

mod v1;

use serde_json::{Value, json};

pub use self::v1::AutoscalerV1Strategy;
use super::{
    field_value::FieldValue,
    json_object::{JsonObject, keep_status_apart, made, nested_object_mut, set, set_if_absent},
    names,
};
use crate::{api::field::FieldErrors, registry::Strategy, schema::quantity::Quantity};

/// The default target of cpu utilization.
const DEFAULT_CPU_UTILIZATION_PERCENT: i64 = 80;

/// Rules of HorizontalPodAutoscaler in `autoscaling/v2`.
#[derive(Clone, Copy, Debug)]
pub struct AutoscalerStrategy;

impl Strategy for AutoscalerStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(status) = made(object, "status") {
            set_if_absent(status, "desiredReplicas", 0);
            status.entry("currentMetrics").or_insert(Value::Null);
        }
        let Some(spec) = made(object, "spec") else { return };
        set_if_absent(spec, "minReplicas", 1);
        if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("metrics".to_owned(), json!([cpu(DEFAULT_CPU_UTILIZATION_PERCENT.into())]));
        }
        if let Some(behavior) = nested_object_mut(spec, "behavior") {
            self::behavior(behavior);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"desiredReplicas": 0, "currentMetrics": null}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        bounds(&spec, errors);
        target(&spec.get("scaleTargetRef"), errors);
        for metric in spec.get("metrics").items() {
            self::metric(&metric, errors);
        }
        for rules in ["scaleUp", "scaleDown"] {
            scaling(&spec.get("behavior").get(rules), errors);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource == "status" {
            let root = FieldValue::root(new);
            root.get("status").get("currentReplicas").require_non_negative(errors);
            return root.get("status").get("desiredReplicas").require_non_negative(errors);
        }
        self.validate_create(new, errors);
    }
}

/// The default metric.
fn cpu(percent: Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

fn behavior(behavior: &mut JsonObject) {
    let up = json!({
        "stabilizationWindowSeconds": 0, "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}],
    });
    let down = json!({"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]});
    for (name, usual) in [("scaleUp", up), ("scaleDown", down)] {
        set_if_absent(behavior, name, json!({}));
        let (Some(rules), Value::Object(usual)) = (nested_object_mut(behavior, name), usual) else { continue };
        usual.into_iter().for_each(|(field, value)| set_if_absent(rules, &field, value));
    }
}

fn bounds(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let min = spec.get("minReplicas");
    let max = spec.get("maxReplicas");
    if min.int().is_some_and(|min| min < 1) {
        min.report_invalid(errors, "must be greater than or equal to 1");
    }
    let most = max.int().unwrap_or(0);
    if most < 1 {
        max.report_invalid_as(errors, &most.to_string(), "must be greater than 0");
    }
    if min.int().is_some_and(|min| most < min) {
        max.report_invalid_as(errors, &most.to_string(), "must be greater than or equal to `minReplicas`");
    }
}

fn target(target: &FieldValue<'_>, errors: &mut FieldErrors) {
    for field in ["kind", "name"] {
        let at = target.get(field);
        if at.require(errors, "") {
            at.report_invalid_each(errors, names::path_segment(at.str(), false));
        }
    }
}

fn metric(metric: &FieldValue<'_>, errors: &mut FieldErrors) {
    const SOURCES: [(&str, &str); 5] = [
        ("ContainerResource", "containerResource"),
        ("External", "external"),
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
    ];
    let kind = metric.get("type");
    if !kind.require(errors, "must specify a metric source type") {
        return;
    }
    let Some((_, field)) = SOURCES.iter().find(|(known, _)| *known == kind.str()) else {
        return kind.require_one_of(errors, &["ContainerResource", "External", "Object", "Pods", "Resource"]);
    };
    let source = metric.get(field);
    if !source.is_set() {
        source.report_required(errors, "must populate information for the given metric source");
    }
    for (_, other) in SOURCES.iter().filter(|(known, _)| *known != kind.str()) {
        if metric.get(other).is_set() {
            metric.get(other).report_forbidden(errors, "must populate the given metric source only");
        }
    }
    if source.is_set() {
        metric_target(&source, *field == "resource" || *field == "containerResource", errors);
    }
}

fn metric_target(source: &FieldValue<'_>, of_resource: bool, errors: &mut FieldErrors) {
    let target = source.get("target");
    if of_resource {
        source.get("name").require(errors, "must specify a resource name");
        let percent = target.get("averageUtilization");
        let amount = target.get("averageValue");
        if !percent.is_set() && !amount.is_set() {
            percent.report_required(errors, "must set either a target raw value or a target utilization");
        }
        if percent.is_set() && amount.is_set() {
            amount.report_forbidden(errors, "may not set both a target raw value and a target utilization");
        }
    }
    let kind = target.get("type");
    if kind.require(errors, "must specify a metric target type")
        && !["Utilization", "Value", "AverageValue"].contains(&kind.str())
    {
        kind.report_invalid(errors, "must be either Utilization, Value, or AverageValue");
    }
    for field in ["value", "averageValue"] {
        let amount = target.get(field);
        if amount.is_set() && Quantity::from_value(amount.value).is_some_and(|amount| amount <= Quantity::ZERO) {
            amount.report_invalid(errors, "must be positive");
        }
    }
    target.get("averageUtilization").require_positive(errors);
}

fn scaling(rules: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !rules.is_set() {
        return;
    }
    let window = rules.get("stabilizationWindowSeconds");
    if window.int().is_some_and(|seconds| seconds < 0) {
        window.report_invalid(errors, "must be greater than or equal to zero");
    }
    if window.int().is_some_and(|seconds| seconds > 3600) {
        window.report_invalid(errors, "must be less than or equal to 3600");
    }
    rules.get("selectPolicy").require_one_of(errors, &["Disabled", "Max", "Min"]);
    rules.get("policies").require(errors, "must specify at least one Policy");
    for policy in rules.get("policies").items() {
        policy.get("type").require_one_of(errors, &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            let number = policy.get(field);
            if number.int().unwrap_or(0) < 1 {
                number.report_invalid_as(errors, &number.int().unwrap_or(0).to_string(), "must be greater than zero");
            }
        }
        if policy.get("periodSeconds").int().is_some_and(|seconds| seconds > 1800) {
            policy.get("periodSeconds").report_invalid(errors, "must be less than or equal to 1800");
        }
    }
}
