//! DELETE of one object, and of a collection.
//!
//! An object with finalizers or a grace period is only marked as deleted, and so are namespaces and CRDs; it is
//! removed when nothing keeps it any longer.

mod plan;

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use self::plan::DeletionPlan;
use super::{
    call::ResourceRequest,
    get,
    handler_response::{self, HandlerResponse, ListPage},
    selection_predicate::SelectionPredicate,
    spans::WRITE_TRANSACTION,
    update,
};
use crate::{
    api::{StatusError, meta::MetaAccessor},
    codec::{
        MediaType, content_type,
        query::{DeleteOptions, ListOptions, QueryParameters},
    },
    crd::versions,
    store::{Stored, WriteError},
};

const MAX_CONFLICT_RETRIES: usize = 100;

/// Deletes the object of the path.
pub async fn delete(
    on: ResourceRequest<'_>,
    body: &[u8],
    query: &QueryParameters<'_>,
) -> Result<HandlerResponse, StatusError> {
    on.record_body_read(body);
    let options = read_options(on, body, query)?;
    if !body.is_empty() {
        on.span.add_event("Decoded delete options");
        on.span.add_event("Recorded the audit event");
    }
    plan::warn_job_dependents(on, &options);
    on.span.add_event("About to delete object from database");
    let deleted = delete_object(on, &options).await?;
    on.span.add_event("Object deleted from database");
    Ok(match deleted {
        // A request with the old option about dependents gets the object that still exists.
        DeletionOutcome::Marked(object) if options.orphan_dependents == Some(false) => {
            HandlerResponse::Object(StatusCode::ACCEPTED, object)
        }
        DeletionOutcome::Marked(object) => HandlerResponse::Object(StatusCode::OK, object),
        DeletionOutcome::Gone(object) if on.returns_deleted_object() => HandlerResponse::Object(StatusCode::OK, object),
        DeletionOutcome::Gone(object) => HandlerResponse::Object(StatusCode::OK, success(on, &object)),
    })
}

/// The options of a deletion. The content type matters only if there is a body.
fn read_options(
    on: ResourceRequest<'_>,
    body: &[u8],
    query: &QueryParameters<'_>,
) -> Result<DeleteOptions, StatusError> {
    let media = if body.is_empty() { MediaType::Json } else { content_type::object(on.content_type())? };
    DeleteOptions::from_request(query, media, body)
}

/// The outcome of a deletion.
#[derive(Debug)]
pub enum DeletionOutcome {
    /// The object waits for its finalizers, or for the end of its grace period.
    Marked(Value),
    /// The object is removed; this is its last state.
    Gone(Value),
}

