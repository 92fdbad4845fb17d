//! GET of one object, and of a collection.

use std::sync::Arc;

use http::StatusCode;

use super::{
    call::ResourceRequest,
    handler_response::{HandlerResponse, ListPage},
    selection_predicate::SelectionPredicate,
    spans::READ_TRANSACTION,
};
use crate::{
    api::{
        StatusError,
        status::{StatusCause, StatusDetails},
    },
    codec::query::{ContinueToken, GetOptions, ListOptions, ResourceVersionMatch},
    store::{ListError, ListQuery, ListResult, ListRevision, Stored},
};

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                                list without the continue parameter, or use the continue token in this response to retrieve the \
                                remainder of the results. Continuing with the provided token results in an inconsistent list - \
                                objects that were created, modified, or deleted between the time the first chunk was returned and \
                                now may show up in the list.";
const VERSION_EXPIRED: &str = "The resourceVersion for the provided list is too old.";

/// Reads one object: the newest state, or, like kube-apiserver's cache, any state that is at least of the
/// requested version.
pub fn get(on: ResourceRequest<'_>, options: &GetOptions) -> Result<HandlerResponse, StatusError> {
    on.span.add_event("About to Get from storage");
    let Some(asked) = options.get_resource_version()? else {
        return Ok(HandlerResponse::Stored(StatusCode::OK, read_object(on)?));
    };
    let span = on.cache_span("cacher.Get");
    if span.is_recording() {
        span.set_attribute("key", &on.storage_key(&on.path.name));
        span.set_attribute("resource-version", &options.resource_version);
    }
    span.add_event("watchCache locked acquired");
    let newest = on.core().store.revision();
    if asked > newest {
        span.discard();
        return Err(version_too_large_status(asked, newest));
    }
    span.add_event("watchCache fresh enough");
    let stored = on.core().store.get(&on.key(&on.path.name));
    span.add_event("GetByKey success");
    Ok(HandlerResponse::Stored(StatusCode::OK, stored.ok_or_else(|| on.not_found())?))
}

pub fn read_object(on: ResourceRequest<'_>) -> Result<Arc<Stored>, StatusError> {
    find(on, &on.path.name).ok_or_else(|| on.not_found())
}

/// Finds an object of the resource.
pub fn find(on: ResourceRequest<'_>, name: &str) -> Option<Arc<Stored>> {
    let span = on.storage_span("Get etcd3", name, false);
    let transaction = on.transaction_span(&span, READ_TRANSACTION);
    let stored = on.core().store.get(&on.key(name));
    transaction.end();
    span.add_event("Get call succeeded");
    if let Some(stored) = &stored {
        span.add_event("TransformFromStorage succeeded");
        span.add_event_with("Decode succeeded", &[("len", stored.body.len().into())]);
    }
    stored
}

pub fn list(on: ResourceRequest<'_>, options: &ListOptions) -> Result<HandlerResponse, StatusError> {
    let filter = SelectionPredicate::new(on, options)?;
    let listed = list_traced(on, options, &filter)?;
    Ok(HandlerResponse::List(to_list_page(&filter, listed)))
}

/// How kube-apiserver's cache looks up a list, which its spans record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheLookup {
    /// The newest state, after asking etcd for the newest revision.
    Consistent,
    /// Any state that is not older than a revision.
    Latest,
    /// The state at a revision.
    Exact,
}

impl CacheLookup {
    fn from_options(options: &ListOptions) -> Self {
        match options.resource_version.as_str() {
            _ if !options.continue_token.is_empty() => match ContinueToken::decode(&options.continue_token) {
                Ok(ContinueToken { resource_version: None, .. }) => Self::Consistent,
                _ => Self::Exact,
            },
            "" => Self::Consistent,
            _ if options.resource_version_match == Some(ResourceVersionMatch::Exact) => Self::Exact,
            version if version != "0" && options.limit > 0 && options.resource_version_match.is_none() => Self::Exact,
            _ => Self::Latest,
        }
    }
}

/// Reads a page, with the span of reading it.
pub fn list_traced(
    on: ResourceRequest<'_>,
    options: &ListOptions,
    filter: &SelectionPredicate,
) -> Result<ListResult, StatusError> {
    // A request that cannot be looked up does not reach the cache, and has no span there.
    let place = page_start(options, filter)?;
    let lookup = CacheLookup::from_options(options);
    let span = on.cache_span("cacher.GetList");
    if span.is_recording() {
        span.set_attribute("type", on.collection().to_string().as_str());
        if lookup == CacheLookup::Consistent {
            on.transaction_span(&span, READ_TRANSACTION).end();
        }
    }
    let listed = list_page(on, options, filter, place).map_err(|error| {
        span.add_event("Ready");
        span.add_event("watchCache locked acquired");
        if matches!(error, ListError::TooOld { .. }) {
            span.add_event("watchCache fresh enough");
        }
        list_error_status(options, error)
    })?;
    describe(&span, lookup, filter, &listed);
    Ok(listed)
}

