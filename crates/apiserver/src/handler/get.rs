//! GET of one object, and of a collection.

use std::sync::Arc;

use http::StatusCode;

use super::{
    answer::{Answer, Listing},
    call::On,
    filter::Filter,
    spans::READ,
};
use crate::{
    api::{
        Status,
        status::{Cause, Details},
    },
    codec::query::{Continue, ListOptions, VersionMatch},
    store::{At, ListError, ListQuery, Listed, Stored},
};

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                                list without the continue parameter, or use the continue token in this response to retrieve the \
                                remainder of the results. Continuing with the provided token results in an inconsistent list - \
                                objects that were created, modified, or deleted between the time the first chunk was returned and \
                                now may show up in the list.";
const VERSION_EXPIRED: &str = "The resourceVersion for the provided list is too old.";

/// Reads one object.
pub fn get(on: On<'_>) -> Result<Answer, Status> {
    on.span.event("About to Get from storage");
    let stored = read(on)?;
    Ok(Answer::Stored(StatusCode::OK, stored))
}

/// The object of the path.
pub fn read(on: On<'_>) -> Result<Arc<Stored>, Status> {
    find(on, &on.path.name).ok_or_else(|| on.not_found())
}

/// An object of the resource.
pub fn find(on: On<'_>, name: &str) -> Option<Arc<Stored>> {
    let span = on.storage_span("Get etcd3", name, false);
    let transaction = on.transaction(&span, READ);
    let stored = on.core().store.get(&on.key(name));
    transaction.end();
    span.event("Get call succeeded");
    if let Some(stored) = &stored {
        span.event("TransformFromStorage succeeded");
        span.event_with("Decode succeeded", &[("len", stored.body.len().into())]);
    }
    stored
}

/// Reads a page of a collection.
pub fn list(on: On<'_>, options: &ListOptions) -> Result<Answer, Status> {
    let filter = Filter::new(on, options)?;
    let listed = traced_page(on, options, &filter)?;
    Ok(Answer::List(listing(&filter, listed)))
}

/// A page, and the span of reading it.
pub fn traced_page(on: On<'_>, options: &ListOptions, filter: &Filter) -> Result<Listed, Status> {
    let span = on.span.step("cacher.GetList");
    if span.is_recording() {
        span.set("audit-id", &on.call.audit_id);
        span.set("type", on.collection().to_string().as_str());
        on.transaction(&span, READ).end();
    }
    let listed = page(on, options, filter)?;
    describe(&span, &listed);
    Ok(listed)
}

/// What kube-apiserver says of a list that comes from its cache.
fn describe(span: &crate::trace::Span, listed: &Listed) {
    for event in [
        "Ready",
        "getCurrentRV success",
        "watchCache locked acquired",
        "watchCache fresh enough",
        "GetLatestSnapshotOrBuildLocked success",
    ] {
        span.event(event);
    }
    let count = listed.items.len().into();
    span.event_with("Listed items from cache", &[("count", count)]);
    span.event_with("Filtered items", &[("count", listed.items.len().into())]);
}

/// The objects that fit, of the page that is asked for.
fn page(on: On<'_>, options: &ListOptions, filter: &Filter) -> Result<Listed, Status> {
    let (at, after) = place(options, filter)?;
    // Whoever takes any state at all gets all of it at once, as from kube-apiserver's cache.
    let any = options.resource_version == "0" && options.continue_token.is_empty();
    let limit = usize::try_from(options.limit).ok().filter(|limit| *limit > 0 && !any);
    let query = ListQuery { namespace: filter.namespace().cloned(), at, after, limit };
    let listed = on.core().store.list_where(&on.collection(), &query, &|stored| filter.fits(stored));
    listed.map_err(|error| refuse(options, error))
}

/// Which state, and after which key. Tokens name keys below the list's own prefix.
fn place(options: &ListOptions, filter: &Filter) -> Result<(At, Option<String>), Status> {
    if !options.continue_token.is_empty() {
        if options.resource_version.parse::<u64>().is_ok_and(|version| version > 0) {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let token = Continue::decode(&options.continue_token)?;
        let start = token.start.trim_end_matches('\0');
        let after = filter.namespace().map_or_else(|| start.to_owned(), |namespace| format!("{namespace}/{start}"));
        return Ok((token.resource_version.map_or(At::Now, At::Exact), Some(after)));
    }
    let at = match (options.version_of_list()?, options.resource_version_match) {
        (None | Some(0), _) => At::Now,
        (Some(revision), Some(VersionMatch::Exact)) => At::Exact(revision),
        (Some(revision), _) => At::NotOlderThan(revision),
    };
    Ok((at, None))
}

fn listing(filter: &Filter, listed: Listed) -> Listing {
    let more = listed.more.as_ref();
    let below = |key: &str| match filter.namespace() {
        Some(namespace) => key.strip_prefix(&**namespace).map_or(key, |rest| rest.trim_start_matches('/')).to_owned(),
        None => key.to_owned(),
    };
    let continuation = more.map(|more| Continue::after(Some(listed.revision), &below(&more.after)).encode());
    // What a selector leaves of the rest is not known.
    let remaining = more.filter(|_| filter.is_everything()).map(|more| more.remaining as u64);
    Listing { items: listed.items, revision: listed.revision, continuation, remaining }
}

fn refuse(options: &ListOptions, error: ListError) -> Status {
    let token = Continue::decode(&options.continue_token).ok();
    match (error, token) {
        (ListError::TooOld { .. }, Some(token)) => {
            let mut status = Status::expired(CONTINUE_EXPIRED);
            status.continuation = Some(Continue { resource_version: None, start: token.start }.encode());
            status
        }
        (ListError::TooOld { .. }, None) => Status::expired(VERSION_EXPIRED),
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
