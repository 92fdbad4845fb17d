//! CertificateSigningRequest: the requester, the decision, and the paths that may change them.
//!
//! Not done: signing, which is up to controllers, and the validation of the request itself.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{keep_all_but_status, list_at, made, object_member_mut, restore_field, set, text_at},
};
use crate::{
    api::field::{FieldError, FieldErrors},
    auth::UserInfo,
    registry::Strategy,
};

const MIN_EXPIRATION_SECONDS: i64 = 600;
const DECISION_CONDITIONS: [&str; 2] = ["Approved", "Denied"];

#[derive(Clone, Copy, Debug)]
pub struct SigningRequestStrategy;

impl Strategy for SigningRequestStrategy {
    fn record_author(&self, object: &mut Value, author: &UserInfo) {
        let Some(spec) = object_member_mut(object, "spec") else { return };
        let groups: Vec<&str> = author.groups.iter().map(|group| &**group).collect();
        spec.insert("username".into(), (*author.name).into());
        spec.insert("groups".into(), groups.into());
        spec.insert("extra".into(), json!(*author.extra));
        spec.insert("uid".into(), (*author.uid).into());
        for field in ["groups", "extra", "uid"] {
            if is_empty(spec.get(field)) {
                spec.remove(field);
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        match subresource {
            "approval" => {
                let decided = list_at(new, &["status", "conditions"]).to_vec();
                keep_all_but_status(new, old);
                restore_field(new, old, "status");
                set_conditions(new, decided);
            }
            "status" => {
                keep_all_but_status(new, old);
                let others = list_at(new, &["status", "conditions"]).iter().filter(|one| !is_decision(one));
                let decided = list_at(old, &["status", "conditions"]).iter().filter(|one| is_decision(one));
                let conditions = decided.chain(others).cloned().collect();
                set_conditions(new, conditions);
            }
            _ => ["spec", "status"].iter().for_each(|field| restore_field(new, old, field)),
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        let usages = spec.get("usages");
        let signer = spec.get("signerName");
        let seconds = spec.get("expirationSeconds");
        if usages.is_empty() {
            usages.report_required(errors, "");
        }
        match signer.str() {
            "" => signer.report_required(errors, ""),
            name if !name.contains('/') => {
                signer.report_invalid(
                    errors,
                    "must be a fully qualified domain and path of the form 'example.com/signer-name'",
                );
            }
            _ => {}
        }
        if seconds.int().is_some_and(|seconds| seconds < MIN_EXPIRATION_SECONDS) {
            seconds.report_invalid(errors, "may not specify a duration less than 600 seconds (10 minutes)");
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        let conditions = list_at(new, &["status", "conditions"]);
        let says = |kind: &str| conditions.iter().position(|one| text_at(one, &["type"]) == kind);
        if let (Some(approved), Some(denied)) = (says("Approved"), says("Denied")) {
            let path = format!("status.conditions[{}].type", approved.max(denied));
            let last = if approved > denied { "Approved" } else { "Denied" };
            errors.push(FieldError::invalid(
                path,
                &last.into(),
                "Approved and Denied conditions are mutually exclusive",
            ));
        }
        for decision in list_at(old, &["status", "conditions"]).iter().filter(|one| is_decision(one)) {
            let kind = text_at(decision, &["type"]);
            if says(kind).is_none() {
                let detail = format!("updates may not remove a condition of type {kind:?}");
                errors.push(FieldError::forbidden("status.conditions", &detail));
            }
        }
    }
}

fn is_decision(condition: &Value) -> bool {
    DECISION_CONDITIONS.contains(&text_at(condition, &["type"]))
}

fn set_conditions(object: &mut Value, conditions: Vec<Value>) {
    if let Some(status) = made(object, "status") {
        if conditions.is_empty() {
            drop(status.remove("conditions"))
        } else {
            drop(status.insert("conditions".into(), conditions.into()))
        }
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        _ => true,
    }
}
