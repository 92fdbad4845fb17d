//! `scale`: the number of replicas of an object, as an object of its own.

use http::StatusCode;
use serde_json::Value;

use super::{
    answer::{self, Answer},
    call::On,
    decode, get, patch,
    update::{self, Changed, Managers, Precondition},
};
use crate::{
    admission::Operation,
    api::{
        GroupKind, Status,
        meta::{Meta, set_meta},
    },
    apply::{Owner, reset_fields, scale as books},
    codec::{
        content_type::{self, PatchType},
        query::{Query, WriteOptions},
    },
    crd::scale,
};

/// Stands in the Scale of a custom resource whose number of replicas is not set, so that a change that does not set it either is
/// noticed: kube-apiserver's own number.
const UNSET_REPLICAS: i64 = i32::MIN as i64;

/// Answers a request about the Scale of an object.
pub async fn answer(on: On<'_>, body: &[u8]) -> Result<Answer, Status> {
    let query = Query::parse(&on.call.query);
    match on.call.info.verb {
        "get" => {
            let stored = get::read(on)?;
            Ok(Answer::Object(StatusCode::OK, of(on, &answer::value(on.resource, &stored))?))
        }
        "update" => {
            let options = WriteOptions::update(&query)?;
            let wanted = decode::object(on, body, &options)?;
            update::check_place(on, &wanted)?;
            change(on, &options, Precondition::of(&wanted), &|_| Ok(wanted.clone()), false).await
        }
        _ => patched(on, body, &query).await,
    }
}

async fn patched(on: On<'_>, body: &[u8], query: &Query<'_>) -> Result<Answer, Status> {
    let form = content_type::patch(on.content_type(), on.resource.custom.is_some())?;
    let options = WriteOptions::patch(query, form == PatchType::Apply)?;
    if form == PatchType::Apply {
        let applied = decode::applied(body)?;
        let make = |_: &Value| {
            applied.check_duplicates(on, &options)?;
            Ok(applied.value.clone())
        };
        return change(on, &options, Precondition::default(), &make, true).await;
    }
    let make = |scale: &Value| {
        let mut patched = scale.clone();
        patch::make_patched(on, &mut patched, body, form)?;
        decode::patched(on, &mut patched, body, form, &options)?;
        Ok(patched)
    };
    change(on, &options, Precondition::default(), &make, false).await
}

async fn change(
    on: On<'_>,
    options: &WriteOptions,
    expected: Precondition,
    make: &(dyn Fn(&Value) -> Result<Value, Status> + Send + Sync),
    apply: bool,
) -> Result<Answer, Status> {
    let make = |live: &Value| rescaled(on, options, live, make, apply);
    let answer = update::change(on, options, expected, &make).await?;
    let object = match answer {
        Answer::Stored(_, stored) => answer::value(on.resource, &stored),
        Answer::Object(_, object) => object,
        other => return Ok(other),
    };
    Ok(Answer::Object(StatusCode::OK, of(on, &object)?))
}

/// The object with the replicas that the changed Scale asks for, and who owns them.
fn rescaled(
    on: On<'_>,
    options: &WriteOptions,
    live: &Value,
    make: &dyn Fn(&Value) -> Result<Value, Status>,
    apply: bool,
) -> Result<Changed, Status> {
    let mut before = before(on, live)?;
    let path = replicas_path(on);
    let steps: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    if let Some(entries) = books::to_scale(live, &steps) {
        set_meta(&mut before, "managedFields", entries);
    }
    let mut after = make(&before)?;
    let writer = on.writer(options);
    let owner = owner(&on, &writer);
    if apply {
        after = owner.apply(Some(&before), &after, options.force == Some(true)).map_err(Status::from)?;
    } else {
        owner.update(Some(&before), &mut after);
    }
    let replicas = checked_replicas(on, &after, live)?;
    check_uid(on, &after, live)?;
    let mut object = live.clone();
    scale::write(&mut object, path, replicas);
    // Without a resourceVersion a change of a Scale is unconditional, also of custom resources.
    match after.resource_version() {
        "" if on.resource.custom.is_some() => {}
        version => set_meta(&mut object, "resourceVersion", version),
    }
    books::to_parent(&mut object, &after, &on.resource.gv.to_string(), &steps);
    Ok((object, Managers::Done))
}

