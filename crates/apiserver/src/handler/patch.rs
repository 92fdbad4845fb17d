//! PATCH: a change to whatever is stored, in one of four forms.

use serde_json::Value;

use super::{
    answer::Answer,
    call::On,
    create, decode,
    update::{self, Changed, Managers, Precondition},
};
use crate::{
    api::{Status, meta::Meta},
    codec::{content_type::PatchType, query::WriteOptions},
    patch,
};

/// Patches the object of the path; an apply creates it if it is not there.
pub async fn patch(on: On<'_>, body: &[u8], options: &WriteOptions, form: PatchType) -> Result<Answer, Status> {
    on.note_body(body);
    on.span.event("Recorded the audit event");
    on.span.event("About to apply patch");
    let answer = match form {
        PatchType::Apply => apply(on, body, options).await?,
        _ => change(on, body, options, form).await?,
    };
    on.span.event("Object stored in database");
    Ok(answer)
}

async fn change(on: On<'_>, body: &[u8], options: &WriteOptions, form: PatchType) -> Result<Answer, Status> {
    let make = move |live: &Value| -> Result<Changed, Status> {
        let mut patched = live.clone();
        on.to_shown(&mut patched);
        make_patched(on, &mut patched, body, form)?;
        decode::patched(on, &mut patched, body, form, options)?;
        on.to_stored(&mut patched);
        update::check_place(on, &patched)?;
        on.span.event("About to check admission control");
        Ok((patched, Managers::Update))
    };
    update::change(on, options, Precondition::default(), &make).await
}

/// The object with the patch applied, not checked yet.
pub fn make_patched(on: On<'_>, object: &mut Value, body: &[u8], form: PatchType) -> Result<(), Status> {
    match form {
        PatchType::Json => patch::json(object, body),
        PatchType::Merge => patch::merge(object, body),
        PatchType::StrategicMerge | PatchType::Apply => {
            let patch = patch::parse_object(body)?;
            *object = patch::strategic(object.take(), patch, on.wanted_schema())?;
            Ok(())
        }
    }
}

async fn apply(on: On<'_>, body: &[u8], options: &WriteOptions) -> Result<Answer, Status> {
    let applied = decode::applied(body)?;
    let (writer, force) = (on.writer(options), options.force == Some(true));
    let merge = |live: Option<&Value>| {
        let live = live.map(|live| on.shown_object(live));
        let mut object = writer.owner(&on).apply(live.as_ref(), &applied.value, force).map_err(Status::from)?;
        applied.check_duplicates(on, options)?;
        decode::patched(on, &mut object, body, PatchType::Apply, options)?;
        on.to_stored(&mut object);
        Ok::<Value, Status>(object)
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
            return Err(Status::conflict(&on.collection(), &on.path.name, &why));
        }
        update::check_place(on, &object)?;
        on.span.event("About to check admission control");
        return create::insert(on, object, options, false).await;
    }
    let make = |live: &Value| -> Result<Changed, Status> {
        let object = merge(Some(live))?;
        // Checked with what is there: a name that is left out is the object's own.
        update::check_place(on, &object)?;
        on.span.event("About to check admission control");
        Ok((object, Managers::Done))
    };
    update::change(on, options, Precondition::default(), &make).await
}
