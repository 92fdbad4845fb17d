//! Mutating webhooks run one after the other, each on the result of those before it.

use std::{collections::BTreeSet, mem, sync::Arc};

use serde_json::Value;

use super::{
    AdmissionChain, AdmissionWebhook, Request, WebhookConfiguration, WebhookType,
    matching::AdmissionAttributes,
    review::{self, VersionedAttributes},
    webhook_call::{self, WebhookFailure},
};
use crate::{
    api::{StatusError, go_format, meta},
    apply,
    patch::JsonPatch,
    registry::ServedResource,
    schema::{builtin, decode, defaults, prune},
};

/// Which webhooks to reinvoke, by their index in the list.
#[derive(Debug, Default)]
struct ReinvocationContext {
    /// Webhooks that ask for reinvocation and were called since the object last changed.
    called: BTreeSet<usize>,
    due: BTreeSet<usize>,
    /// Whether the object has changed.
    changed: bool,
}

/// Calls all webhooks that match the request, and reinvokes some of them.
pub async fn run(
    admission: &AdmissionChain,
    configurations: &[Arc<WebhookConfiguration>],
    request: &Request<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), StatusError> {
    let managers = meta::MetaAccessor::meta(object, "managedFields").cloned();
    let hooks = || configurations.iter().flat_map(|configuration| &configuration.hooks);
    let mut again = ReinvocationContext::default();
    for (at, hook) in hooks().enumerate() {
        call_and_patch(admission, hook, at, request, object, old, &mut again).await?;
    }
    if again.changed {
        for (at, hook) in hooks().enumerate() {
            if again.due.contains(&at) {
                call_and_patch(admission, hook, at, request, object, old, &mut again).await?;
            }
        }
        restore_managed_fields(request, object, managers);
    }
    Ok(())
}

async fn call_and_patch(
    admission: &AdmissionChain,
    hook: &AdmissionWebhook,
    at: usize,
    request: &Request<'_>,
    object: &mut Value,
    old: Option<&Value>,
    again: &mut ReinvocationContext,
) -> Result<(), StatusError> {
    let changed = {
        let subject = AdmissionAttributes { request, object: Some(&*object).filter(|object| !object.is_null()), old };
        let Some(resource) = subject.match_webhook(hook)? else { return Ok(()) };
        let shown = VersionedAttributes::for_version(subject, &resource);
        match call_webhook(admission, hook, &shown).await {
            Ok(changed) => changed,
            Err(failure) => {
                failure.apply_failure_policy(hook)?;
                None
            }
        }
    };
    if let Some(changed) = changed {
        *object = changed;
        again.due.append(&mut mem::take(&mut again.called));
        again.changed = true;
    }
    if hook.reinvoked {
        again.called.insert(at);
    }
    Ok(())
}

/// Calls a webhook, and returns the object if it changed.
async fn call_webhook(
    admission: &AdmissionChain,
    hook: &AdmissionWebhook,
    shown: &VersionedAttributes<'_>,
) -> Result<Option<Value>, WebhookFailure> {
    let (verdict, span) = webhook_call::ask(admission, WebhookType::Mutating, hook, shown).await?;
    let Some(patch) = verdict.patch else { return Ok(None) };
    let operations = parse_patch(&patch).map_err(internal_failure)?;
    let Some(operations) = operations else { return Ok(None) };
    let Some(object) = shown.object.as_deref() else {
        let why = "attempted to modify the object, which is not supported for this operation";
        return Err(internal_failure(format!("admission webhook {:?} {why}", hook.name)));
    };
    let mut patched = object.clone();
    operations.apply(&mut patched).map_err(internal_failure)?;
    let patched = decode_patched(shown, patched).map_err(internal_failure)?;
    span.add_event("Patch applied");
    Ok(Some(patched).filter(|patched| Some(patched) != shown.subject.object))
}

fn internal_failure(why: impl std::fmt::Display) -> WebhookFailure {
    WebhookFailure::Refused(StatusError::internal(why))
}

/// Decodes a patch; an empty one is none.
fn parse_patch(patch: &[u8]) -> Result<Option<JsonPatch>, String> {
    match serde_json::from_slice(patch) {
        Err(error) => Err(error.to_string()),
        Ok(Value::Null) => Ok(None),
        Ok(Value::Array(operations)) if operations.is_empty() => Ok(None),
        Ok(patch @ Value::Array(_)) => {
            let operations = JsonPatch::parse(patch)?;
            operations.check_count().map_err(|status| status.message)?;
            Ok(Some(operations))
        }
        Ok(other) => {
            let found = go_format::json_kind(&other);
            Err(format!("json: cannot unmarshal {found} into Go value of type jsonpatch.Patch"))
        }
    }
}

/// Decodes the result of a patch like a body that was sent: unknown fields are dropped, defaults are set, and
/// the kind cannot change. Custom resources are type-checked when the whole object is validated.
fn decode_patched(shown: &VersionedAttributes<'_>, patched: Value) -> Result<Value, String> {
    let on = shown.subject.request.on;
    let subresource = on.path.subresource.as_str();
    let resource: &ServedResource = &shown.resource;
    let mut object = review::with_type_meta(patched, resource, subresource);
    let part = resource.subresource(subresource).filter(|part| part.kind != resource.kind);
    if let Some(part) = part {
        let gv = part.gv.as_ref().unwrap_or(&resource.gv);
        if let Some(schema) = builtin::schema_for_kind(gv, &part.kind) {
            decode::check_types(&mut object, schema).map_err(|error| error.to_string())?;
        }
        return Ok(object);
    }
    if resource.custom.is_some() {
        prune::prune(&mut object, &resource.schema).map_err(|error| error.to_string())?;
        defaults::apply_defaults(&mut object, &resource.schema);
    } else {
        decode::check_types(&mut object, &resource.schema).map_err(|error| error.to_string())?;
    }
    if resource.gv != on.resource.gv {
        object = review::convert_object(object, resource, on.resource, subresource);
    }
    on.served_resource().strategy.default(&mut object);
    Ok(object)
}

/// Restores the previous `managedFields` if the new ones are invalid.
fn restore_managed_fields(request: &Request<'_>, object: &mut Value, before: Option<Value>) {
    let Err(why) = apply::check_managed_fields(object) else { return };
    match before {
        Some(before) => meta::set_meta(object, "managedFields", before),
        None => drop(meta::remove_meta(object, "managedFields")),
    }
    request.on.call.warnings.add(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission \
         controller; please fix your requests: {why}"
    ));
}
