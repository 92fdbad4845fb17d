//! StatefulSet. Only some of its spec can change.

use serde_json::{Value, json};

use super::{
    at::At,
    names,
    object::{each, fill, fill_text, list_at, made, sub, text, text_at},
    storage,
    workload::{self, at_most, int_or_percent, non_negative, not_above_all},
};
use crate::{
    api::field::Errors,
    registry::{NameRule, Strategy},
};

const CHANGEABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Rules of StatefulSet.
#[derive(Clone, Copy, Debug)]
pub struct StatefulSet;

impl Strategy for StatefulSet {
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
            fill(status, "replicas", 0);
            fill(status, "availableReplicas", 0);
        }
        let Some(spec) = made(object, "spec") else { return };
        workload::defaults(spec);
        fill(spec, "replicas", 1);
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "serviceName", "");
        fill_text(spec, "podManagementPolicy", "OrderedReady");
        fill(spec, "updateStrategy", json!({}));
        if let Some(strategy) = sub(spec, "updateStrategy") {
            if text(strategy, "type").is_empty() {
                fill_text(strategy, "type", "RollingUpdate");
                fill(strategy, "rollingUpdate", json!({}));
            }
            if let Some(rolling) = sub(strategy, "rollingUpdate") {
                fill(rolling, "partition", 0);
            }
        }
        fill(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
        if let Some(policy) = sub(spec, "persistentVolumeClaimRetentionPolicy") {
            fill_text(policy, "whenDeleted", "Retain");
            fill_text(policy, "whenScaled", "Retain");
        }
        each(spec, "volumeClaimTemplates").for_each(storage::default_claim_template);
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::prepare_create(object, json!({"replicas": 0, "availableReplicas": 0}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        validate(&spec, errors);
        let service = spec.get("serviceName");
        if !service.is_empty() {
            service.invalid_each(errors, names::label(service.str()));
        }
        let policy = spec.get("persistentVolumeClaimRetentionPolicy");
        for field in ["whenDeleted", "whenScaled"] {
            policy.get(field).one_of(errors, &["Retain", "Delete"]);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        let root = At::root(new);
        if subresource == "status" {
            return status(&root.get("status"), errors);
        }
        let spec = root.get("spec");
        validate(&spec, errors);
        if fixed(new) != fixed(old) {
            let words = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                         'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                         'minReadySeconds' are forbidden";
            spec.forbidden(errors, words);
        }
    }

    fn names(&self) -> NameRule {
        NameRule::Label
    }
}

fn validate(spec: &At<'_>, errors: &mut Errors) {
    let policy = spec.get("podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&policy.str()) {
        policy.invalid(errors, "must be 'OrderedReady' or 'Parallel'");
    }
    strategy(&spec.get("updateStrategy"), errors);
    non_negative(spec, &["replicas", "minReadySeconds", "revisionHistoryLimit"], errors);
    with_claims_as_volumes(spec, errors);
    workload::always_restarts(spec, "StatefulSet", errors);
}

/// Mounts may name a claim template, as it becomes a volume of that name.
fn with_claims_as_volumes(spec: &At<'_>, errors: &mut Errors) {
    let claims = list_at(spec.value, &["volumeClaimTemplates"]);
    if claims.is_empty() {
        return workload::validate(spec, "statefulset", errors);
    }
    let mut whole = json!({"spec": spec.value});
    let pod = whole.pointer_mut("/spec/template/spec").and_then(Value::as_object_mut);
    if let Some(pod) = pod {
        let names: Vec<&str> = claims.iter().map(|claim| text_at(claim, &["metadata", "name"])).collect();
        let mut volumes: Vec<Value> = names.iter().map(|name| json!({"name": name, "emptyDir": {}})).collect();
        let own = pod.get("volumes").and_then(Value::as_array).into_iter().flatten();
        volumes.extend(own.filter(|volume| !names.contains(&text_at(volume, &["name"]))).cloned());
        pod.insert("volumes".to_owned(), volumes.into());
    }
    let root = At::root(&whole);
    workload::validate(&root.get("spec"), "statefulset", errors);
}

fn strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").str() {
        "OnDelete" if rolling.is_set() => rolling.invalid(errors, "only allowed for updateStrategy 'RollingUpdate'"),
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.get("partition").non_negative(errors);
            int_or_percent(&rolling.get("maxUnavailable"), errors);
            not_above_all(&rolling.get("maxUnavailable"), errors);
        }
        _ => strategy.invalid(errors, "must be 'RollingUpdate' or 'OnDelete'"),
    }
}

fn status(status: &At<'_>, errors: &mut Errors) {
    let counts = ["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    non_negative(status, &counts, errors);
    non_negative(status, &["observedGeneration", "collisionCount"], errors);
    for part in ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"] {
        at_most(status, part, "replicas", "status.replicas", errors);
    }
    at_most(status, "availableReplicas", "readyReplicas", "status.readyReplicas", errors);
}

/// What of the spec never changes.
fn fixed(object: &Value) -> Vec<(&String, &Value)> {
    let spec = object.get("spec").and_then(Value::as_object).into_iter().flatten();
    spec.filter(|(name, _)| !CHANGEABLE.contains(&name.as_str())).collect()
}

fn history_warning(set: &Value) -> Option<String> {
    let why = "a negative value retains all historical revisions; a value >= 0 is recommended";
    let limit = set.pointer("/spec/revisionHistoryLimit").and_then(Value::as_i64);
    limit.filter(|limit| *limit < 0).map(|_| format!("spec.revisionHistoryLimit: {why}"))
}
