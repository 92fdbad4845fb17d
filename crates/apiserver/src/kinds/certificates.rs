//! CertificateSigningRequest: who asks, what was decided, and which path may say so.
//!
//! Not done: signing, which is a controller's work, and a look into the request itself.

use serde_json::{Value, json};

use super::{
    at::At,
    object::{keep, keep_all_but_status, list_at, made, part, set, text_at},
};
use crate::{
    api::field::{Error, Errors},
    auth::User,
    registry::Strategy,
};

/// kube-apiserver's own least.
const SHORTEST: i64 = 600;
/// What only `approval` decides.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// Rules of CertificateSigningRequest.
#[derive(Clone, Copy, Debug)]
pub struct SigningRequest;

impl Strategy for SigningRequest {
    fn record_author(&self, object: &mut Value, author: &User) {
        let Some(spec) = part(object, "spec") else { return };
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
                keep(new, old, "status");
                set_conditions(new, decided);
            }
            "status" => {
                keep_all_but_status(new, old);
                let others = list_at(new, &["status", "conditions"]).iter().filter(|one| !is_decision(one));
                let decided = list_at(old, &["status", "conditions"]).iter().filter(|one| is_decision(one));
                let conditions = decided.chain(others).cloned().collect();
                set_conditions(new, conditions);
            }
            _ => ["spec", "status"].iter().for_each(|field| keep(new, old, field)),
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        let (usages, signer, seconds) = (spec.get("usages"), spec.get("signerName"), spec.get("expirationSeconds"));
        if usages.is_empty() {
            usages.required(errors, "");
        }
        match signer.str() {
            "" => signer.required(errors, ""),
            name if !name.contains('/') => {
                signer
                    .invalid(errors, "must be a fully qualified domain and path of the form 'example.com/signer-name'");
            }
            _ => {}
        }
        if seconds.int().is_some_and(|seconds| seconds < SHORTEST) {
            seconds.invalid(errors, "may not specify a duration less than 600 seconds (10 minutes)");
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        let conditions = list_at(new, &["status", "conditions"]);
        let says = |kind: &str| conditions.iter().position(|one| text_at(one, &["type"]) == kind);
        if let (Some(approved), Some(denied)) = (says("Approved"), says("Denied")) {
            let path = format!("status.conditions[{}].type", approved.max(denied));
            let last = if approved > denied { "Approved" } else { "Denied" };
            errors.push(Error::invalid(path, &last.into(), "Approved and Denied conditions are mutually exclusive"));
        }
        for decision in list_at(old, &["status", "conditions"]).iter().filter(|one| is_decision(one)) {
            let kind = text_at(decision, &["type"]);
            if says(kind).is_none() {
                let detail = format!("updates may not remove a condition of type {kind:?}");
                errors.push(Error::forbidden("status.conditions", &detail));
            }
        }
    }
}

fn is_decision(condition: &Value) -> bool {
    DECISIONS.contains(&text_at(condition, &["type"]))
}

fn set_conditions(object: &mut Value, conditions: Vec<Value>) {
    if let Some(status) = made(object, "status") {
        match conditions.is_empty() {
            true => drop(status.remove("conditions")),
            false => drop(status.insert("conditions".into(), conditions.into())),
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
