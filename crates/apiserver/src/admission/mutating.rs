//! Mutating webhooks: one after the other, each seeing what those before it have made of the object.

use std::{collections::BTreeSet, mem, sync::Arc};

use serde_json::Value;

use super::{
    Admission, Configuration, Hook, Request, Sort,
    call::{self, Failure},
    matching::Subject,
    review::{self, Shown},
};
use crate::{
    api::{Status, go, meta},
    apply,
    patch::Operations,
    registry::Resource,
    schema::{builtin, decode, defaults, prune},
};

/// Which webhooks are to be called once more, by their place in the list.
#[derive(Debug, Default)]
struct Again {
    /// Those that ask for it and were called since the object last changed.
    called: BTreeSet<usize>,
    /// Those before a change.
    due: BTreeSet<usize>,
    /// Whether there was a change.
    changed: bool,
}

/// Calls all webhooks that want to see the request, and some of them twice.
pub async fn run(
    admission: &Admission,
    configurations: &[Arc<Configuration>],
    request: &Request<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let managers = meta::Meta::meta(object, "managedFields").cloned();
    let hooks = || configurations.iter().flat_map(|configuration| &configuration.hooks);
    let mut again = Again::default();
    for (at, hook) in hooks().enumerate() {
        call_one(admission, hook, at, request, object, old, &mut again).await?;
    }
    if again.changed {
        for (at, hook) in hooks().enumerate() {
            if again.due.contains(&at) {
                call_one(admission, hook, at, request, object, old, &mut again).await?;
            }
        }
        keep_managers(request, object, managers);
    }
    Ok(())
}

async fn call_one(
    admission: &Admission,
    hook: &Hook,
    at: usize,
    request: &Request<'_>,
    object: &mut Value,
    old: Option<&Value>,
    again: &mut Again,
) -> Result<(), Status> {
    let changed = {
        let subject = Subject { request, object: Some(&*object).filter(|object| !object.is_null()), old };
        let Some(resource) = subject.invocation(hook)? else { return Ok(()) };
        let shown = Shown::of(subject, &resource);
        match mutated(admission, hook, &shown).await {
            Ok(changed) => changed,
            Err(failure) => {
                failure.outcome(hook)?;
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

/// What a webhook makes of the object, if it changes it.
async fn mutated(admission: &Admission, hook: &Hook, shown: &Shown<'_>) -> Result<Option<Value>, Failure> {
    let (verdict, span) = call::ask(admission, Sort::Mutating, hook, shown).await?;
    let Some(patch) = verdict.patch else { return Ok(None) };
    let operations = operations(&patch).map_err(refused)?;
    let Some(operations) = operations else { return Ok(None) };
    let Some(object) = shown.object.as_deref() else {
        let why = "attempted to modify the object, which is not supported for this operation";
        return Err(refused(format!("admission webhook {:?} {why}", hook.name)));
    };
    let mut patched = object.clone();
    operations.apply(&mut patched).map_err(refused)?;
    let patched = read_again(shown, patched).map_err(refused)?;
    span.event("Patch applied");
    Ok(Some(patched).filter(|patched| Some(patched) != shown.subject.object))
}

fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::Refused(Status::internal(why))
}

/// Reads a patch; an empty one is none.
fn operations(patch: &[u8]) -> Result<Option<Operations>, String> {
    match serde_json::from_slice(patch) {
        Err(error) => Err(error.to_string()),
        Ok(Value::Null) => Ok(None),
        Ok(Value::Array(operations)) if operations.is_empty() => Ok(None),
        Ok(patch @ Value::Array(_)) => {
            let operations = Operations::parse(patch)?;
            operations.check_count().map_err(|status| status.message)?;
            Ok(Some(operations))
        }
        Ok(other) => {
            let found = go::json_kind(&other);
            Err(format!("json: cannot unmarshal {found} into Go value of type jsonpatch.Patch"))
        }
    }
}

/// What a patch has made, as if it had been sent: unknown fields go, defaults come, and it stays of its kind. Types of custom
/// resources are looked at when the whole object is validated.
fn read_again(shown: &Shown<'_>, patched: Value) -> Result<Value, String> {
    let on = shown.subject.request.on;
    let subresource = on.path.subresource.as_str();
    let resource: &Resource = &shown.resource;
    let mut object = review::marked(patched, resource, subresource);
    let part = resource.subresource(subresource).filter(|part| part.kind != resource.kind);
    if let Some(part) = part {
        let gv = part.gv.as_ref().unwrap_or(&resource.gv);
        if let Some(schema) = builtin::of_kind(gv, &part.kind) {
            decode::check(&mut object, schema).map_err(|error| error.to_string())?;
        }
        return Ok(object);
    }
    if resource.custom.is_some() {
        prune::prune(&mut object, &resource.schema).map_err(|error| error.to_string())?;
        defaults::apply_defaults(&mut object, &resource.schema);
    } else {
        decode::check(&mut object, &resource.schema).map_err(|error| error.to_string())?;
    }
    if resource.gv != on.resource.gv {
        object = review::converted(object, resource, on.resource, subresource);
    }
    on.shown().strategy.default(&mut object);
    Ok(object)
}

/// `managedFields` that make no sense any more are those from before.
fn keep_managers(request: &Request<'_>, object: &mut Value, before: Option<Value>) {
    let Err(why) = apply::check_managers(object) else { return };
    match before {
        Some(before) => meta::set_meta(object, "managedFields", before),
        None => drop(meta::remove_meta(object, "managedFields")),
    }
    request.on.call.warnings.add(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission \
         controller; please fix your requests: {why}"
    ));
}
