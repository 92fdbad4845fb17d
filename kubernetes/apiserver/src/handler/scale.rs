//! The subresource `scale`: the number of replicas of an object, as an object of its own.

use http::StatusCode;
use serde_json::Value;

use super::{
    call::ResourceRequest,
    decode, get,
    handler_response::{self, HandlerResponse},
    patch,
    update::{self, ChangedObject, ManagedFieldsMode, Precondition},
};
use crate::{
    admission::AdmissionOperation,
    api::{
        GroupKind, StatusError,
        meta::{MetaAccessor, set_meta},
    },
    apply::{FieldManager, reset_fields, scale as books},
    codec::{
        content_type::{self, PatchType},
        query::{QueryParameters, WriteOptions},
    },
    crd::scale,
};

/// The number of replicas in the Scale of a custom resource that does not set it, so that a change that does
/// not set it either is noticed: kube-apiserver's own number.
const UNSET_REPLICAS: i64 = i32::MIN as i64;

/// Handles a request about the Scale of an object.
pub async fn handle_scale(on: ResourceRequest<'_>, body: &[u8]) -> Result<HandlerResponse, StatusError> {
    let query = QueryParameters::parse(&on.call.query);
    match on.call.info.verb {
        "get" => {
            let stored = get::read_object(on)?;
            Ok(HandlerResponse::Object(
                StatusCode::OK,
                scale_from_object(on, &handler_response::value(on.resource, &stored))?,
            ))
        }
        "update" => {
            let options = WriteOptions::for_update(&query)?;
            let wanted = decode::object(on, body, &options)?;
            update::check_name_and_namespace(on, &wanted)?;
            update_scale(on, &options, Precondition::from_object(&wanted), &|_| Ok(wanted.clone()), false).await
        }
        _ => patch_scale(on, body, &query).await,
    }
}

async fn patch_scale(
    on: ResourceRequest<'_>,
    body: &[u8],
    query: &QueryParameters<'_>,
) -> Result<HandlerResponse, StatusError> {
    let form = content_type::patch(on.content_type(), on.resource.custom.is_some())?;
    let options = WriteOptions::for_patch(query, form == PatchType::Apply)?;
    if form == PatchType::Apply {
        let applied = decode::decode_apply_configuration(body)?;
        let make = |_: &Value| {
            applied.check_duplicates(on, &options)?;
            Ok(applied.value.clone())
        };
        return update_scale(on, &options, Precondition::default(), &make, true).await;
    }
    let make = |scale: &Value| {
        let mut patched = scale.clone();
        patch::apply_patch(on, &mut patched, body, form)?;
        decode::decode_patched(on, &mut patched, body, form, &options)?;
        Ok(patched)
    };
    update_scale(on, &options, Precondition::default(), &make, false).await
}

async fn update_scale(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    expected: Precondition,
    make: &(dyn Fn(&Value) -> Result<Value, StatusError> + Send + Sync),
    apply: bool,
) -> Result<HandlerResponse, StatusError> {
    let make = |live: &Value| set_replicas(on, options, live, make, apply);
    let answer = update::guaranteed_update(on, options, expected, &make).await?;
    let object = match answer {
        HandlerResponse::Stored(_, stored) => handler_response::value(on.resource, &stored),
        HandlerResponse::Object(_, object) => object,
        other => return Ok(other),
    };
    Ok(HandlerResponse::Object(StatusCode::OK, scale_from_object(on, &object)?))
}

/// Sets the replicas of an object from its changed Scale, with their ownership.
fn set_replicas(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    live: &Value,
    make: &dyn Fn(&Value) -> Result<Value, StatusError>,
    apply: bool,
) -> Result<ChangedObject, StatusError> {
    let mut before = scale_before_change(on, live)?;
    let path = replicas_path(on);
    let steps: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    if let Some(entries) = books::to_scale(live, &steps) {
        set_meta(&mut before, "managedFields", entries);
    }
    let mut after = make(&before)?;
    let writer = on.writer_identity(options);
    let owner = field_manager(&on, &writer);
    if apply {
        after = owner.apply(Some(&before), &after, options.force == Some(true)).map_err(StatusError::from)?;
    } else {
        owner.update(Some(&before), &mut after);
    }
    let replicas = validated_replicas(on, &after, live)?;
    check_uid(on, &after, live)?;
    let mut object = live.clone();
    scale::write(&mut object, path, replicas);
    // Without a resourceVersion a change of a Scale is unconditional, also for custom resources.
    match after.resource_version() {
        "" if on.resource.custom.is_some() => {}
        version => set_meta(&mut object, "resourceVersion", version),
    }
    books::to_parent(&mut object, &after, &on.resource.gv.to_string(), &steps);
    Ok((object, ManagedFieldsMode::Keep))
}

