//! POST: a new object.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    answer::Answer,
    call::On,
    decode, get, metadata, pods, priority, size,
    spans::{READ, WRITE},
    validate,
};
use crate::{
    admission::Operation,
    api::{
        Status, go, identity,
        meta::{Meta, set_meta},
        status::{Cause, Details},
    },
    auth::Attributes,
    codec::query::WriteOptions,
    crd::versions,
    registry::Custom,
    store::{Encoded, Stored, WriteError},
};

/// kube-apiserver tries so often to find a generated name that is free.
const GENERATED_TRIES: usize = 8;

/// Creates the object of a request's body.
pub async fn create(on: On<'_>, body: &[u8], options: &WriteOptions) -> Result<Answer, Status> {
    on.note_body(body);
    on.span.event("About to convert to expected version");
    let object = decode::object(on, body, options)?;
    on.span.event("Conversion done");
    check_namespace_given(on, &object)?;
    on.span.event("About to store object in database");
    let created = insert(on, object, options, true).await;
    on.note_write(body, &created);
    created
}

/// Stores a new object, whoever it comes from: a POST, or an apply of what is not there yet, which has its managers already.
pub async fn insert(on: On<'_>, object: Value, options: &WriteOptions, manage: bool) -> Result<Answer, Status> {
    check_definition(on, on.resource.custom.as_deref(), object.name())?;
    check_namespace(on, object.name())?;
    let object = mutate(on, object, options, manage).await?;
    // The name is generated after mutating webhooks have seen that there is none yet.
    if !object.name().is_empty() || object.meta_str("generateName").is_empty() {
        return attempt(on, object, options, manage).await;
    }
    let mut tries = GENERATED_TRIES;
    loop {
        tries -= 1;
        let mut candidate = object.clone();
        set_meta(&mut candidate, "name", identity::generated_name(object.meta_str("generateName")));
        match attempt(on, candidate, options, manage).await {
            Err(status) if status.reason == "AlreadyExists" && tries > 0 => {}
            answer => return answer,
        }
    }
}

/// The object as mutating admission leaves it.
async fn mutate(on: On<'_>, mut object: Value, options: &WriteOptions, manage: bool) -> Result<Value, Status> {
    metadata::strip(&mut object);
    set_namespace(on, &mut object);
    on.shown().strategy.default(&mut object);
    if manage {
        on.manage(options, None, &mut object);
    }
    pods::give_account(on, &mut object).await?;
    priority::admit_create(on, &mut object)?;
    on.core().admission.mutate(&on.review(Operation::Create, options), &mut object, None).await?;
    on.shown().strategy.default(&mut object);
    Ok(object)
}

async fn attempt(on: On<'_>, mut object: Value, options: &WriteOptions, manage: bool) -> Result<Answer, Status> {
    let version = object.resource_version().to_owned();
    metadata::stamp_new(&mut object, on.namespace(), &on.core().now());
    on.shown().strategy.record_author(&mut object, &on.call.user);
    on.shown().strategy.prepare_create(&mut object);
    validate::create(on, &object)?;
    priority::validate(on, &object, true)?;
    validate::escalation(on, &object, None).await?;
    if on.call.info.verb != "create" {
        may_create(on).await?;
    }
    on.core().admission.validate(&on.review(Operation::Create, options), Some(&object), None).await?;
    if options.dry_run {
        return dry_run(on, object);
    }
    let name = object.name().to_owned();
    size::fit(on, &mut object, &name, !manage)?;
    let stored = store(on, object, &version).await?;
    if let Err(status) = check_home(on, &stored.key.name).and_then(|()| validate::stored(on, &stored)) {
        // Nobody would find it, or it has what another has. If somebody has changed it already, the sweep of its home finds it.
        let _ = on.core().store.delete(&stored.key, stored.revision, None).await;
        return Err(status);
    }
    Ok(Answer::Stored(StatusCode::CREATED, stored))
}

/// Whoever may update or patch may not therefore create what is not there.
async fn may_create(on: On<'_>) -> Result<(), Status> {
    let resource = on.shown();
    let attributes = Attributes::resource(&on.call.user, "create", &resource.gv.group, &resource.plural)
        .namespace(on.namespace())
        .name(&on.path.name);
    on.core().access.authorizers.check(&attributes).await
}

