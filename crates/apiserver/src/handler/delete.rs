//! DELETE of one object, and of a collection.
//!
//! An object with finalizers, or one that others are to be told about, is only marked; it goes when nothing keeps it any longer.

mod plan;

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use self::plan::Plan;
use super::{
    answer::{self, Answer, Listing},
    call::On,
    filter::Filter,
    get,
    spans::WRITE,
    update,
};
use crate::{
    api::{Status, meta::Meta},
    codec::{
        Media, content_type,
        query::{DeleteOptions, ListOptions, Query},
    },
    crd::versions,
    store::{Stored, WriteError},
};

/// As for updates.
const TRIES: usize = 100;

/// Deletes the object of the path.
pub async fn delete(on: On<'_>, body: &[u8], query: &Query<'_>) -> Result<Answer, Status> {
    on.note_body(body);
    let options = read_options(on, body, query)?;
    if !body.is_empty() {
        on.span.event("Decoded delete options");
        on.span.event("Recorded the audit event");
    }
    plan::warn(on, &options);
    on.span.event("About to delete object from database");
    let deleted = remove(on, &options).await?;
    on.span.event("Object deleted from database");
    Ok(match deleted {
        // Whoever asks for the dependents with the old option is told that the object is still there.
        Deleted::Marked(object) if options.orphan_dependents == Some(false) => {
            Answer::Object(StatusCode::ACCEPTED, object)
        }
        Deleted::Marked(object) => Answer::Object(StatusCode::OK, object),
        Deleted::Gone(object) if on.answers_deleted() => Answer::Object(StatusCode::OK, object),
        Deleted::Gone(object) => Answer::Object(StatusCode::OK, success(on, &object)),
    })
}

/// The options of a deletion. The content type matters only where there is content.
fn read_options(on: On<'_>, body: &[u8], query: &Query<'_>) -> Result<DeleteOptions, Status> {
    let media = match body.is_empty() {
        true => Media::Json,
        false => content_type::object(on.content_type())?,
    };
    DeleteOptions::read(query, media, body)
}

/// What became of an object.
#[derive(Debug)]
pub enum Deleted {
    /// It waits for its finalizers, or for the end of its grace period.
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
        plan::check(on, options, &live)?;
        let unchanged = live.clone();
        let plan = plan::plan(on, options, live);
        if matches!(plan, Plan::Nothing) {
            return Ok(Deleted::Marked(unchanged));
        }
        admit(on, options, &unchanged).await?;
        if options.dry_run {
            return Ok(plan.outcome(unchanged));
        }
        match write(on, &stored, plan).await {
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
async fn write(on: On<'_>, stored: &Arc<Stored>, plan: Plan) -> Result<Deleted, WriteError> {
    match plan {
        Plan::Nothing => Ok(Deleted::Marked(answer::value(on.resource, stored))),
        Plan::Mark(object) => Ok(Deleted::Marked(answer::value(on.resource, &*mark(on, stored, object).await?))),
        Plan::MarkAndRemove(object) => {
            let marked = mark(on, stored, object).await?;
            let object = answer::value(on.resource, &marked);
            erase(on, &marked, object).await
        }
        Plan::Remove(object) => erase(on, stored, object).await,
    }
}

/// Stores that an object is being deleted.
async fn mark(on: On<'_>, stored: &Stored, mut object: Value) -> Result<Arc<Stored>, WriteError> {
    let span = on.storage_span("GuaranteedUpdate etcd3", &on.path.name, true);
    span.event("initial value restored");
    versions::store(on.resource, &mut object);
    update::put_changed(on, stored, object, &span).await
}

async fn erase(on: On<'_>, stored: &Stored, object: Value) -> Result<Deleted, WriteError> {
    let _transaction = on.transaction(on.span, WRITE);
    // The last state of a custom resource is what is stored, in whichever version it was deleted.
    let last = on.resource.custom.is_none().then_some(object);
    let gone = on.core().store.delete(&stored.key, stored.revision, last).await?;
    Ok(Deleted::Gone(answer::value(on.resource, &gone)))
}

/// Deletes all objects that fit, one by one, and answers with them as they were.
pub async fn delete_collection(on: On<'_>, body: &[u8], query: &Query<'_>) -> Result<Answer, Status> {
    let list = &ListOptions::from_query(query)?;
    let filter = Filter::new(on, list)?;
    on.note_body(body);
    let options = &read_options(on, body, query)?;
    plan::warn(on, options);
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

/// The namespaces and priority classes that the server itself needs stay.
fn protect(on: On<'_>) -> Result<(), Status> {
    let why = match (&*on.resource.gv.group, &*on.resource.plural, on.path.name.as_str()) {
        ("", "namespaces", "default" | "kube-public" | "kube-system") => "this namespace may not be deleted",
        ("scheduling.k8s.io", "priorityclasses", "system-node-critical" | "system-cluster-critical") => {
            "this is a system priority class and cannot be deleted"
        }
        _ => return Ok(()),
    };
    Err(Status::forbidden(&on.collection(), &on.path.name, why))
}
