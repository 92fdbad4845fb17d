//! PUT, and the update loop of everything else that changes an object: a change is applied to the stored
//! object, and again after a write conflict.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    call::ResourceRequest,
    decode,
    handler_response::{self, HandlerResponse},
    metadata::{OwnersSeen, dedup_owners},
    namespace_defaults, priority, scale, size_limit,
    spans::WRITE_TRANSACTION,
    validate,
};
use crate::{
    admission::AdmissionOperation,
    api::{
        GroupKind, StatusError, field, go_format,
        meta::{MetaAccessor, set_meta},
    },
    apply::keep_unchanged_times,
    codec::query::WriteOptions,
    crd::versions,
    kinds::metadata,
    server_state::is_ready_to_remove,
    store::{Stored, WriteError},
    trace::TraceSpan,
};

/// Concurrent writers take turns; this many conflicts in a row indicate a bug.
const MAX_CONFLICT_RETRIES: usize = 100;

/// How a change treats `managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagedFieldsMode {
    /// The writer owns the fields that change.
    Update,
    /// The change has recorded ownership itself, as apply does.
    Keep,
}

pub type ChangedObject = (Value, ManagedFieldsMode);

/// Replaces an object by the one in the body.
pub async fn update(
    on: ResourceRequest<'_>,
    body: &[u8],
    options: &WriteOptions,
) -> Result<HandlerResponse, StatusError> {
    on.record_body_read(body);
    on.span.add_event("About to convert to expected version");
    let mut object = decode::object(on, body, options)?;
    on.span.add_event("Conversion done");
    check_name_and_namespace(on, &object)?;
    dedup_owners(&mut object, OwnersSeen::Sent, &on.call.warnings);
    on.span.add_event("About to store object in database");
    let key = on.key(&on.path.name);
    let updated = if on.core().store.get(&key).is_none() && allows_create_on_update(on) {
        match object.uid() {
            "" => super::create::insert(on, object, options, true).await,
            uid => Err(uid_precondition_failed(on, uid, "")),
        }
    } else {
        guaranteed_update(on, options, Precondition::from_object(&object), &|_| {
            Ok((object.clone(), ManagedFieldsMode::Update))
        })
        .await
    };
    on.record_write_result(body, &updated);
    updated
}

/// Whether a PUT creates a missing object. A resourceVersion in the body does not prevent it, as in
/// kube-apiserver.
fn allows_create_on_update(on: ResourceRequest<'_>) -> bool {
    on.path.subresource.is_empty() && on.served_resource().strategy.create_on_update()
}

/// The precondition of a PUT, which is checked first. Patches have none: a uid or a resourceVersion in them is
/// part of the object that they make.
#[derive(Clone, Debug, Default)]
pub struct Precondition {
    /// `metadata.uid`, unless empty.
    pub uid: String,
}

impl Precondition {
    /// The preconditions in the object of a request.
    pub fn from_object(object: &Value) -> Self {
        Self { uid: object.uid().to_owned() }
    }
}

/// Changes the object of the path.
pub async fn guaranteed_update(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    expected: Precondition,
    make: &(dyn Fn(&Value) -> Result<ChangedObject, StatusError> + Send + Sync),
) -> Result<HandlerResponse, StatusError> {
    let span = on.storage_span("GuaranteedUpdate etcd3", &on.path.name, true);
    let key = on.key(&on.path.name);
    for _ in 0..MAX_CONFLICT_RETRIES {
        let stored = on.core().store.get(&key).ok_or_else(|| on.not_found())?;
        span.add_event("initial value restored");
        let live = handler_response::value(on.resource, &stored);
        if !expected.uid.is_empty() && expected.uid != live.uid() {
            return Err(uid_precondition_failed(on, &expected.uid, live.uid()));
        }
        let (object, managers) = make(&live)?;
        let mut object = admit(on, options, object, &live, managers).await?;
        if !options.dry_run {
            size_limit::enforce_size_limit(on, &mut object, &on.path.name, managers == ManagedFieldsMode::Keep)?;
        }
        match write(on, options, &stored, object, &span).await {
            // The next round reads the current object, and refuses a writer that expected the one before.
            Err(WriteError::Conflict { .. }) => {}
            Err(WriteError::NotFound) => return Err(on.not_found()),
            Err(error) => return Err(StatusError::internal(error)),
            Ok(answer) => return Ok(answer),
        }
    }
    Err(StatusError::modified(&on.collection(), &on.path.name))
}

/// The object has another uid than the PUT expects. The message is that of kube-apiserver's storage.
fn uid_precondition_failed(on: ResourceRequest<'_>, expected: &str, found: &str) -> StatusError {
    let key = on.registry_key(&on.path.name);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: {expected}, UID in object meta: {found}"
    );
    StatusError::conflict(&on.collection(), &on.path.name, &why)
}

/// Compares the resourceVersion of a changed object with the stored one. Without one, or with `0`, the change
/// is unconditional where the kind allows that.
fn check_version(on: ResourceRequest<'_>, object: &mut Value, live: &Value) -> Result<(), StatusError> {
    let given = match object.resource_version() {
        "" => 0,
        text => {
            let refuse = |why: String| StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why);
            go_format::parse_uint(text).map_err(refuse)?
        }
    };
    if given == 0 {
        require_version(on)?;
    } else if given.to_string() != live.resource_version() {
        return Err(StatusError::modified(&on.collection(), &on.path.name));
    }
    set_meta(object, "resourceVersion", live.resource_version());
    Ok(())
}

