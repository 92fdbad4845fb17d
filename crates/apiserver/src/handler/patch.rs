//! PATCH: a change to whatever is stored, in one of four forms.

use http::StatusCode;
use serde_json::Value;

use super::{
    answer::Answer,
    call::On,
    create, decode,
    update::{self, Changed, Managers, Precondition},
};
use crate::{
    api::{
        Status,
        meta::{Meta, set_meta},
    },
    apply::managed,
    codec::query::WriteOptions,
    patch,
};

/// The forms of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own: lists merge by their keys.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl Form {
    /// By the media type of the request.
    pub fn of(on: On<'_>) -> Result<Self, Status> {
        let media = on.call.header(http::header::CONTENT_TYPE);
        let media = media.split(';').next().unwrap_or_default().trim();
        let custom = on.resource.custom.is_some();
        match media {
            "application/json-patch+json" => Ok(Form::Json),
            "application/merge-patch+json" => Ok(Form::Merge),
            "application/strategic-merge-patch+json" if !custom => Ok(Form::Strategic),
            "application/apply-patch+yaml" => Ok(Form::Apply),
            _ => Err(unsupported(custom)),
        }
    }
}

fn unsupported(custom: bool) -> Status {
    let strategic = if custom { "" } else { ", application/strategic-merge-patch+json" };
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
         application/merge-patch+json, application/apply-patch+yaml{strategic}"
    );
    Status::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
}

/// Patches the object of the path; an apply creates it if it is not there.
pub async fn patch(on: On<'_>, body: &[u8], options: &WriteOptions, form: Form) -> Result<Answer, Status> {
    on.span.event_with("limitedReadBody succeeded", &[("len", body.len().into())]);
    on.span.event("Recorded the audit event");
    on.span.event("About to apply patch");
    let answer = match form {
        Form::Apply => apply(on, body, options).await?,
        _ => change(on, body, options, form).await?,
    };
    on.span.event("Object stored in database");
    Ok(answer)
}

async fn change(on: On<'_>, body: &[u8], options: &WriteOptions, form: Form) -> Result<Answer, Status> {
    let patch = decode::patch(body, form)?;
    let make = move |live: &Value| -> Result<Changed, Status> {
        let mut patched = match form {
            Form::Json => patch::json(live.clone(), &patch)?,
            Form::Merge => patch::merge(live.clone(), &patch),
            Form::Strategic | Form::Apply => patch::strategic(live.clone(), &patch, &on.resource.schema)?,
        };
        decode::patched(on, &mut patched, &patch, options, form)?;
        check_identity(on, live, &patched)?;
        on.span.event("About to check admission control");
        Ok((patched, Managers::Update))
    };
    // A version inside the patch is a precondition, which the change itself brings to light.
    let expected = Precondition { version: decode::version_of(&patch, form), ..Precondition::default() };
    update::change(on, options, expected, &make).await
}

fn check_identity(on: On<'_>, live: &Value, patched: &Value) -> Result<(), Status> {
    if patched.name() != live.name() || (on.resource.namespaced && patched.namespace() != live.namespace()) {
        let message = format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            patched.name(),
            live.name()
        );
        return Err(Status::bad_request(message));
    }
    Ok(())
}

async fn apply(on: On<'_>, body: &[u8], options: &WriteOptions) -> Result<Answer, Status> {
    let applied = decode::applied(on, body, options)?;
    let now = on.core().now();
    if on.core().store.get(&on.key(&on.path.name)).is_none() {
        if !on.path.subresource.is_empty() {
            return Err(on.not_found());
        }
        let mut object = managed::apply(None, &applied, &on.manager(options, &now), options.force)?;
        set_meta(&mut object, "name", on.path.name.as_str());
        return create::insert(on, object, options, false).await;
    }
    let make = |live: &Value| -> Result<Changed, Status> {
        let object = managed::apply(Some(live), &applied, &on.manager(options, &now), options.force)?;
        on.span.event("About to check admission control");
        Ok((object, Managers::Done))
    };
    update::change(on, options, Precondition::of(&applied), &make).await
}
