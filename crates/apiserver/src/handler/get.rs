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
    codec::query::{Continue, GetOptions, ListOptions, VersionMatch},
    store::{At, ListError, ListQuery, Listed, Stored},
};

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                                list without the continue parameter, or use the continue token in this response to retrieve the \
                                remainder of the results. Continuing with the provided token results in an inconsistent list - \
                                objects that were created, modified, or deleted between the time the first chunk was returned and \
                                now may show up in the list.";
const VERSION_EXPIRED: &str = "The resourceVersion for the provided list is too old.";

/// Reads one object: of now, or as kube-apiserver's cache would have it, which is at least of the version that is asked for.
pub fn get(on: On<'_>, options: &GetOptions) -> Result<Answer, Status> {
    on.span.event("About to Get from storage");
    let Some(asked) = options.version()? else { return Ok(Answer::Stored(StatusCode::OK, read(on)?)) };
    let span = on.cache_span("cacher.Get");
    if span.is_recording() {
        span.set("key", &on.storage_key(&on.path.name));
        span.set("resource-version", &options.resource_version);
    }
    span.event("watchCache locked acquired");
    let newest = on.core().store.revision();
    if asked > newest {
        span.discard();
        return Err(too_large(asked, newest));
    }
    span.event("watchCache fresh enough");
    let stored = on.core().store.get(&on.key(&on.path.name));
    span.event("GetByKey success");
    Ok(Answer::Stored(StatusCode::OK, stored.ok_or_else(|| on.not_found())?))
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

/// How kube-apiserver's cache finds a list, which its spans tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lookup {
    /// The newest state, after the newest revision was asked of etcd.
    Consistent,
    /// Any state that is not older than a revision.
    Latest,
    /// The state of a revision.
    Exact,
}

impl Lookup {
    fn of(options: &ListOptions) -> Self {
        match options.resource_version.as_str() {
            _ if !options.continue_token.is_empty() => match Continue::decode(&options.continue_token) {
                Ok(Continue { resource_version: None, .. }) => Self::Consistent,
                _ => Self::Exact,
            },
            "" => Self::Consistent,
            _ if options.resource_version_match == Some(VersionMatch::Exact) => Self::Exact,
            version if version != "0" && options.limit > 0 && options.resource_version_match.is_none() => Self::Exact,
            _ => Self::Latest,
        }
    }
}

/// A page, and the span of reading it.
pub fn traced_page(on: On<'_>, options: &ListOptions, filter: &Filter) -> Result<Listed, Status> {
    // What cannot be looked up never comes to the cache, and has no span there.
    let place = place(options, filter)?;
    let lookup = Lookup::of(options);
    let span = on.cache_span("cacher.GetList");
    if span.is_recording() {
        span.set("type", on.collection().to_string().as_str());
        if lookup == Lookup::Consistent {
            on.transaction(&span, READ).end();
        }
    }
    let listed = page(on, options, filter, place).map_err(|error| {
        span.event("Ready");
        span.event("watchCache locked acquired");
        if matches!(error, ListError::TooOld { .. }) {
            span.event("watchCache fresh enough");
        }
        refuse(options, error)
    })?;
    describe(&span, lookup, filter, &listed);
    Ok(listed)
}

/// What kube-apiserver says of a list that comes from its cache.
fn describe(span: &crate::trace::Span, lookup: Lookup, filter: &Filter, listed: &Listed) {
    span.event("Ready");
    let single = filter.is_single();
    if lookup == Lookup::Consistent && !single {
        span.event("getCurrentRV success");
    }
    span.event("watchCache locked acquired");
    span.event("watchCache fresh enough");
    span.event(match lookup {
        _ if single => "GetByKey success",
        Lookup::Exact => "GetExactSnapshotLocked success",
        Lookup::Consistent | Lookup::Latest => "GetLatestSnapshotOrBuildLocked success",
    });
    let count = listed.items.len();
    span.event_with("Listed items from cache", &[("count", count.into())]);
    if !filter.is_everything() && count > 0 {
        span.event("Resized result");
    }
    span.event_with("Filtered items", &[("count", count.into())]);
}

/// The objects that fit, of the page that is asked for.
fn page(on: On<'_>, options: &ListOptions, filter: &Filter, place: Place) -> Result<Listed, ListError> {
    let (at, after) = place;
    // Whoever takes any state at all gets all of it at once, as from kube-apiserver's cache. One name has no pages.
    let whole = options.resource_version == "0" || filter.is_single();
    let limit = usize::try_from(options.limit).ok().filter(|limit| *limit > 0 && !whole);
    let query = ListQuery { namespace: filter.namespace().cloned(), at, after, limit };
    on.core().store.list_where(&on.collection(), &query, &|stored| filter.fits(stored))
}

/// Which state, and after which key.
type Place = (At, Option<String>);

/// Where a page begins. Tokens name keys below the list's own prefix.
fn place(options: &ListOptions, filter: &Filter) -> Result<Place, Status> {
    // A list of one name has no pages.
    if !options.continue_token.is_empty() && !filter.is_single() {
        let token = Continue::decode(&options.continue_token)?;
        if !matches!(options.resource_version.as_str(), "" | "0") {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        let start = token.start.trim_end_matches('\0');
        let after = filter.namespace().map_or_else(|| start.to_owned(), |namespace| format!("{namespace}/{start}"));
        return Ok((token.resource_version.map_or(At::Now, At::Exact), Some(after)));
    }
    let at = match (options.version_of_list()?, options.resource_version_match) {
        (None | Some(0), _) => At::Now,
        (Some(revision), Some(VersionMatch::Exact)) => At::Exact(revision),
        // A page of a version is of exactly that version, unless the caller says otherwise.
        (Some(revision), None) if options.limit > 0 && !filter.is_single() => At::Exact(revision),
        (Some(revision), _) => At::NotOlderThan(revision),
    };
    Ok((at, None))
}

/// A page with where the next one begins.
pub(super) fn listing(filter: &Filter, listed: Listed) -> Listing {
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