/// Some kinds, and all custom ones, require a resourceVersion.
fn require_version(on: ResourceRequest<'_>) -> Result<(), StatusError> {
    if on.served_resource().strategy.unconditional_update() {
        return Ok(());
    }
    let message = "Invalid value: 0: must be specified for an update";
    let error = field::FieldError::new("metadata.resourceVersion", field::FieldErrorType::Invalid, message);
    // The message has the resource where every other refusal has the kind.
    let resource = GroupKind { group: Arc::clone(&on.resource.gv.group), kind: Arc::clone(&on.resource.plural) };
    Err(StatusError::invalid(&resource, &on.path.name, &[error]))
}

/// The steps between a requested and a stored change, in kube-apiserver's order: mutating webhooks see the
/// request as it was sent, before the resourceVersion is compared and before the server restores fields that
/// the writer may not change.
async fn admit(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    mut object: Value,
    live: &Value,
    managers: ManagedFieldsMode,
) -> Result<Value, StatusError> {
    let strategy = &on.served_resource().strategy;
    strategy.default(&mut object);
    if on.resource.namespaced {
        set_meta(&mut object, "namespace", on.namespace());
    }
    if managers == ManagedFieldsMode::Update {
        on.update_managed_fields(options, Some(live), &mut object);
    }
    run_mutating_admission(on, options, &mut object, live).await?;
    dedup_owners(&mut object, OwnersSeen::Admitted, &on.call.warnings);
    strategy.default(&mut object);
    check_version(on, &mut object, live)?;
    metadata::prepare_update(&mut object, live);
    prepare_for_update(on, &mut object, live);
    validate::validate_update(on, &object, live)?;
    priority::validate(on, &object, false)?;
    namespace_defaults::validate(on, &object, Some(live))?;
    validate::check_escalation(on, &object, Some(live)).await?;
    validate::check_signer(on, &object, live).await?;
    keep_unchanged_times(live, &mut object);
    run_validating_admission(on, options, &object, live).await?;
    Ok(object)
}

/// Mutating admission. For subresources with a kind of their own, webhooks see that kind; bindings were
/// admitted before.
async fn run_mutating_admission(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    object: &mut Value,
    live: &Value,
) -> Result<(), StatusError> {
    match on.path.subresource.as_str() {
        "scale" => scale::run_mutating_admission(on, options, object, live).await,
        "binding" => Ok(()),
        _ => on.core().admission.mutate(&on.review(AdmissionOperation::Update, options), object, Some(live)).await,
    }
}

async fn run_validating_admission(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    object: &Value,
    live: &Value,
) -> Result<(), StatusError> {
    match on.path.subresource.as_str() {
        "scale" => scale::ask(on, options, object, live).await,
        "binding" => Ok(()),
        _ => {
            on.core()
                .admission
                .validate(&on.review(AdmissionOperation::Update, options), Some(object), Some(live))
                .await
        }
    }
}

async fn write(
    on: ResourceRequest<'_>,
    options: &WriteOptions,
    stored: &Arc<Stored>,
    mut object: Value,
    span: &TraceSpan,
) -> Result<HandlerResponse, WriteError> {
    if options.dry_run {
        return Ok(HandlerResponse::Object(StatusCode::OK, object));
    }
    if !is_ready_to_remove(&object) {
        versions::store(on.resource, &mut object);
        return Ok(HandlerResponse::Stored(StatusCode::OK, store_updated(on, stored, object, span).await?));
    }
    // The last finalizer is gone, so the object is removed. The response is its last state.
    let noted = TransactionSpans::begin(on, stored, span);
    on.core().store.delete(&stored.key, stored.revision, None).await?;
    noted.end();
    Ok(HandlerResponse::Object(StatusCode::OK, object))
}

/// Stores a changed object, and ends the span of the change.
pub async fn store_updated(
    on: ResourceRequest<'_>,
    old: &Stored,
    new: Value,
    span: &TraceSpan,
) -> Result<Arc<Stored>, WriteError> {
    let noted = TransactionSpans::begin(on, old, span);
    let stored = on.core().store.update(&old.key, old.revision, new).await?;
    noted.end();
    Ok(stored)
}

/// The transaction in the span of a change.
struct TransactionSpans<'a> {
    span: &'a TraceSpan,
    transaction: TraceSpan,
    length: usize,
}

impl<'a> TransactionSpans<'a> {
    fn begin(on: ResourceRequest<'_>, stored: &Stored, span: &'a TraceSpan) -> Self {
        span.add_event("About to Encode");
        let length = if span.is_recording() { stored.body.len() } else { 0 };
        span.add_event_with("Encode succeeded", &[("len", length.into())]);
        span.add_event("TransformToStorage succeeded");
        span.add_event("Transaction prepared");
        Self { span, transaction: on.transaction_span(span, WRITE_TRANSACTION), length }
    }

    fn end(self) {
        let Self { span, transaction, length } = self;
        transaction.end();
        span.add_event("Txn call completed");
        span.add_event("Transaction committed");
        span.add_event_with("Decode succeeded", &[("len", length.into())]);
        span.end();
    }
}

/// The namespace in the body must be that of the path, if given; the name is required and must be that of the
/// path.
pub fn check_name_and_namespace(on: ResourceRequest<'_>, object: &Value) -> Result<(), StatusError> {
    super::create::check_namespace_given(on, object)?;
    let name = &on.path.name;
    let given = object.name();
    if given.is_empty() {
        let message = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(StatusError::bad_request(message));
    }
    if given != name {
        let message = format!("the name of the object ({given}) does not match the name on the URL ({name})");
        return Err(StatusError::bad_request(message));
    }
    Ok(())
}

/// Restores fields that this path may not change. A binding has changed no more than it may.
fn prepare_for_update(on: ResourceRequest<'_>, object: &mut Value, live: &Value) {
    if on.path.subresource != "binding" {
        on.served_resource().strategy.prepare_update(object, live, &on.path.subresource);
    }
}