/// Lets mutating webhooks change the Scale that an object is about to have.
pub async fn mutate(on: On<'_>, options: &WriteOptions, object: &mut Value, live: &Value) -> Result<(), Status> {
    let (mut scale, before) = (shown(on, object)?, shown(on, live)?);
    let wanted = asked_replicas(&scale);
    on.core().admission.mutate(&on.review(Operation::Update, options), &mut scale, Some(&before)).await?;
    let replicas = checked_replicas(on, &scale, live)?;
    if replicas != wanted {
        scale::write(object, replicas_path(on), replicas);
    }
    Ok(())
}

/// Asks validating webhooks about the Scale that an object is about to have.
pub async fn ask(on: On<'_>, options: &WriteOptions, object: &Value, live: &Value) -> Result<(), Status> {
    let (scale, before) = (shown(on, object)?, shown(on, live)?);
    on.core().admission.validate(&on.review(Operation::Update, options), Some(&scale), Some(&before)).await
}

fn owner<'a>(on: &'a On<'a>, writer: &'a super::call::Writer) -> Owner<'a> {
    let reset = reset_fields(on.resource, "scale");
    Owner { reset, ..writer.owner(on) }
}

fn replicas_path(on: On<'_>) -> &str {
    let custom = on.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref());
    custom.map_or(scale::REPLICAS, |paths| &paths.spec_replicas)
}

/// The Scale that a change begins with.
fn before(on: On<'_>, live: &Value) -> Result<Value, Status> {
    of_or(on, live, UNSET_REPLICAS)
}

/// The Scale that webhooks see.
fn shown(on: On<'_>, object: &Value) -> Result<Value, Status> {
    of_or(on, object, 0)
}

fn of_or(on: On<'_>, object: &Value, unset: i64) -> Result<Value, Status> {
    let plain = |why| Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", why);
    match on.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
        Some(paths) => scale::of_custom_or(object, paths, unset).map_err(plain),
        None => Ok(scale::of_workload(object)),
    }
}

fn asked_replicas(scale: &Value) -> i64 {
    scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default()
}

/// The number of replicas that a changed Scale asks for. That of a custom resource is checked with the whole object.
fn checked_replicas(on: On<'_>, scale: &Value, live: &Value) -> Result<i64, Status> {
    if on.resource.custom.is_none() {
        let kind = GroupKind::new("autoscaling", "Scale");
        return scale::replicas(scale).map_err(|errors| Status::invalid(&kind, live.name(), &errors));
    }
    match asked_replicas(scale) {
        UNSET_REPLICAS => {
            let message = format!("the spec replicas field {:?} cannot be empty", replicas_path(on));
            Err(Status::bad_request(message))
        }
        replicas => Ok(replicas),
    }
}

/// A patch cannot give the Scale of a workload another uid.
fn check_uid(on: On<'_>, scale: &Value, live: &Value) -> Result<(), Status> {
    if on.resource.custom.is_some() || scale.uid().is_empty() || scale.uid() == live.uid() {
        return Ok(());
    }
    let mut of = on.collection();
    of.resource = format!("{}/scale", of.resource).into();
    let (given, found) = (scale.uid(), live.uid());
    let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {found}");
    Err(Status::conflict(&of, live.name(), &why))
}

fn of(on: On<'_>, object: &Value) -> Result<Value, Status> {
    match on.resource.custom.as_ref().and_then(|custom| custom.scale.as_ref()) {
        Some(paths) => scale::of_custom(object, paths).map_err(Status::internal),
        None => Ok(scale::of_workload(object)),
    }
}
