//! PATCH: changes the stored object by a patch of one of four types.

use serde_json::Value;

use super::{
    call::ResourceRequest,
    create, decode,
    handler_response::HandlerResponse,
    update::{self, ChangedObject, ManagedFieldsMode, Precondition},
};
use crate::{
    api::{StatusError, meta::MetaAccessor},
    codec::{content_type::PatchType, query::WriteOptions},
    patch,
};

/// Patches the object of the path; an apply creates it if it does not exist.
pub async fn patch(
    on: ResourceRequest<'_>,
    body: &[u8],
    options: &WriteOptions,
    form: PatchType,
) -> Result<HandlerResponse, StatusError> {
    on.record_body_read(body);
    on.span.add_event("Recorded the audit event");
    on.span.add_event("About to apply patch");
    let answer = match form {
        PatchType::Apply => server_side_apply(on, body, options).await?,
        _ => apply_patch_to_stored(on, body, options, form).await?,
    };
    on.span.add_event("Object stored in database");
    Ok(answer)
}

async fn apply_patch_to_stored(
    on: ResourceRequest<'_>,
    body: &[u8],
    options: &WriteOptions,
    form: PatchType,
) -> Result<HandlerResponse, StatusError> {
    let make = move |live: &Value| -> Result<ChangedObject, StatusError> {
        let mut patched = live.clone();
        on.convert_to_served(&mut patched);
        apply_patch(on, &mut patched, body, form)?;
        decode::decode_patched(on, &mut patched, body, form, options)?;
        on.convert_to_stored(&mut patched);
        update::check_name_and_namespace(on, &patched)?;
        on.span.add_event("About to check admission control");
        Ok((patched, ManagedFieldsMode::Update))
    };
    update::guaranteed_update(on, options, Precondition::default(), &make).await
}

/// Applies the patch, without checking the result.
pub fn apply_patch(
    on: ResourceRequest<'_>,
    object: &mut Value,
    body: &[u8],
    form: PatchType,
) -> Result<(), StatusError> {
    match form {
        PatchType::Json => patch::apply_json_patch(object, body),
        PatchType::Merge => patch::apply_merge_patch(object, body),
        PatchType::StrategicMerge | PatchType::Apply => {
            let patch = patch::parse_object(body)?;
            *object = patch::apply_strategic_merge(object.take(), patch, on.body_schema())?;
            Ok(())
        }
    }
}

async fn server_side_apply(
    on: ResourceRequest<'_>,
    body: &[u8],
    options: &WriteOptions,
) -> Result<HandlerResponse, StatusError> {
    let applied = decode::decode_apply_configuration(body)?;
    let writer = on.writer_identity(options);
    let force = options.force == Some(true);
    let merge = |live: Option<&Value>| {
        let live = live.map(|live| on.served_object(live));
        let mut object =
            writer.field_manager(&on).apply(live.as_ref(), &applied.value, force).map_err(StatusError::from)?;
        applied.check_duplicates(on, options)?;
        decode::decode_patched(on, &mut object, body, PatchType::Apply, options)?;
        on.convert_to_stored(&mut object);
        Ok::<Value, StatusError>(object)
    };
    if on.core().store.get(&on.key(&on.path.name)).is_none() {
        if !on.path.subresource.is_empty() {
            return Err(on.not_found());
        }
        let object = merge(None)?;
        if !object.uid().is_empty() {
            let uid = object.uid();
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(StatusError::conflict(&on.collection(), &on.path.name, &why));
        }
        update::check_name_and_namespace(on, &object)?;
        on.span.add_event("About to check admission control");
        return create::insert(on, object, options, false).await;
    }
    let make = |live: &Value| -> Result<ChangedObject, StatusError> {
        let object = merge(Some(live))?;
        // Checked after merging: a name that the patch does not set is the object's own.
        update::check_name_and_namespace(on, &object)?;
        on.span.add_event("About to check admission control");
        Ok((object, ManagedFieldsMode::Keep))
    };
    update::guaranteed_update(on, options, Precondition::default(), &make).await
}
