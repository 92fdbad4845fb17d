//! DELETE of one object, and of a collection.
//!
//! An object with finalizers, or one that others are to be told about, is only marked; it goes when nothing keeps it any longer.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    answer::{self, Answer, Listing},
    call::On,
    filter::Filter,
    get, metadata,
    spans::WRITE,
};
use crate::{
    api::{Status, meta::Meta, status::Details},
    codec::query::{DeleteOptions, ListOptions, Propagation},
    core::has_namespace_finalizers,
    crd::versions,
    store::WriteError,
};

/// As for updates.
const TRIES: usize = 100;
/// The garbage collector looks after these two.
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Deletes the object of the path.
pub async fn delete(on: On<'_>, body: &[u8], options: &DeleteOptions) -> Result<Answer, Status> {
    on.note_body(body);
    on.span.event("About to delete object from database");
    let deleted = remove(on, options).await?;
    on.span.event("Object deleted from database");
    Ok(match deleted {
        Deleted::Marked(object) => Answer::Object(StatusCode::OK, object),
        Deleted::Gone(object) if on.answers_deleted() => Answer::Object(StatusCode::OK, object),
        Deleted::Gone(object) => Answer::Object(StatusCode::OK, success(on, &object)),
    })
}

/// What became of an object.
#[derive(Debug)]
pub enum Deleted {
    /// It waits for its finalizers.
    Marked(Value),
    /// It is gone; this is what it was last.
    Gone(Value),
}

fn success(on: On<'_>, object: &Value) -> Value {
    let mut details = json!({ "name": object.name(), "kind": &*on.resource.plural, "uid": object.uid() });
    if let Some(details) = details.as_object_mut().filter(|_| !on.resource.gv.group.is_empty()) {
        details.insert("group".into(), (*on.resource.gv.group).into());
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

/// Deletes an object, whoever asks for it.
pub async fn remove(on: On<'_>, options: &DeleteOptions) -> Result<Deleted, Status> {
    protect(on)?;
    for _ in 0..TRIES {
        let stored = get::read(on)?;
        let live = answer::value(on.resource, &stored);
        check(on, options, &live)?;
        admit(on, options, &live).await?;
        let outcome = plan(on, options, live);
        if options.dry_run {
            return Ok(outcome);
        }
        match write_outcome(on, &stored, outcome).await {
            Ok(deleted) => return Ok(deleted),
            Err(WriteError::Conflict { .. }) => {}
            Err(WriteError::NotFound) => return Err(on.not_found()),
            Err(error) => return Err(Status::internal(error)),
        }
    }
    Err(Status::modified(&on.collection(), &on.path.name))
}

/// What webhooks say of a deletion. They have seen an eviction before it became one.
async fn admit(on: On<'_>, options: &DeleteOptions, live: &Value) -> Result<(), Status> {
    if !on.path.subresource.is_empty() {
        return Ok(());
    }
    let (admission, review) = (&on.core().admission, on.review_delete(options));
    admission.mutate(&review, &mut Value::Null, Some(live)).await?;
    admission.validate(&review, None, Some(live)).await
}

/// Writes it, and gives back what was written.
async fn write_outcome(on: On<'_>, stored: &crate::store::Stored, outcome: Deleted) -> Result<Deleted, WriteError> {
    let _transaction = on.transaction(on.span, WRITE);
    match outcome {
        Deleted::Gone(object) => {
            // The last state of a custom resource is what is stored, in whichever version it was deleted.
            let last = on.resource.custom.is_none().then_some(object);
            let gone = on.core().store.delete(&stored.key, stored.revision, last).await?;
            Ok(Deleted::Gone(answer::value(on.resource, &gone)))
        }
        Deleted::Marked(mut object) => {
            versions::store(on.resource, &mut object);
            let marked = on.core().store.update(&stored.key, stored.revision, object).await?;
            Ok(Deleted::Marked(answer::value(on.resource, &marked)))
        }
    }
}

fn check(on: On<'_>, options: &DeleteOptions, live: &Value) -> Result<(), Status> {
    let conflict = |why: String| {
        let message = format!("Operation cannot be fulfilled on {} {:?}: {why}", on.resource.kind, on.path.name);
        let details = Details {
            name: on.path.name.clone(),
            group: on.resource.gv.group.to_string(),
            kind: on.resource.kind.to_string(),
            ..Details::default()
        };
        Status::new(StatusCode::CONFLICT, "Conflict", message).with(details)
    };
    let (uid, version) = (live.uid(), live.resource_version());
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        return Err(conflict(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted \
             and then recreated"
        )));
    }
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({version}). The object \
             might have been modified"
        )));
    }
    Ok(())
}