fn success(on: ResourceRequest<'_>, object: &Value) -> Value {
    let mut details = json!({ "name": object.name(), "kind": &*on.resource.plural, "uid": object.uid() });
    if let Some(details) = details.as_object_mut().filter(|_| !on.resource.gv.group.is_empty()) {
        details.insert("group".into(), (*on.resource.gv.group).into());
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

/// Deletes an object, for a request or for a controller.
pub async fn delete_object(on: ResourceRequest<'_>, options: &DeleteOptions) -> Result<DeletionOutcome, StatusError> {
    check_protected(on)?;
    for _ in 0..MAX_CONFLICT_RETRIES {
        let stored = get::read_object(on)?;
        let live = handler_response::value(on.resource, &stored);
        plan::check_preconditions(on, options, &live)?;
        let unchanged = live.clone();
        let plan = plan::plan(on, options, live);
        if matches!(plan, DeletionPlan::Nothing) {
            return Ok(DeletionOutcome::Marked(unchanged));
        }
        run_validating_admission(on, options, &unchanged).await?;
        if options.dry_run {
            return Ok(plan.dry_run_outcome(unchanged));
        }
        match write(on, &stored, plan).await {
            Ok(deleted) => return Ok(deleted),
            Err(WriteError::Conflict { .. }) => {}
            Err(WriteError::NotFound) => return Err(on.not_found()),
            Err(error) => return Err(StatusError::internal(error)),
        }
    }
    Err(StatusError::modified(&on.collection(), &on.path.name))
}

/// Runs validating admission. An eviction was admitted before it became a deletion.
async fn run_validating_admission(
    on: ResourceRequest<'_>,
    options: &DeleteOptions,
    live: &Value,
) -> Result<(), StatusError> {
    if !on.path.subresource.is_empty() {
        return Ok(());
    }
    let admission = &on.core().admission;
    let review = on.admission_delete_request(options);
    admission.mutate(&review, &mut Value::Null, Some(live)).await?;
    admission.validate(&review, None, Some(live)).await
}

/// Writes the plan to the store, and returns what was written.
async fn write(
    on: ResourceRequest<'_>,
    stored: &Arc<Stored>,
    plan: DeletionPlan,
) -> Result<DeletionOutcome, WriteError> {
    match plan {
        DeletionPlan::Nothing => Ok(DeletionOutcome::Marked(handler_response::value(on.resource, stored))),
        DeletionPlan::Mark(object) => {
            Ok(DeletionOutcome::Marked(handler_response::value(on.resource, &*store_marked(on, stored, object).await?)))
        }
        DeletionPlan::MarkAndRemove(object) => {
            let marked = store_marked(on, stored, object).await?;
            remove_marked(on, marked).await
        }
        DeletionPlan::Remove(object) => remove_stored(on, stored, object).await,
    }
}

/// Stores an object that is marked as deleted.
async fn store_marked(on: ResourceRequest<'_>, stored: &Stored, mut object: Value) -> Result<Arc<Stored>, WriteError> {
    let span = on.storage_span("GuaranteedUpdate etcd3", &on.path.name, true);
    span.add_event("initial value restored");
    versions::store(on.resource, &mut object);
    update::store_updated(on, stored, object, &span).await
}

/// Removes an object that this request has marked as deleted. Whoever watches it, such as the kubelet of a pod, may
/// change or remove it first; then the deletion is done nevertheless.
async fn remove_marked(on: ResourceRequest<'_>, mut marked: Arc<Stored>) -> Result<DeletionOutcome, WriteError> {
    loop {
        let last = handler_response::value(on.resource, &marked);
        match remove_stored(on, &marked, last.clone()).await {
            Err(WriteError::NotFound) => return Ok(DeletionOutcome::Gone(last)),
            Err(WriteError::Conflict { .. }) => match get::read_object(on) {
                Ok(changed) if handler_response::value(on.resource, &changed).uid() == last.uid() => marked = changed,
                _ => return Ok(DeletionOutcome::Gone(last)),
            },
            removed => return removed,
        }
    }
}

async fn remove_stored(on: ResourceRequest<'_>, stored: &Stored, object: Value) -> Result<DeletionOutcome, WriteError> {
    let _transaction = on.transaction_span(on.span, WRITE_TRANSACTION);
    // The last state of a custom resource is the stored one, in whichever version it was deleted.
    let last = on.resource.custom.is_none().then_some(object);
    let gone = on.core().store.delete(&stored.key, stored.revision, last).await?;
    Ok(DeletionOutcome::Gone(handler_response::value(on.resource, &gone)))
}

/// Deletes all matching objects, one by one, and returns them as they were.
pub async fn delete_collection(
    on: ResourceRequest<'_>,
    body: &[u8],
    query: &QueryParameters<'_>,
) -> Result<HandlerResponse, StatusError> {
    let list = &ListOptions::from_query(query)?;
    let filter = SelectionPredicate::new(on, list)?;
    on.record_body_read(body);
    let options = &read_options(on, body, query)?;
    plan::warn_job_dependents(on, options);
    let listed = get::list_traced(on, list, &filter)?;
    for item in &listed.items {
        let path = crate::http::ResourcePath {
            name: item.key.name.to_string(),
            namespace: item.key.namespace.to_string(),
            ..on.path.clone()
        };
        let one = ResourceRequest { path: &path, ..on };
        match delete_object(one, options).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    // With a limit the response is one page, with a continue token.
    Ok(HandlerResponse::List(if list.limit > 0 {
        get::to_list_page(&filter, listed)
    } else {
        ListPage { items: listed.items, revision: listed.revision, continuation: None, remaining: None }
    }))
}

/// Refuses to delete the namespaces and priority classes that the server itself needs.
fn check_protected(on: ResourceRequest<'_>) -> Result<(), StatusError> {
    let why = match (&*on.resource.gv.group, &*on.resource.plural, on.path.name.as_str()) {
        ("", "namespaces", "default" | "kube-public" | "kube-system") => "this namespace may not be deleted",
        ("scheduling.k8s.io", "priorityclasses", "system-node-critical" | "system-cluster-critical") => {
            "this is a system priority class and cannot be deleted"
        }
        _ => return Ok(()),
    };
    Err(StatusError::forbidden(&on.collection(), &on.path.name, why))
}
