//! Jaeger's parameters of a search.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use axum::extract::{Path, rejection::PathRejection};

use crate::{
    api::{NO_TEXT, Params, Problem},
    query::{self, Filter},
    serve::State,
    store::{NAME, Trace, TraceId, TraceIdError, cut},
};

/// What Jaeger shows if it is not told how many.
const LIMIT: usize = 100;
/// What is answered at once, at most.
const MOST: usize = 1500;

/// Which traces are wanted.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// These.
    Ids(Vec<TraceId>),
    /// Those that match, so many of them.
    Matching(Box<Filter>, usize),
}

/// The traces that are wanted.
pub(super) fn find(state: &State, wanted: &Wanted) -> Vec<Arc<Trace>> {
    match wanted {
        Wanted::Ids(ids) => ids.iter().filter_map(|id| state.store.trace(*id)).collect(),
        Wanted::Matching(filter, limit) => query::search(&state.store.snapshot(), filter, *limit).traces,
    }
}

/// Which traces are wanted, or what is wrong with the question first.
pub(crate) fn wanted(pairs: Vec<(String, String)>) -> Result<Wanted, Problem> {
    let mut params = Params::new(pairs);
    let wanted = read(&mut params);
    params.problems.into_iter().next().map_or(Ok(wanted), Err)
}

/// The service and the kind of spans whose names are wanted, if a service is named. The third version calls the kind otherwise.
pub(crate) fn operations(pairs: Vec<(String, String)>) -> Option<(String, Option<String>)> {
    let params = Params::new(pairs);
    let kind = params.text("spanKind").or(params.text("span_kind")).map(str::to_owned);
    Some((params.text("service")?.to_owned(), kind))
}

/// The trace that an address names.
pub(super) fn trace_id(part: Result<Path<String>, PathRejection>) -> Result<TraceId, String> {
    let Ok(Path(id)) = part else { return Err(NO_TEXT.to_owned()) };
    id.parse().map_err(|error: TraceIdError| error.to_string())
}

fn read(params: &mut Params) -> Wanted {
    let ids: Result<Vec<TraceId>, _> = params.all("traceID").map(str::parse).collect();
    match ids {
        Err(error) => params.problem("traceID", error.to_string()),
        Ok(ids) if !ids.is_empty() => return Wanted::Ids(ids),
        Ok(_) => {}
    }
    if params.text("service").is_none() {
        params.problem("service", "is required");
    }
    // Cut as those in the store are.
    let name = |text: &str| cut(text, NAME).to_owned();
    // Microseconds; `lookback` says the same once more, for the UI itself.
    let nanos = |micros: u64| micros.saturating_mul(1000);
    let times =
        (params.number("start").map(nanos), params.number("end").map(|end: u64| nanos(end).saturating_add(999)));
    let durations = (params.duration("minDuration"), params.duration("maxDuration"));
    let filter = Filter {
        service: params.text("service").map(name),
        operation: params.text("operation").filter(|name| *name != "all").map(name),
        attributes: attributes(params),
        span_duration: params.between(("minDuration", "maxDuration"), durations.0, durations.1),
        start: params.between(("start", "end"), times.0, times.1),
        ..Filter::default()
    };
    let limit = params.number::<usize>("limit").filter(|limit| *limit > 0).unwrap_or(LIMIT).min(MOST);
    Wanted::Matching(Box::new(filter), limit)
}

/// `tags={"key":"value"}`, and `tag=key:value`, as often as one likes.
fn attributes(params: &mut Params) -> Vec<(String, String)> {
    let maps: Vec<_> = params.all("tags").map(serde_json::from_str::<BTreeMap<String, String>>).collect();
    let pairs: Vec<_> = params
        .all("tag")
        .map(|tag| tag.split_once(':').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    let mut attributes = Vec::new();
    for map in maps {
        match map {
            Ok(map) => attributes.extend(map),
            Err(error) => params.problem("tags", format!("it must be a JSON object of strings: {error}")),
        }
    }
    for pair in pairs {
        match pair {
            Some(pair) => attributes.push(pair),
            None => params.problem("tag", "it must be key:value"),
        }
    }
    attributes
}

/// The time that `endTs` and `lookback` stand for: milliseconds. Without the first there is nothing to look at, as in Jaeger.
pub(crate) fn when(pairs: Vec<(String, String)>) -> Result<RangeInclusive<u64>, Problem> {
    let mut params = Params::new(pairs);
    let nanos = |millis: u64| millis.saturating_mul(1_000_000);
    let (end, back) = (params.number("endTs").map(nanos), params.number("lookback").map(nanos));
    if end.is_none() {
        params.problem("endTs", "is required");
    }
    // A day, as in Jaeger.
    let back = back.unwrap_or(86_400_000_000_000);
    let end = end.unwrap_or_default();
    params.problems.into_iter().next().map_or(Ok(end.saturating_sub(back)..=end), Err)
}
