//! Whether an object may be stored: its metadata, then what its kind asks for.

use serde_json::Value;

use super::call::On;
use crate::{
    api::{GroupResource, Status, meta::Meta},
    auth::{Attributes, escalation},
    kinds::metadata::{self, MetaRules},
    store::Stored,
};

/// A new object.
pub fn create(on: On<'_>, object: &Value) -> Result<(), Status> {
    let mut errors = Vec::new();
    metadata::validate_create(object, rules(on), &mut errors);
    on.shown().strategy.validate_create(object, &mut errors);
    answer(on, object, &errors)?;
    // What is refused is not warned of as well.
    on.shown().strategy.warnings(object).into_iter().for_each(|warning| on.call.warnings.add(warning));
    Ok(())
}

/// A new object that is stored already.
pub fn stored(on: On<'_>, stored: &Stored) -> Result<(), Status> {
    let mut errors = Vec::new();
    on.shown().strategy.validate_stored(stored, &mut errors);
    match errors.as_slice() {
        [] => Ok(()),
        errors => Err(Status::invalid(&on.resource.group_kind(), &stored.key.name, errors)),
    }
}

/// Nobody grants more than they hold.
pub async fn escalation(on: On<'_>, object: &Value, live: Option<&Value>) -> Result<(), Status> {
    let write = escalation::Write {
        user: &on.call.user,
        resource: &on.collection(),
        namespace: on.namespace(),
        path_name: &on.path.name,
        new: object,
        old: live,
    };
    escalation::check(&write, &on.core().access.rbac, &on.core().access.authorizers).await
}

/// Whoever may write to a path of a signing request may not therefore decide for every signer.
pub async fn signer(on: On<'_>, object: &Value, live: &Value) -> Result<(), Status> {
    if on.collection() != GroupResource::new("certificates.k8s.io", "certificatesigningrequests") {
        return Ok(());
    }
    let certificate = |object: &Value| object.pointer("/status/certificate").cloned();
    let verb = match on.path.subresource.as_str() {
        "approval" => "approve",
        "status" if certificate(object) != certificate(live) => "sign",
        _ => return Ok(()),
    };
    let name = live.pointer("/spec/signerName").and_then(Value::as_str).unwrap_or_default();
    let all = format!("{}/*", name.split('/').next().unwrap_or_default());
    for signers in [name, &all] {
        let asked = Attributes::resource(&on.call.user, verb, "certificates.k8s.io", "signers").name(signers);
        if on.core().access.authorizers.check(&asked).await.is_ok() {
            return Ok(());
        }
    }
    let why = format!("user not permitted to {verb} requests with signerName {name:?}");
    Err(Status::forbidden(&on.collection(), &on.path.name, &why))
}

/// A changed object.
pub fn update(on: On<'_>, object: &Value, live: &Value) -> Result<(), Status> {
    let mut errors = Vec::new();
    metadata::validate_update(object, live, rules(on), &mut errors);
    // A binding has checked itself.
    if on.path.subresource != "binding" {
        on.shown().strategy.validate_update(object, live, &on.path.subresource, &mut errors);
    }
    answer(on, object, &errors)?;
    // Whoever writes a part of an object has not written what the rest of it would be warned of.
    if on.path.subresource.is_empty() {
        let warnings = on.shown().strategy.warnings_on_update(object, live);
        warnings.into_iter().for_each(|warning| on.call.warnings.add(warning));
    }
    Ok(())
}

fn rules(on: On<'_>) -> MetaRules {
    MetaRules {
        namespaced: on.resource.namespaced,
        names: on.shown().strategy.names(),
        custom: on.resource.custom.is_some(),
    }
}

fn answer(on: On<'_>, object: &Value, errors: &[crate::api::field::Error]) -> Result<(), Status> {
    match errors {
        [] => Ok(()),
        errors => {
            let mut kind = on.resource.group_kind();
            // A custom resource that says that it is something else is refused under that name.
            if let Some(given) = object.get("kind").and_then(Value::as_str).filter(|_| on.resource.custom.is_some()) {
                kind.kind = given.into();
            }
            Err(Status::invalid(&kind, object.name(), errors))
        }
    }
}
