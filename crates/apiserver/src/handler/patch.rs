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
    auth::Attributes,
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
        check_identity(on, live, &patched)?;
        // A version inside the patch is a precondition.
        if patched.resource_version() != live.resource_version() {
            return Err(Status::modified(&on.collection(), &on.path.name));
        }
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

fn check_identity(on: On<'_>, live: &Value, patched: &Value) -> Result<(), Status> {
    if patched.name() != live.name() {
        let (given, wanted) = (patched.name(), live.name());
        let message = format!("the name of the object ({given}) does not match the name on the URL ({wanted})");
        return Err(Status::bad_request(message));
    }
    if on.resource.namespaced && patched.namespace() != live.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    Ok(())
}

async fn apply(on: On<'_>, body: &[u8], options: &WriteOptions) -> Result<Answer, Status> {
    let applied = decode::applied(on, body)?;
    let (writer, force) = (on.writer(options), options.force == Some(true));
    let merge = |live: Option<&Value>| writer.owner(on).apply(live, &applied, force).map_err(Status::from);
    if on.core().store.get(&on.key(&on.path.name)).is_none() {
        if !on.path.subresource.is_empty() || !applied.uid().is_empty() {
            return Err(on.not_found());
        }
        may_create(on).await?;
        let mut object = merge(None)?;
        update::check_place(on, &object)?;
        decode::patched(on, &mut object, body, PatchType::Apply, options)?;
        on.span.event("About to check admission control");
        return create::insert(on, object, options, false).await;
    }
    let make = |live: &Value| -> Result<Changed, Status> {
        let mut object = merge(Some(live))?;
        // Checked with what is there: a name that is left out is the object's own.
        update::check_place(on, &object)?;
        decode::patched(on, &mut object, body, PatchType::Apply, options)?;
        on.span.event("About to check admission control");
        Ok((object, Managers::Done))
    };
    update::change(on, options, Precondition::of(&applied), &make).await
}

/// Whoever may patch may not therefore create.
async fn may_create(on: On<'_>) -> Result<(), Status> {
    let resource = on.shown();
    let attributes = Attributes::resource(&on.call.user, "create", &resource.gv.group, &resource.plural)
        .namespace(on.namespace())
        .name(&on.path.name);
    on.core().access.authorizers.check(&attributes).await
}
