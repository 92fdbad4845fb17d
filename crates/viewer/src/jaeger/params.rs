//! Query parameters of Jaeger's search.

use std::{collections::BTreeMap, ops::RangeInclusive, sync::Arc};

use axum::extract::{Path, rejection::PathRejection};

use crate::{
    api::{NOT_UTF8_MESSAGE, ParameterProblem, QueryParams},
    query::{self, TraceFilter},
    serve::ViewerState,
    store::{MAX_NAME_BYTES, StoredTrace, TraceId, TraceIdError, truncate},
};

/// Jaeger's default limit.
const DEFAULT_TRACES: usize = 100;
/// The largest number of traces in one response.
const MAX_TRACES: usize = 1500;

#[derive(Debug)]
pub(crate) enum TraceSelection {
    Ids(Vec<TraceId>),
    /// Traces that match the filter, up to a limit.
    Matching(Box<TraceFilter>, usize),
}

pub(super) fn find_traces(state: &ViewerState, wanted: &TraceSelection) -> Vec<Arc<StoredTrace>> {
    match wanted {
        TraceSelection::Ids(ids) => ids.iter().filter_map(|id| state.store.trace(*id)).collect(),
        TraceSelection::Matching(filter, limit) => query::search(&state.store.snapshot(), filter, *limit).traces,
    }
}

/// The selected traces, or the first invalid parameter.
pub(crate) fn parse_selection(pairs: Vec<(String, String)>) -> Result<TraceSelection, ParameterProblem> {
    let mut params = QueryParams::new(pairs);
    let wanted = read_selection(&mut params);
    params.problems.into_iter().next().map_or(Ok(wanted), Err)
}

/// The service and the span kind of an operations query, if a service is given. API version 3 has another name
/// for the kind.
pub(crate) fn parse_operation_query(pairs: Vec<(String, String)>) -> Option<(String, Option<String>)> {
    let params = QueryParams::new(pairs);
    let kind = params.text("spanKind").or(params.text("span_kind")).map(str::to_owned);
    Some((params.text("service")?.to_owned(), kind))
}

pub(super) fn parse_trace_id(part: Result<Path<String>, PathRejection>) -> Result<TraceId, String> {
    let Ok(Path(id)) = part else { return Err(NOT_UTF8_MESSAGE.to_owned()) };
    id.parse().map_err(|error: TraceIdError| error.to_string())
}

fn read_selection(params: &mut QueryParams) -> TraceSelection {
    let ids: Result<Vec<TraceId>, _> = params.all_values("traceID").map(str::parse).collect();
    match ids {
        Err(error) => params.add_problem("traceID", error.to_string()),
        Ok(ids) if !ids.is_empty() => return TraceSelection::Ids(ids),
        Ok(_) => {}
    }
    if params.text("service").is_none() {
        params.add_problem("service", "is required");
    }
    // Truncated as names in the store are.
    let name = |text: &str| truncate(text, MAX_NAME_BYTES).to_owned();
    // Microseconds. `lookback` repeats the range, for the UI itself.
    let nanos = |micros: u64| micros.saturating_mul(1000);
    let times =
        (params.number("start").map(nanos), params.number("end").map(|end: u64| nanos(end).saturating_add(999)));
    let durations = (params.duration("minDuration"), params.duration("maxDuration"));
    let filter = TraceFilter {
        service: params.text("service").map(name),
        operation: params.text("operation").filter(|name| *name != "all").map(name),
        attributes: parse_tags(params),
        span_duration: params.range(("minDuration", "maxDuration"), durations.0, durations.1),
        start: params.range(("start", "end"), times.0, times.1),
        ..TraceFilter::default()
    };
    let limit = params.number::<usize>("limit").filter(|limit| *limit > 0).unwrap_or(DEFAULT_TRACES).min(MAX_TRACES);
    TraceSelection::Matching(Box::new(filter), limit)
}

/// `tags={"key":"value"}`, and `tag=key:value`, each any number of times.
fn parse_tags(params: &mut QueryParams) -> Vec<(String, String)> {
    let maps: Vec<_> = params.all_values("tags").map(serde_json::from_str::<BTreeMap<String, String>>).collect();
    let pairs: Vec<_> = params
        .all_values("tag")
        .map(|tag| tag.split_once(':').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    let mut attributes = Vec::new();
    for map in maps {
        match map {
            Ok(map) => attributes.extend(map),
            Err(error) => params.add_problem("tags", format!("must be a JSON object of strings: {error}")),
        }
    }
    for pair in pairs {
        match pair {
            Some(pair) => attributes.push(pair),
            None => params.add_problem("tag", "must be key:value"),
        }
    }
    attributes
}

/// The range given by `endTs` and `lookback`, in milliseconds. `endTs` is required, as in Jaeger.
pub(crate) fn parse_time_range(pairs: Vec<(String, String)>) -> Result<RangeInclusive<u64>, ParameterProblem> {
    let mut params = QueryParams::new(pairs);
    let nanos = |millis: u64| millis.saturating_mul(1_000_000);
    let end = params.number("endTs").map(nanos);
    let back = params.number("lookback").map(nanos);
    if end.is_none() {
        params.add_problem("endTs", "is required");
    }
    // Defaults to one day, as in Jaeger.
    let back = back.unwrap_or(86_400_000_000_000);
    let end = end.unwrap_or_default();
    params.problems.into_iter().next().map_or(Ok(end.saturating_sub(back)..=end), Err)
}
