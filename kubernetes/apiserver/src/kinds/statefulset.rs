//! StatefulSet. Only a part of its spec can change.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{
        list_at, made, nested_object_mut, object_items_mut, set_if_absent, set_text_if_empty, text, text_at,
    },
    names, storage,
    workload::{self, at_most, int_or_percent, is_zero, non_negative, not_above_all},
};
use crate::{
    api::field::FieldErrors,
    registry::{NameRule, Strategy},
};

/// The fields of a rolling update, as Go names them.
const ROLLING_UPDATE: [(&str, &str); 2] = [("Partition", "0"), ("MaxUnavailable", "null")];

const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

#[derive(Clone, Copy, Debug)]
pub struct StatefulSetStrategy;

impl Strategy for StatefulSetStrategy {
    fn warnings(&self, object: &Value) -> Vec<String> {
        let mut found = super::pod::template_warnings(object, &["spec", "template"]);
        found.extend(history_warning(object));
        found
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        let mut found = super::pod::template_warnings_on_update(new, old, &["spec", "template"]);
        found.extend(history_warning(new));
        found
    }

    fn default(&self, object: &mut Value) {
        if let Some(status) = made(object, "status") {
            set_if_absent(status, "replicas", 0);
            set_if_absent(status, "availableReplicas", 0);
        }
        let Some(spec) = made(object, "spec") else { return };
        workload::defaults(spec);
        set_if_absent(spec, "replicas", 1);
        set_if_absent(spec, "revisionHistoryLimit", 10);
        set_if_absent(spec, "serviceName", "");
        set_text_if_empty(spec, "podManagementPolicy", "OrderedReady");
        set_if_absent(spec, "updateStrategy", json!({}));
        if let Some(strategy) = nested_object_mut(spec, "updateStrategy") {
            if text(strategy, "type").is_empty() {
                set_text_if_empty(strategy, "type", "RollingUpdate");
                set_if_absent(strategy, "rollingUpdate", json!({}));
            }
            if let Some(rolling) = nested_object_mut(strategy, "rollingUpdate") {
                set_if_absent(rolling, "partition", 0);
            }
        }
        set_if_absent(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
        if let Some(policy) = nested_object_mut(spec, "persistentVolumeClaimRetentionPolicy") {
            set_text_if_empty(policy, "whenDeleted", "Retain");
            set_text_if_empty(policy, "whenScaled", "Retain");
        }
        object_items_mut(spec, "volumeClaimTemplates").for_each(storage::default_claim_template);
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::prepare_create(object, json!({"replicas": 0, "availableReplicas": 0}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        validate(&spec, errors);
        let service = spec.get("serviceName");
        if !service.is_empty() {
            service.report_invalid_each(errors, names::label(service.str()));
        }
        for claim in spec.get("volumeClaimTemplates").items() {
            storage::claim_spec(&claim.get("spec"), errors);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        if subresource == "status" {
            return status(&root.get("status"), errors);
        }
        let spec = root.get("spec");
        validate(&spec, errors);
        if fixed(new) != fixed(old) {
            let words = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                         'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                         'minReadySeconds' are forbidden";
            spec.report_forbidden(errors, words);
        }
    }

    fn names(&self) -> NameRule {
        NameRule::Label
    }
}

fn validate(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let policy = spec.get("podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&policy.str()) {
        policy.report_invalid(errors, "must be 'OrderedReady' or 'Parallel'");
    }
    strategy(&spec.get("updateStrategy"), errors);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        retention.get(field).require_one_of(errors, &["Retain", "Delete"]);
    }
    non_negative(spec, &["replicas", "minReadySeconds"], errors);
    let ordinals = spec.get("ordinals");
    ordinals.get("start").require_non_negative(errors);
    validate_pod_template_with_claims(spec, errors);
    workload::always_restarts(spec, "StatefulSet", errors);
}

/// Mounts may refer to a claim template, as it becomes a volume of that name.
fn validate_pod_template_with_claims(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let claims = list_at(spec.value, &["volumeClaimTemplates"]);
    if claims.is_empty() {
        return workload::validate(spec, "statefulset", errors);
    }
    let mut whole = json!({"spec": spec.value});
    let pod = whole.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
    if let Some(pod) = pod {
        let names: Vec<&str> = claims.iter().map(|claim| text_at(claim, &["metadata", "name"])).collect();
        let mut volumes: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": "claim"}})).collect();
        let own = pod.get("volumes").and_then(Value::as_array).into_iter().flatten();
        volumes.extend(own.filter(|volume| !names.contains(&text_at(volume, &["name"]))).cloned());
        pod.insert("volumes".to_owned(), volumes.into());
    }
    let root = FieldValue::root(&whole);
    workload::validate(&root.get("spec"), "statefulset", errors);
}

fn strategy(strategy: &FieldValue<'_>, errors: &mut FieldErrors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").str() {
        "OnDelete" if rolling.is_set() => {
            let shown = rolling.format_internal(&ROLLING_UPDATE);
            rolling.report_invalid_as(errors, &shown, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.get("partition").require_non_negative(errors);
            let unavailable = rolling.get("maxUnavailable");
            if unavailable.is_set() {
                int_or_percent(&unavailable, errors);
                if is_zero(&unavailable) {
                    unavailable.report_invalid(errors, "cannot be 0");
                }
                not_above_all(&unavailable, errors);
            }
        }
        _ => {
            let shown = workload::shown_strategy(strategy, &ROLLING_UPDATE);
            strategy.report_invalid_as(errors, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn status(status: &FieldValue<'_>, errors: &mut FieldErrors) {
    let counts = ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    non_negative(status, &counts, errors);
    non_negative(status, &["observedGeneration", "collisionCount"], errors);
    for part in ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"] {
        at_most(status, part, "replicas", "status.replicas", errors);
    }
    at_most(status, "availableReplicas", "readyReplicas", "status.readyReplicas", errors);
}

/// The immutable part of the spec.
fn fixed(object: &Value) -> Vec<(&String, &Value)> {
    let spec = object.get("spec").and_then(Value::as_object).into_iter().flatten();
    spec.filter(|(name, _)| !CHANGEABLE.contains(&name.as_str())).collect()
}

fn history_warning(set: &Value) -> Option<String> {
    let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
    let limit = set.pointer("/spec/revisionHistoryLimit").and_then(Value::as_i64);
    limit.filter(|limit| *limit < 0).map(|_| format!("spec.revisionHistoryLimit: {why}"))
}
