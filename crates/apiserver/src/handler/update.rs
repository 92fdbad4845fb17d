//! PUT and everything else that changes an object: the change is made to what is stored now, and made again if somebody else was
//! faster.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    answer::{self, Answer},
    call::On,
    decode, priority, scale, size,
    spans::WRITE,
    validate,
};
use crate::{
    admission::Operation,
    api::{
        GroupKind, Status, field, go,
        meta::{Meta, set_meta},
    },
    apply::keep_times,
    codec::query::WriteOptions,
    core::is_gone,
    crd::versions,
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
    let updated = if on.core().store.get(&key).is_none() && creates(on) {
        match object.uid() {
            "" => super::create::insert(on, object, options, true).await,
            uid => Err(wrong_uid(on, uid, "")),
        }
    } else {
        change(on, options, Precondition::of(&object), &|_| Ok((object.clone(), Managers::Update))).await
    };
    on.note_write(body, &updated);
    updated
}

/// Whether a PUT creates what is not there. A resourceVersion in the body does not prevent it, as in kube-apiserver.
fn creates(on: On<'_>) -> bool {
    on.path.subresource.is_empty() && on.shown().strategy.create_on_update()
}

/// What a PUT expects to find before anything else is looked at. Patches have no such precondition: a uid or a resourceVersion in
/// them is part of the object that they make.
#[derive(Clone, Debug, Default)]
pub struct Precondition {
    /// `metadata.uid`, unless empty.
    pub uid: String,
}

impl Precondition {
    /// What an object that is sent says.
    pub fn of(object: &Value) -> Self {
        Self { uid: object.uid().to_owned() }
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
        if !expected.uid.is_empty() && expected.uid != live.uid() {
            return Err(wrong_uid(on, &expected.uid, live.uid()));
        }
        let (object, managers) = make(&live)?;
        let mut object = admit(on, options, object, &live, managers).await?;
        if !options.dry_run {
            size::fit(on, &mut object, &on.path.name, managers == Managers::Done)?;
        }
        match write(on, options, &stored, object, &span).await {
            // The next round sees what is there now, and whether the writer wanted exactly what was there before.
            Err(WriteError::Conflict { .. }) => {}
            Err(WriteError::NotFound) => return Err(on.not_found()),
            Err(error) => return Err(Status::internal(error)),
            Ok(answer) => return Ok(answer),
        }
    }
    Err(Status::modified(&on.collection(), &on.path.name))
}

/// The object of the path has another uid than a PUT says, in the words of kube-apiserver's storage.
fn wrong_uid(on: On<'_>, expected: &str, found: &str) -> Status {
    let key = on.registry_key(&on.path.name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: {expected}, UID in object meta: {found}"
    );
    Status::conflict(&on.collection(), &on.path.name, &why)
}

/// Compares the resourceVersion of a changed object with the stored one. Without one, or with `0`, the change is unconditional where
/// the kind allows that.
fn check_version(on: On<'_>, object: &mut Value, live: &Value) -> Result<(), Status> {
    let given = match object.resource_version() {
        "" => 0,
        text => {
            let refuse = |why: String| Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", why);
            go::parse_uint(text).map_err(refuse)?
        }
    };
    if given == 0 {
        require_version(on)?;
    } else if given.to_string() != live.resource_version() {
        return Err(Status::modified(&on.collection(), &on.path.name));
    }
    set_meta(object, "resourceVersion", live.resource_version());
    Ok(())
}

/// Some kinds, and all custom ones, are never overwritten blindly.
fn require_version(on: On<'_>) -> Result<(), Status> {
    if on.shown().strategy.unconditional_update() {
        return Ok(());
    }
    let message = "Invalid value: 0: must be specified for an update";
    let error = field::Error::of("metadata.resourceVersion", field::Kind::Invalid, message);
    // The resource stands where every other refusal has the kind.
    let resource = GroupKind { group: Arc::clone(&on.resource.gv.group), kind: Arc::clone(&on.resource.plural) };
    Err(Status::invalid(&resource, &on.path.name, &[error]))
}

/// Everything between what a writer wants and what is stored, in kube-apiserver's order: mutating webhooks see what the writer sent,
/// before the resourceVersion is compared and before the server keeps what the writer may not change.
async fn admit(
    on: On<'_>,
    options: &WriteOptions,
    mut object: Value,
    live: &Value,
    managers: Managers,
) -> Result<Value, Status> {
    let strategy = &on.shown().strategy;
    strategy.default(&mut object);
    if on.resource.namespaced {
        set_meta(&mut object, "namespace", on.namespace());
    }
    if managers == Managers::Update {
        on.manage(options, Some(live), &mut object);
    }
    mutate(on, options, &mut object, live).await?;
    strategy.default(&mut object);
    check_version(on, &mut object, live)?;
    metadata::prepare_update(&mut object, live);
    prepare(on, &mut object, live);
    validate::update(on, &object, live)?;
    priority::validate(on, &object, false)?;
    validate::escalation(on, &object, Some(live)).await?;
    validate::signer(on, &object, live).await?;
    keep_times(live, &mut object);
    ask(on, options, &object, live).await?;
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
    mut object: Value,
    span: &Span,
) -> Result<Answer, WriteError> {
    if options.dry_run {
        return Ok(Answer::Object(StatusCode::OK, object));
    }
    if !is_gone(&object) {
        versions::store(on.resource, &mut object);
        return Ok(Answer::Stored(StatusCode::OK, put_changed(on, stored, object, span).await?));
    }
    // The last finalizer went: so does the object. The answer is what it was last.
    let noted = Noted::begin(on, stored, span);
    on.core().store.delete(&stored.key, stored.revision, None).await?;
    noted.end();
    Ok(Answer::Object(StatusCode::OK, object))
}

/// Stores an object that has changed, and ends the span of its change.
pub async fn put_changed(on: On<'_>, old: &Stored, new: Value, span: &Span) -> Result<Arc<Stored>, WriteError> {
    let noted = Noted::begin(on, old, span);
    let stored = on.core().store.update(&old.key, old.revision, new).await?;
    noted.end();
    Ok(stored)
}

/// What the span of a change tells of its transaction.
struct Noted<'a> {
    span: &'a Span,
    transaction: Span,
    length: usize,
}

impl<'a> Noted<'a> {
    fn begin(on: On<'_>, stored: &Stored, span: &'a Span) -> Self {
        span.event("About to Encode");
        let length = if span.is_recording() { stored.body.len() } else { 0 };
        span.event_with("Encode succeeded", &[("len", length.into())]);
        span.event("TransformToStorage succeeded");
        span.event("Transaction prepared");
        Self { span, transaction: on.transaction(span, WRITE), length }
    }

    fn end(self) {
        let Self { span, transaction, length } = self;
        transaction.end();
        span.event("Txn call completed");
        span.event("Transaction committed");
        span.event_with("Decode succeeded", &[("len", length.into())]);
        span.end();
    }
}

/// The namespace in the body must be the path's if it is there; the name must be there, and the path's.
pub fn check_place(on: On<'_>, object: &Value) -> Result<(), Status> {
    super::create::check_namespace_given(on, object)?;
    let (name, given) = (&on.path.name, object.name());
    if given.is_empty() {
        let message = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(message));
    }
    if given != name {
        let message = format!("the name of the object ({given}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// Keeps what this path may not change. A binding has changed no more than it may.
fn prepare(on: On<'_>, object: &mut Value, live: &Value) {
    if on.path.subresource != "binding" {
        on.shown().strategy.prepare_update(object, live, &on.path.subresource);
    }
}