/// What a deletion makes of an object.
fn plan(on: On<'_>, options: &DeleteOptions, mut object: Value) -> Deleted {
    let now = on.core().now();
    match options.propagation() {
        Some(Propagation::Foreground) => {
            metadata::set_finalizer(&mut object, ORPHAN, false);
            metadata::set_finalizer(&mut object, FOREGROUND, true);
        }
        Some(Propagation::Orphan) => {
            metadata::set_finalizer(&mut object, FOREGROUND, false);
            metadata::set_finalizer(&mut object, ORPHAN, true);
        }
        Some(Propagation::Background) => {
            metadata::set_finalizer(&mut object, FOREGROUND, false);
            metadata::set_finalizer(&mut object, ORPHAN, false);
        }
        None => {}
    }
    if !object.is_deleting() {
        on.shown().strategy.prepare_delete(&mut object, &now);
    }
    if has_namespace_finalizers(&object) {
        metadata::mark_deleted(&mut object, &now, None);
        super::subresource::mark_terminating(&mut object);
        return Deleted::Marked(object);
    }
    if on.collection() == crate::controller::definitions::collection() {
        metadata::mark_deleted(&mut object, &now, None);
        return Deleted::Marked(object);
    }
    let grace = on.shown().strategy.grace_period(&object, options.grace_period_seconds);
    let graceful = grace.is_some_and(|grace| grace > 0);
    if graceful || object.finalizers().next().is_some() {
        metadata::mark_deleted(&mut object, &now, Some(grace.unwrap_or(0)));
        return Deleted::Marked(object);
    }
    if on.answers_deleted() {
        metadata::mark_deleted(&mut object, &now, Some(0));
    }
    Deleted::Gone(object)
}

/// Deletes all objects that fit, one by one, and answers with them as they were.
pub async fn delete_collection(on: On<'_>, list: &ListOptions, options: &DeleteOptions) -> Result<Answer, Status> {
    let filter = Filter::new(on, list)?;
    let listed = get::traced_page(on, list, &filter)?;
    for item in &listed.items {
        let path = crate::http::ResourcePath {
            name: item.key.name.to_string(),
            namespace: item.key.namespace.to_string(),
            ..on.path.clone()
        };
        let one = On { path: &path, ..on };
        match remove(one, options).await {
            Err(status) if status.code != 404 => return Err(status),
            _ => {}
        }
    }
    // One page, if that was asked for, with where the next one begins.
    Ok(Answer::List(match list.limit > 0 {
        true => get::listing(&filter, listed),
        false => Listing { items: listed.items, revision: listed.revision, continuation: None, remaining: None },
    }))
}

/// The namespaces that the server itself needs stay.
fn protect(on: On<'_>) -> Result<(), Status> {
    let is_namespace = on.resource.gv.group.is_empty() && &*on.resource.plural == "namespaces";
    if is_namespace && matches!(on.path.name.as_str(), "default" | "kube-public" | "kube-system") {
        return Err(Status::forbidden(&on.collection(), &on.path.name, "this namespace may not be deleted"));
    }
    Ok(())
}
