//! DaemonSet. An annotation counts the changes of its template.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{made, nested_object_mut, set_if_absent, set_text_if_empty, text},
    workload::{self, int_or_percent, is_zero, non_negative, not_above_all},
};
use crate::{
    api::{
        field::FieldErrors,
        meta::{MetaAccessor, child_mut, meta_mut},
    },
    registry::Strategy,
};

const COUNTS: [&str; 4] = ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"];
/// kube-apiserver's annotation with the generation of the template.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

#[derive(Clone, Copy, Debug)]
pub struct DaemonSetStrategy;

impl Strategy for DaemonSetStrategy {
    fn warnings(&self, object: &Value) -> Vec<String> {
        super::pod::template_warnings(object, &["spec", "template"])
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        super::pod::template_warnings_on_update(new, old, &["spec", "template"])
    }

    fn default(&self, object: &mut Value) {
        let generation = template_generation(object).max(1);
        set_template_generation(object, generation);
        if let Some(status) = made(object, "status") {
            COUNTS.iter().for_each(|count| set_if_absent(status, count, 0));
        }
        let Some(spec) = made(object, "spec") else { return };
        workload::defaults(spec);
        set_if_absent(spec, "revisionHistoryLimit", 10);
        set_if_absent(spec, "updateStrategy", json!({}));
        let Some(strategy) = nested_object_mut(spec, "updateStrategy") else { return };
        set_text_if_empty(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            set_if_absent(strategy, "rollingUpdate", json!({}));
            if let Some(rolling) = nested_object_mut(strategy, "rollingUpdate") {
                set_if_absent(rolling, "maxUnavailable", 1);
                set_if_absent(rolling, "maxSurge", 0);
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let zeros = COUNTS.iter().map(|count| ((*count).to_owned(), json!(0)));
        workload::prepare_create(object, Value::Object(zeros.collect()));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
        if subresource == "status" {
            return;
        }
        let changed = new.pointer("/spec/template") != old.pointer("/spec/template");
        set_template_generation(new, template_generation(old).max(1) + i64::from(changed));
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        workload::validate(&spec, "daemonset", errors);
        workload::always_restarts(&spec, "DaemonSet", errors);
        non_negative(&spec, &["minReadySeconds", "revisionHistoryLimit"], errors);
        strategy(&spec.get("updateStrategy"), errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        if subresource == "status" {
            non_negative(&root.get("status"), &COUNTS, errors);
            let more = ["observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable"];
            return non_negative(&root.get("status"), &more, errors);
        }
        self.validate_create(new, errors);
        workload::same_selector(&root.get("spec"), &old_root.get("spec"), errors);
    }
}

fn strategy(strategy: &FieldValue<'_>, errors: &mut FieldErrors) {
    match strategy.get("type").str() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.get("rollingUpdate");
            let unavailable = rolling.get("maxUnavailable");
            let surge = rolling.get("maxSurge");
            for at in [&unavailable, &surge] {
                int_or_percent(at, errors);
                not_above_all(at, errors);
            }
            match (is_zero(&unavailable), is_zero(&surge)) {
                (false, false) => surge.report_invalid(errors, "may not be set when maxUnavailable is non-zero"),
                (true, true) => unavailable.report_required(errors, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => {
            let known = ["RollingUpdate", "OnDelete"];
            errors.push(workload::unknown_strategy(strategy, &workload::SURGING_UPDATE, &known));
        }
    }
}

fn template_generation(object: &Value) -> i64 {
    let annotation = object.meta("annotations").and_then(|all| all.get(TEMPLATE_GENERATION)).and_then(Value::as_str);
    annotation.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(annotations) = meta_mut(object).and_then(|meta| child_mut(meta, "annotations")) {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}
