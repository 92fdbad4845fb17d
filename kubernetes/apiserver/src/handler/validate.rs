//! Validates an object before it is stored: its metadata, then the rules of its kind.

use serde_json::Value;

use super::call::ResourceRequest;
use crate::{
    api::{GroupResource, StatusError, meta::MetaAccessor},
    auth::{AuthorizationAttributes, escalation},
    kinds::metadata::{self, MetaRules},
    store::Stored,
};

pub fn create(on: ResourceRequest<'_>, object: &Value) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    metadata::validate_create(object, meta_rules(on), &mut errors);
    on.served_resource().strategy.validate_create(object, &mut errors);
    reject_if_invalid(on, object, &errors)?;
    // Refused objects get no warnings.
    on.served_resource().strategy.warnings(object).into_iter().for_each(|warning| on.call.warnings.add(warning));
    Ok(())
}

/// Validates a new object after it was stored.
pub fn validate_stored(on: ResourceRequest<'_>, stored: &Stored) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    on.served_resource().strategy.validate_stored(stored, &mut errors);
    match errors.as_slice() {
        [] => Ok(()),
        errors => Err(StatusError::invalid(&on.resource.group_kind(), &stored.key.name, errors)),
    }
}

/// Writers of roles and bindings cannot grant more than they hold.
pub async fn check_escalation(
    on: ResourceRequest<'_>,
    object: &Value,
    live: Option<&Value>,
) -> Result<(), StatusError> {
    let write = escalation::RbacWrite {
        user: &on.call.user,
        resource: &on.collection(),
        namespace: on.namespace(),
        path_name: &on.path.name,
        new: object,
        old: live,
    };
    escalation::check_escalation(&write, &on.core().access.rbac, &on.core().access.authorizers).await
}

/// Access to a subresource of a signing request does not include decisions for every signer.
pub async fn check_signer(on: ResourceRequest<'_>, object: &Value, live: &Value) -> Result<(), StatusError> {
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
        let asked =
            AuthorizationAttributes::for_resource(&on.call.user, verb, "certificates.k8s.io", "signers").name(signers);
        if on.core().access.authorizers.check(&asked).await.is_ok() {
            return Ok(());
        }
    }
    let why = format!("user not permitted to {verb} requests with signerName {name:?}");
    Err(StatusError::forbidden(&on.collection(), &on.path.name, &why))
}

pub fn validate_update(on: ResourceRequest<'_>, object: &Value, live: &Value) -> Result<(), StatusError> {
    let mut errors = Vec::new();
    metadata::validate_update(object, live, meta_rules(on), &mut errors);
    // A binding is validated by its own handler.
    if on.path.subresource != "binding" {
        on.served_resource().strategy.validate_update(object, live, &on.path.subresource, &mut errors);
    }
    reject_if_invalid(on, object, &errors)?;
    // A writer of a subresource gets no warnings about the rest of the object.
    if on.path.subresource.is_empty() {
        let warnings = on.served_resource().strategy.warnings_on_update(object, live);
        warnings.into_iter().for_each(|warning| on.call.warnings.add(warning));
    }
    Ok(())
}

fn meta_rules(on: ResourceRequest<'_>) -> MetaRules {
    MetaRules {
        namespaced: on.resource.namespaced,
        names: on.served_resource().strategy.names(),
        custom: on.resource.custom.is_some(),
    }
}

fn reject_if_invalid(
    on: ResourceRequest<'_>,
    object: &Value,
    errors: &[crate::api::field::FieldError],
) -> Result<(), StatusError> {
    match errors {
        [] => Ok(()),
        errors => {
            let mut kind = on.resource.group_kind();
            // A custom resource with another kind in its body is refused under that name.
            if let Some(given) = object.get("kind").and_then(Value::as_str).filter(|_| on.resource.custom.is_some()) {
                kind.kind = given.into();
            }
            Err(StatusError::invalid(&kind, object.name(), errors))
        }
    }
}
