//! PUT and everything else that changes an object: the change is made to what is stored now, and made again if somebody else was
//! faster.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    answer::{self, Answer},
    call::On,
    decode, scale,
    spans::WRITE,
    validate,
};
use crate::{
    admission::Operation,
    api::{
        GroupKind, Status, field,
        meta::{Meta, set_meta},
    },
    apply::keep_times,
    codec::query::WriteOptions,
    core::is_gone,
    kinds::metadata,
    store::{Stored, WriteError},
    trace::Span,
};

/// Writers that meet take turns; more than this many losses in a row means that something is wrong.
const TRIES: usize = 100;

/// How a change sees the managers of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Managers {
    /// What changes belongs to the writer.
    Update,
    /// The change has seen to it itself, as apply does.
    Done,
}

/// What a change makes of the object that is stored now.
pub type Changed = (Value, Managers);

/// Replaces an object by the one in the request's body.
pub async fn update(on: On<'_>, body: &[u8], options: &WriteOptions) -> Result<Answer, Status> {
    on.note_body(body);
    on.span.event("About to convert to expected version");
    let object = decode::object(on, body, options)?;
    on.span.event("Conversion done");
    check_place(on, &object)?;
    on.span.event("About to store object in database");
    let key = on.key(&on.path.name);
    let updated = if on.core().store.get(&key).is_none() && creates(on, &object) {
        super::create::insert(on, object, options, true).await
    } else {
        change(on, options, Precondition::of(&object), &|_| Ok((object.clone(), Managers::Update))).await
    };
    on.note_write(body, &updated);
    updated
}

fn creates(on: On<'_>, object: &Value) -> bool {
    on.path.subresource.is_empty()
        && on.shown().strategy.create_on_update()
        && object.resource_version().is_empty()
        && object.uid().is_empty()
}

/// What a writer expects to find.
#[derive(Clone, Debug, Default)]
pub struct Precondition {
    /// `metadata.uid`, unless empty.
    pub uid: String,
    /// `metadata.resourceVersion`, unless empty.
    pub version: String,
}

impl Precondition {
    /// What an object that is sent says.
    pub fn of(object: &Value) -> Self {
        Self { uid: object.uid().to_owned(), version: object.resource_version().to_owned() }
    }
}

/// Changes the object of the path.
pub async fn change(
    on: On<'_>,
    options: &WriteOptions,
    expected: Precondition,
    make: &(dyn Fn(&Value) -> Result<Changed, Status> + Send + Sync),
) -> Result<Answer, Status> {
    let span = on.storage_span("GuaranteedUpdate etcd3", &on.path.name, true);
    let key = on.key(&on.path.name);
    for _ in 0..TRIES {
        let stored = on.core().store.get(&key).ok_or_else(|| on.not_found())?;
        span.event("initial value restored");
        let live = answer::value(on.resource, &stored);
        check(on, &expected, &live)?;
        let (object, managers) = make(&live)?;
        let object = admit(on, options, object, &live, managers).await?;
        match write(on, options, &stored, object, &span).await {
            Err(WriteError::Conflict { .. }) if expected.version.is_empty() => {}
            Err(WriteError::Conflict { .. }) => return Err(Status::modified(&on.collection(), &on.path.name)),
            Err(WriteError::NotFound) => return Err(on.not_found()),
            Err(error) => return Err(Status::internal(error)),
            Ok(answer) => return Ok(answer),
        }
    }
    Err(Status::modified(&on.collection(), &on.path.name))
}

fn check(on: On<'_>, expected: &Precondition, live: &Value) -> Result<(), Status> {
    let (named, name) = (on.collection(), &on.path.name);
    if !expected.uid.is_empty() && expected.uid != live.uid() {
        let why =
            format!("Precondition failed: UID in precondition: {}, UID in object meta: {}", expected.uid, live.uid());
        return Err(Status::conflict(&named, name, &why));
    }
    if expected.version.is_empty() {
        return require_version(on);
    }
    if expected.version != live.resource_version() {
        return Err(Status::modified(&named, name));
    }
    Ok(())
}

/// Some kinds, and all custom ones, are never overwritten blindly by a PUT.
fn require_version(on: On<'_>) -> Result<(), Status> {
    if on.call.info.verb != "update" || on.shown().strategy.unconditional_update() {
        return Ok(());
    }
    let message = "Invalid value: 0: must be specified for an update";
    let error = field::Error::of("metadata.resourceVersion", field::Kind::Invalid, message);
    // The resource stands where every other refusal has the kind.
    let resource = GroupKind { group: Arc::clone(&on.resource.gv.group), kind: Arc::clone(&on.resource.plural) };
    Err(Status::invalid(&resource, &on.path.name, &[error]))
}

