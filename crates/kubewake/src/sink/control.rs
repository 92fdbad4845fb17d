//! The control API of the sink.

use std::sync::atomic::Ordering;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::{
    SinkServer,
    response::{self, SinkResponseBody},
};
use crate::load::ids::RunSeed;

/// Handles every request that is not an export.
pub(super) async fn handle_control_request(
    sink: &SinkServer,
    request: Request<Incoming>,
) -> Response<SinkResponseBody> {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let answer = match (&method, path.as_str()) {
        (&Method::GET, "/stats") => Ok(statistics(sink)),
        (&Method::GET, "/traces") => Ok(sink.counters.traces()),
        (&Method::POST, "/reset") => {
            sink.counters.reset();
            Ok(json!({}))
        }
        (&Method::GET, "/mode") => Ok(sink.mode.borrow().to_json()),
        (&Method::POST, "/mode") => change_mode(sink, &query),
        (&Method::GET, "/missing") => parse_query_range(&query).map(|range| sink.counters.missing(&[range])),
        (&Method::POST, "/missing") => report_missing(sink, request).await,
        _ => {
            return response::json_response(
                StatusCode::NOT_FOUND,
                &json!({ "error": format!("unknown endpoint {method} {path}") }),
            );
        }
    };
    match answer {
        Ok(document) => response::json_response(StatusCode::OK, &document),
        Err(error) => response::json_response(StatusCode::BAD_REQUEST, &json!({ "error": error })),
    }
}

fn statistics(sink: &SinkServer) -> Value {
    let mut stats = sink.counters.to_json();
    if let Some(stats) = stats.as_object_mut() {
        stats.insert("hanging".to_owned(), sink.hanging.load(Ordering::Relaxed).into());
        let connections = json!({
            "open": sink.connections_open.load(Ordering::Relaxed),
            "total": sink.connections_total.load(Ordering::Relaxed),
        });
        stats.insert("connections".to_owned(), connections);
        stats.insert("mode".to_owned(), sink.mode.borrow().to_json());
    }
    stats
}

fn query_pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, "true")))
}

/// Applies all settings, or none if one of them is not valid.
fn change_mode(sink: &SinkServer, query: &str) -> Result<Value, String> {
    let mut mode = *sink.mode.borrow();
    query_pairs(query).try_for_each(|(key, value)| mode.set(key, value))?;
    sink.mode.send_replace(mode);
    Ok(mode.to_json())
}

/// Parses `seed=S&count=N`, and `first=N` if the range does not begin at 0.
fn parse_query_range(query: &str) -> Result<(RunSeed, u64, u64), String> {
    let number = |name: &str| {
        let value = query_pairs(query).find(|(key, _)| *key == name).map(|(_, value)| value);
        value.map(|value| value.parse::<u64>().map_err(|error| format!("{name}: {error}"))).transpose()
    };
    let seed = number("seed")?.ok_or("the parameter seed is required")?;
    let count = number("count")?.ok_or("the parameter count is required")?;
    let first = number("first")?.unwrap_or(0);
    Ok((RunSeed::new(seed), first, first.saturating_add(count)))
}

/// The body has lines of `seed first end`, as the generator writes them.
async fn report_missing(sink: &SinkServer, request: Request<Incoming>) -> Result<Value, String> {
    let body = request.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    let text = std::str::from_utf8(&body).map_err(|error| error.to_string())?;
    let ranges: Result<Vec<_>, String> = text.lines().map(parse_line_range).collect();
    Ok(sink.counters.missing(&ranges?))
}

fn parse_line_range(line: &str) -> Result<(RunSeed, u64, u64), String> {
    let mut numbers = line.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(seed)), Some(Ok(first)), Some(Ok(end)), None) => Ok((RunSeed::new(seed), first, end)),
        _ => Err(format!("invalid line {line:?}: write `seed first end`")),
    }
}