/// The attributes that kube-apiserver records for a list from its cache.
fn describe(span: &crate::trace::TraceSpan, lookup: CacheLookup, filter: &SelectionPredicate, listed: &ListResult) {
    span.add_event("Ready");
    let single = filter.matches_single_name();
    if lookup == CacheLookup::Consistent && !single {
        span.add_event("getCurrentRV success");
    }
    span.add_event("watchCache locked acquired");
    span.add_event("watchCache fresh enough");
    span.add_event(match lookup {
        _ if single => "GetByKey success",
        CacheLookup::Exact => "GetExactSnapshotLocked success",
        CacheLookup::Consistent | CacheLookup::Latest => "GetLatestSnapshotOrBuildLocked success",
    });
    let count = listed.items.len();
    span.add_event_with("Listed items from cache", &[("count", count.into())]);
    if !filter.is_everything() && count > 0 {
        span.add_event("Resized result");
    }
    span.add_event_with("Filtered items", &[("count", count.into())]);
}

/// The matching objects of the requested page.
fn list_page(
    on: ResourceRequest<'_>,
    options: &ListOptions,
    filter: &SelectionPredicate,
    place: PageStart,
) -> Result<ListResult, ListError> {
    let (at, after) = place;
    // A list at any revision is returned whole, as from kube-apiserver's cache. A list of one name has no
    // pages.
    let whole = options.resource_version == "0" || filter.matches_single_name();
    let limit = usize::try_from(options.limit).ok().filter(|limit| *limit > 0 && !whole);
    let query = ListQuery { namespace: filter.namespace().cloned(), at, after, limit };
    on.core().store.list_filtered(&on.collection(), &query, &|stored| filter.matches(stored))
}

/// The state to list, and the key after which the page begins.
type PageStart = (ListRevision, Option<String>);

/// Where a page begins. Tokens contain keys below the list's own prefix.
fn page_start(options: &ListOptions, filter: &SelectionPredicate) -> Result<PageStart, StatusError> {
    // A list of one name has no pages.
    if !options.continue_token.is_empty() && !filter.matches_single_name() {
        let token = ContinueToken::decode(&options.continue_token)?;
        if !matches!(options.resource_version.as_str(), "" | "0") {
            return Err(StatusError::bad_request("specifying resource version is not allowed when using continue"));
        }
        let start = token.start.trim_end_matches('\0');
        let after = filter.namespace().map_or_else(|| start.to_owned(), |namespace| format!("{namespace}/{start}"));
        return Ok((token.resource_version.map_or(ListRevision::Newest, ListRevision::Exact), Some(after)));
    }
    let at = match (options.list_resource_version()?, options.resource_version_match) {
        (None | Some(0), _) => ListRevision::Newest,
        (Some(revision), Some(ResourceVersionMatch::Exact)) => ListRevision::Exact(revision),
        // A page at a resourceVersion is of exactly that version, unless the request says otherwise.
        (Some(revision), None) if options.limit > 0 && !filter.matches_single_name() => ListRevision::Exact(revision),
        (Some(revision), _) => ListRevision::NotOlderThan(revision),
    };
    Ok((at, None))
}

/// A page with its continue token.
pub(super) fn to_list_page(filter: &SelectionPredicate, listed: ListResult) -> ListPage {
    let more = listed.more.as_ref();
    let below = |key: &str| match filter.namespace() {
        Some(namespace) => key.strip_prefix(&**namespace).map_or(key, |rest| rest.trim_start_matches('/')).to_owned(),
        None => key.to_owned(),
    };
    let continuation = more.map(|more| ContinueToken::after_key(Some(listed.revision), &below(&more.after)).encode());
    // With a selector the number of remaining items is unknown.
    let remaining = more.filter(|_| filter.is_everything()).map(|more| more.remaining as u64);
    ListPage { items: listed.items, revision: listed.revision, continuation, remaining }
}

fn list_error_status(options: &ListOptions, error: ListError) -> StatusError {
    let token = ContinueToken::decode(&options.continue_token).ok();
    match (error, token) {
        (ListError::TooOld { .. }, Some(token)) => {
            let mut status = StatusError::expired(CONTINUE_EXPIRED);
            status.continuation = Some(ContinueToken { resource_version: None, start: token.start }.encode());
            status
        }
        (ListError::TooOld { .. }, None) => StatusError::expired(VERSION_EXPIRED),
        (ListError::Future { asked, newest }, _) => version_too_large_status(asked, newest),
    }
}

/// kube-apiserver waits for a moment and then gives up; this server's store never lags behind.
pub fn version_too_large_status(asked: u64, newest: u64) -> StatusError {
    let message = format!("Timeout: Too large resource version: {asked}, current: {newest}");
    let cause = StatusCause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        ..StatusCause::default()
    };
    let mut status = StatusError::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
    status.retry_after = Some(1);
    status.with(StatusDetails { causes: vec![cause], ..StatusDetails::default() })
}