/// Everything between what a writer wants and what is stored.
async fn admit(
    on: On<'_>,
    options: &WriteOptions,
    mut object: Value,
    live: &Value,
    managers: Managers,
) -> Result<Value, Status> {
    let strategy = &on.shown().strategy;
    strategy.default(&mut object);
    carry_over(on, &mut object, live);
    set_meta(&mut object, "resourceVersion", live.resource_version());
    prepare(on, &mut object, live);
    if managers == Managers::Update {
        on.writer(options).owner(on).update(Some(live), &mut object);
    }
    mutate(on, options, &mut object, live).await?;
    strategy.default(&mut object);
    // A webhook may have put back what the writer changed.
    metadata::restore(&mut object, live, "generation");
    prepare(on, &mut object, live);
    validate::update(on, &object, live)?;
    validate::escalation(on, &object, Some(live)).await?;
    validate::signer(on, &object, live).await?;
    ask(on, options, &object, live).await?;
    keep_times(live, &mut object);
    Ok(object)
}

/// Mutating admission. Of a part with a kind of its own, webhooks see that kind; bindings have been seen before.
async fn mutate(on: On<'_>, options: &WriteOptions, object: &mut Value, live: &Value) -> Result<(), Status> {
    match on.path.subresource.as_str() {
        "scale" => scale::mutate(on, options, object, live).await,
        "binding" => Ok(()),
        _ => on.core().admission.mutate(&on.review(Operation::Update, options), object, Some(live)).await,
    }
}

/// Validating admission, as above.
async fn ask(on: On<'_>, options: &WriteOptions, object: &Value, live: &Value) -> Result<(), Status> {
    match on.path.subresource.as_str() {
        "scale" => scale::ask(on, options, object, live).await,
        "binding" => Ok(()),
        _ => on.core().admission.validate(&on.review(Operation::Update, options), Some(object), Some(live)).await,
    }
}

async fn write(
    on: On<'_>,
    options: &WriteOptions,
    stored: &Arc<Stored>,
    object: Value,
    span: &Span,
) -> Result<Answer, WriteError> {
    if options.dry_run {
        return Ok(Answer::Object(StatusCode::OK, object));
    }
    span.event("About to Encode");
    let length = if span.is_recording() { stored.body.len() } else { 0 };
    span.event_with("Encode succeeded", &[("len", length.into())]);
    span.event("TransformToStorage succeeded");
    span.event("Transaction prepared");
    let transaction = on.transaction(span, WRITE);
    let written = if is_gone(&object) {
        // The last finalizer went: so does the object. The answer is what it was last.
        on.core().store.delete(&stored.key, stored.revision, None).await?;
        Answer::Object(StatusCode::OK, object)
    } else {
        let stored = on.core().store.update(&stored.key, stored.revision, object).await?;
        Answer::Stored(StatusCode::OK, stored)
    };
    transaction.end();
    span.event("Txn call completed");
    span.event("Transaction committed");
    span.event_with("Decode succeeded", &[("len", length.into())]);
    span.end();
    Ok(written)
}

/// The name in the body must be there and the path's.
pub fn check_place(on: On<'_>, object: &Value) -> Result<(), Status> {
    let (name, given) = (&on.path.name, object.name());
    if given.is_empty() {
        let message = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(message));
    }
    if given != name {
        let message = format!("the name of the object ({given}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(message));
    }
    let namespace = object.namespace();
    if on.resource.namespaced && !namespace.is_empty() && namespace != on.namespace() {
        let (given, wanted) = (namespace, on.namespace());
        let message =
            format!("the namespace of the object ({given}) does not match the namespace on the URL ({wanted})");
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// What a writer leaves out, or may not change, comes from what is stored.
fn carry_over(on: On<'_>, object: &mut Value, live: &Value) {
    if on.resource.namespaced {
        set_meta(object, "namespace", on.namespace());
    }
    metadata::prepare_update(object, live);
}

/// Keeps what this path may not change. A binding has changed no more than it may.
fn prepare(on: On<'_>, object: &mut Value, live: &Value) {
    if on.path.subresource != "binding" {
        on.shown().strategy.prepare_update(object, live, &on.path.subresource);
    }
}
