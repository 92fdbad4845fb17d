//! Deployment. Its generation also counts changes of annotations, as the deployment controller copies them to
//! its ReplicaSets.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{made, nested_object_mut, set_if_absent, set_text_if_empty},
    metadata,
    workload::{self, at_most, int_or_percent, is_zero, non_negative, not_above_all},
};
use crate::{
    api::{
        field::FieldErrors,
        meta::{MetaAccessor, set_meta},
    },
    registry::Strategy,
};

#[derive(Clone, Copy, Debug)]
pub struct DeploymentStrategy;

impl Strategy for DeploymentStrategy {
    fn warnings(&self, object: &Value) -> Vec<String> {
        let mut found = super::pod::host_name_warnings(object, super::pod::POD_NAMES);
        found.extend(super::pod::template_warnings(object, &["spec", "template"]));
        found
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        super::pod::template_warnings_on_update(new, old, &["spec", "template"])
    }

    fn default(&self, object: &mut Value) {
        made(object, "status");
        let Some(spec) = made(object, "spec") else { return };
        workload::defaults(spec);
        set_if_absent(spec, "replicas", 1);
        set_if_absent(spec, "revisionHistoryLimit", 10);
        set_if_absent(spec, "progressDeadlineSeconds", 600);
        set_if_absent(spec, "strategy", json!({}));
        let Some(strategy) = nested_object_mut(spec, "strategy") else { return };
        set_text_if_empty(strategy, "type", "RollingUpdate");
        if super::json_object::text(strategy, "type") == "RollingUpdate" {
            set_if_absent(strategy, "rollingUpdate", json!({}));
            if let Some(rolling) = nested_object_mut(strategy, "rollingUpdate") {
                set_if_absent(rolling, "maxUnavailable", "25%");
                set_if_absent(rolling, "maxSurge", "25%");
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::prepare_create(object, json!({}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
        if subresource == "status" {
            return metadata::restore_meta_field(new, old, "labels");
        }
        if new.meta("annotations") != old.meta("annotations") {
            set_meta(new, "generation", old.generation().saturating_add(1));
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        non_negative(
            &spec,
            &["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
            errors,
        );
        workload::validate(&spec, "deployment", errors);
        workload::always_restarts(&spec, "ReplicaSet", errors);
        strategy(&spec.get("strategy"), errors);
        let deadline = spec.get("progressDeadlineSeconds");
        if deadline.int().is_some_and(|seconds| seconds <= spec.get("minReadySeconds").int().unwrap_or(0)) {
            deadline.report_invalid(errors, "must be greater than minReadySeconds");
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        if subresource == "status" {
            return status(&root.get("status"), errors);
        }
        self.validate_create(new, errors);
        workload::same_selector(&root.get("spec"), &old_root.get("spec"), errors);
    }
}

fn strategy(strategy: &FieldValue<'_>, errors: &mut FieldErrors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").str() {
        "Recreate" if rolling.is_set() => {
            rolling.report_forbidden(errors, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => {
            let known = ["Recreate", "RollingUpdate"];
            errors.push(workload::unknown_strategy(strategy, &workload::SURGING_UPDATE, &known));
        }
    }
}

fn rolling_update(rolling: &FieldValue<'_>, errors: &mut FieldErrors) {
    let unavailable = rolling.get("maxUnavailable");
    let surge = rolling.get("maxSurge");
    int_or_percent(&unavailable, errors);
    int_or_percent(&surge, errors);
    if is_zero(&unavailable) && is_zero(&surge) {
        unavailable.report_invalid(errors, "may not be 0 when `maxSurge` is 0");
    }
    not_above_all(&unavailable, errors);
}

fn status(status: &FieldValue<'_>, errors: &mut FieldErrors) {
    let counts = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];
    non_negative(status, &["observedGeneration", "collisionCount", "terminatingReplicas"], errors);
    non_negative(status, &counts, errors);
    for part in ["updatedReplicas", "readyReplicas", "availableReplicas"] {
        at_most(status, part, "replicas", "status.replicas", errors);
    }
    at_most(status, "availableReplicas", "readyReplicas", "readyReplicas", errors);
}