/// Runs mutating webhooks on the Scale that results from a change of its object.
pub async fn run_mutating_admission(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    object: &mut Value,
    live: &Value,
) -> Result<(), StatusError> {
    let mut scale = scale_for_admission(on, object)?;
    let before = scale_for_admission(on, live)?;
    let wanted = requested_replicas(&scale);
    on.core().admission.mutate(&on.review(AdmissionOperation::Update, options), &mut scale, Some(&before)).await?;
    let replicas = validated_replicas(on, &scale, live)?;
    if replicas != wanted {
        scale::write(object, replicas_path(on), replicas);
    }
    Ok(())
}

/// Runs validating webhooks on the Scale that results from a change of its object.
pub async fn ask(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    object: &Value,
    live: &Value,
) -> Result<(), StatusError> {
    let scale = scale_for_admission(on, object)?;
    let before = scale_for_admission(on, live)?;
    on.core().admission.validate(&on.review(AdmissionOperation::Update, options), Some(&scale), Some(&before)).await
}

fn field_manager<'a>(on: &'a ResourceRequest<'a>, writer: &'a super::call::WriterIdentity) -> FieldManager<'a> {
    let reset = reset_fields(on.resource, "scale");
    FieldManager { reset, ..writer.field_manager(on) }
}

fn replicas_path(on: ResourceRequest<'_>) -> &str {
    let custom = on.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    custom.map_or(scale::SPEC_REPLICAS_PATH, |paths| &paths.spec_replicas)
}

/// The Scale before a change.
fn scale_before_change(on: ResourceRequest<'_>, live: &Value) -> Result<Value, StatusError> {
    scale_from_object_or(on, live, UNSET_REPLICAS)
}

/// The Scale as sent to webhooks.
fn scale_for_admission(on: ResourceRequest<'_>, object: &Value) -> Result<Value, StatusError> {
    scale_from_object_or(on, object, 0)
}

fn scale_from_object_or(on: ResourceRequest<'_>, object: &Value, unset: i64) -> Result<Value, StatusError> {
    let plain = |why| StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why);
    match on.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
        Some(paths) => scale::custom_scale_or(object, paths, unset).map_err(plain),
        None => Ok(scale::workload_scale(object)),
    }
}

fn requested_replicas(scale: &Value) -> i64 {
    scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default()
}

/// The replicas of a changed Scale. Those of a custom resource are validated with the whole object.
fn validated_replicas(on: ResourceRequest<'_>, scale: &Value, live: &Value) -> Result<i64, StatusError> {
    if on.resource.custom.is_none() {
        let kind = GroupKind::new("autoscaling", "Scale");
        return scale::replicas(scale).map_err(|errors| StatusError::invalid(&kind, live.name(), &errors));
    }
    match requested_replicas(scale) {
        UNSET_REPLICAS => {
            let message = format!("the spec replicas field {:?} cannot be empty", replicas_path(on));
            Err(StatusError::bad_request(message))
        }
        replicas => Ok(replicas),
    }
}

/// A patch cannot change the uid in the Scale of a workload.
fn check_uid(on: ResourceRequest<'_>, scale: &Value, live: &Value) -> Result<(), StatusError> {
    if on.resource.custom.is_some() || scale.uid().is_empty() || scale.uid() == live.uid() {
        return Ok(());
    }
    let mut of = on.collection();
    of.resource = format!("{}/scale", of.resource).into();
    let given = scale.uid();
    let found = live.uid();
    let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {found}");
    Err(StatusError::conflict(&of, live.name(), &why))
}

fn scale_from_object(on: ResourceRequest<'_>, object: &Value) -> Result<Value, StatusError> {
    match on.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
        Some(paths) => scale::custom_scale(object, paths).map_err(StatusError::internal),
        None => Ok(scale::workload_scale(object)),
    }
}