/// Whether an object that was created still has a place: its namespace and its definition may have gone while webhooks had their say.
fn check_home(on: On<'_>, name: &str) -> Result<(), Status> {
    check_namespace(on, name)?;
    if on.resource.custom.is_none() {
        return Ok(());
    }
    let catalog = on.core().registry.catalog();
    let served = catalog.get(&on.resource.gv, &on.resource.plural).ok_or_else(Status::no_such_path)?;
    check_definition(on, served.custom.as_deref(), name)
}

/// A dry run answers as a create would, without a resourceVersion.
fn dry_run(on: On<'_>, object: Value) -> Result<Answer, Status> {
    if on.core().store.get(&on.key(object.name())).is_some() {
        return Err(exists(on, object.name()));
    }
    Ok(Answer::Object(StatusCode::CREATED, object))
}

async fn store(on: On<'_>, mut object: Value, version: &str) -> Result<Arc<Stored>, Status> {
    let name = object.name().to_owned();
    // Whoever makes what is not there by a change finds that out first.
    let change = on.call.info.verb != "create";
    let span = on.storage_span(if change { "GuaranteedUpdate etcd3" } else { "Create etcd3" }, &name, true);
    if change {
        on.transaction(&span, READ).end();
        span.event("initial value restored");
    } else if go::parse_uint(version).is_ok_and(|version| version > 0) {
        // Only a create says so, and only the storage of kube-apiserver notices; what is no version does not count.
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    span.event("About to Encode");
    versions::store(on.resource, &mut object);
    let encoded = Encoded::of(&object).map_err(Status::internal)?;
    span.event_with("Encode succeeded", &[("len", encoded.size().into())]);
    span.event("TransformToStorage succeeded");
    if change {
        span.event("Transaction prepared");
    }
    let transaction = on.transaction(&span, WRITE);
    let created = on.core().store.insert(&on.key(&name), encoded).await;
    transaction.end();
    span.event(if change { "Txn call completed" } else { "Txn call succeeded" });
    match created {
        Ok(stored) => {
            if change {
                span.event("Transaction committed");
            }
            span.event_with("Decode succeeded", &[("len", stored.body.len().into())]);
            Ok(stored)
        }
        Err(WriteError::Exists) => Err(exists(on, &name)),
        Err(error) => Err(Status::internal(error)),
    }
}

/// The object is there already, perhaps only until its finalizers are done.
fn exists(on: On<'_>, name: &str) -> Status {
    let mut status = Status::already_exists(&on.collection(), name);
    if get::find(on, name).is_some_and(|live| live.deleting) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

/// The namespace of the body must be the path's, if it is given. What lives in no namespace, the path of a namespace included, has
/// none to compare.
pub fn check_namespace_given(on: On<'_>, object: &Value) -> Result<(), Status> {
    let given = object.namespace();
    if on.resource.namespaced && !given.is_empty() && given != on.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    Ok(())
}

fn set_namespace(on: On<'_>, object: &mut Value) {
    if on.resource.namespaced {
        set_meta(object, "namespace", on.namespace());
    }
}

/// Nothing is created of a kind whose definition is on its way out.
fn check_definition(on: On<'_>, custom: Option<&Custom>, name: &str) -> Result<(), Status> {
    if custom.is_some_and(|custom| custom.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&on.collection(), name, why));
    }
    Ok(())
}

/// Nothing is created in a namespace that is not there or on its way out.
fn check_namespace(on: On<'_>, name: &str) -> Result<(), Status> {
    if !on.resource.namespaced || on.is_review() {
        return Ok(());
    }
    let namespace = on.namespace();
    let live = on.core().namespace(namespace);
    let live = live.ok_or_else(|| Status::not_found(&crate::api::GroupResource::new("", "namespaces"), namespace))?;
    if !live.deleting {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = Cause {
        reason: "NamespaceTerminating".into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    };
    let details = Details { causes: vec![cause], ..Details::of(&on.collection(), name) };
    Err(Status::forbidden(&on.collection(), name, &why).with(details))
}
