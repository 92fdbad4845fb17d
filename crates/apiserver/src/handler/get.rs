//! GET of one object, and of a collection.

use std::sync::Arc;

use http::StatusCode;

use super::{
    answer::{Answer, Listing},
    call::On,
    filter::Filter,
};
use crate::{
    api::{
        Status,
        status::{Cause, Details},
    },
    codec::query::{Continue, ListOptions, VersionMatch},
    store::{At, ListError, ListQuery, Listed, Stored},
    trace::{Kind, Scope},
};

/// Reads one object.
pub fn get(on: On<'_>) -> Result<Answer, Status> {
    on.span.event("About to Get from storage");
    let stored = read(on)?;
    on.span.event("About to write a response");
    Ok(Answer::Stored(StatusCode::OK, stored))
}

/// The object of the path.
pub fn read(on: On<'_>) -> Result<Arc<Stored>, Status> {
    let span = on.storage_span("Get etcd3", &on.path.name, false);
    let transaction = span.child(Scope::Store, Kind::Client, "etcdserverpb.KV/Range");
    on.describe_transaction(&transaction, "etcdserverpb.KV/Range");
    let stored = on.core().store.get(&on.key(&on.path.name));
    transaction.end();
    span.event("Get call succeeded");
    let stored = stored.ok_or_else(|| on.not_found())?;
    span.event("TransformFromStorage succeeded");
    span.event_with("Decode succeeded", &[("len", stored.body.len().into())]);
    Ok(stored)
}

/// Reads a page of a collection.
pub fn list(on: On<'_>, options: &ListOptions) -> Result<Answer, Status> {
    let filter = Filter::new(on, options)?;
    let span = on.span.step("cacher.GetList");
    if span.is_recording() {
        span.set("audit-id", &on.call.audit_id);
        span.set("type", on.named().to_string().as_str());
        let transaction = span.child(Scope::Store, Kind::Client, "etcdserverpb.KV/Range");
        on.describe_transaction(&transaction, "etcdserverpb.KV/Range");
    }
    let listed = page(on, options, &filter)?;
    describe(&span, &listed);
    span.end();
    Ok(Answer::List(listing(options, &filter, listed)))
}

/// What kube-apiserver says of a list that comes from its cache.
fn describe(span: &crate::trace::Span, listed: &Listed) {
    for event in
        ["Ready", "getCurrentRV success", "watchCache locked acquired", "watchCache fresh enough", "GetLatestSnapshotOrBuildLocked success"]
    {
        span.event(event);
    }
    let count = listed.items.len().into();
    span.event_with("Listed items from cache", &[("count", count)]);
    span.event_with("Filtered items", &[("count", listed.items.len().into())]);
}

/// All objects that fit, on as many pages as asked for.
pub fn page(on: On<'_>, options: &ListOptions, filter: &Filter) -> Result<Listed, Status> {
    let (at, after) = place(options);
    let limit = options.limit;
    let query = ListQuery { namespace: filter.namespace().cloned(), at, after, limit };
    on.core().store.list(&on.collection(), &query, &|stored| filter.fits(stored)).map_err(|error| refuse(options, error))
}

fn place(options: &ListOptions) -> (At, Option<String>) {
    if let Some(token) = &options.continuation {
        let at = token.revision.map_or(At::Now, At::Exact);
        return (at, Some(token.after.clone()));
    }
    match (options.resource_version, options.version_match) {
        (None | Some(0), _) => (At::Now, None),
        (Some(revision), Some(VersionMatch::Exact)) => (At::Exact(revision), None),
        (Some(revision), _) => (At::NotOlderThan(revision), None),
    }
}

fn listing(options: &ListOptions, filter: &Filter, listed: Listed) -> Listing {
    let revision = match &options.continuation {
        // A page of a list that is no longer consistent is of now.
        Some(token) => token.revision.unwrap_or(listed.revision),
        None => listed.revision,
    };
    let more = listed.more.as_ref();
    let continuation = more.map(|more| Continue { revision: Some(revision), after: more.after.clone() }.encode());
    // What a selector leaves of the rest is not known.
    let remaining = more.filter(|_| filter.is_everything()).map(|more| more.remaining as u64);
    Listing { items: listed.items, revision, continuation, remaining }
}

fn refuse(options: &ListOptions, error: ListError) -> Status {
    match (error, &options.continuation) {
        (ListError::TooOld { .. }, Some(token)) => {
            let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list \
                           without the continue parameter, or use the continue token in this response to retrieve the remainder of \
                           the results. Continuing with the provided token results in an inconsistent list - objects that were \
                           created, modified, or deleted between the time the first chunk was returned and now may show up in the \
                           list.";
            let mut status = Status::expired(message);
            status.continuation = Some(Continue { revision: None, after: token.after.clone() }.encode());
            status
        }
        (ListError::TooOld { asked, oldest }, None) => {
            Status::expired(format!("The resourceVersion for the provided list is too old. ({asked} < {oldest})"))
        }
        (ListError::Future { asked, newest }, _) => too_large(asked, newest),
    }
}

/// kube-apiserver waits for a moment and then gives up; here nothing can arrive that late.
pub fn too_large(asked: u64, newest: u64) -> Status {
    let message = format!("Timeout: Too large resource version: {asked}, current: {newest}");
    let cause = Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        ..Cause::default()
    };
    let mut status = Status::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    status.retry_after = Some(1);
    status.with(Details { causes: vec![cause], ..Details::default() })
}
