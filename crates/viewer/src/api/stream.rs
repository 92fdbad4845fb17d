//! Live updates as server-sent events.
//!
//! A slow reader holds nobody up. A trace that changed several times meanwhile is reported once; spans that the
//! reader missed are counted.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::{self, Query},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{Stream, stream};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tokio::{
    sync::{broadcast::error::RecvError, mpsc},
    time::{MissedTickBehavior, interval},
};

use super::{
    ParameterProblem, QueryParams, StoreJson, error_response, parameter_errors_response, search::SummaryJson,
    trace::SpanJson,
};
use crate::{
    query::TraceFilter,
    receive::unix_nanos_now,
    serve::ViewerState,
    store::{ArrivedSpans, SpanRef, StoredTrace, TraceId},
};

/// Changes are sent five times a second: more would not be visible.
const CHANGE_INTERVAL: Duration = Duration::from_millis(200);
/// How often the figures of the store are sent.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(2);
/// Traces in one event. Of more, the most recently changed are sent.
const MAX_TRACES_PER_EVENT: usize = 100;
/// Events that are buffered for a reader.
const MAX_PENDING_EVENTS: usize = 256;

pub(super) struct ReaderGone;

pub(super) type EventSender = mpsc::Sender<Event>;

pub(crate) async fn live(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    match parse_filter(pairs) {
        Ok(filter) => stream_response(state, move |state, events| send_changes(state, filter, events)),
        Err(problems) => parameter_errors_response(&problems),
    }
}

pub(crate) async fn tail(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    match parse_filter(pairs) {
        Ok(filter) => stream_response(state, move |state, events| send_spans(state, filter, events)),
        Err(problems) => parameter_errors_response(&problems),
    }
}

/// The filter of a stream, or every invalid parameter.
fn parse_filter(pairs: Vec<(String, String)>) -> Result<TraceFilter, Vec<ParameterProblem>> {
    let mut params = QueryParams::new(pairs);
    let filter = params.filter(unix_nanos_now());
    if params.problems.is_empty() { Ok(filter) } else { Err(params.problems) }
}

/// Streams the events of `work` until it ends, the reader disconnects, or the viewer stops.
pub(super) fn stream_response<F>(state: ViewerState, work: impl FnOnce(ViewerState, EventSender) -> F) -> Response
where
    F: Future<Output = Result<(), ReaderGone>> + Send + 'static,
{
    let Ok(stream) = state.streams.clone().try_acquire_owned() else {
        let mut response =
            error_response(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open; close one, or try later");
        // The connection must not stay open afterwards: a browser has only a few for each host.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    };
    let (sender, receiver) = mpsc::channel(MAX_PENDING_EVENTS);
    let mut stopping = state.stopping.clone();
    let work = work(state, sender.clone());
    let gone = sender;
    tokio::spawn(async move {
        let _stream = stream;
        tokio::select! {
            _ = work => {}
            () = gone.closed() => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
    Sse::new(into_stream(receiver)).keep_alive(KeepAlive::default()).into_response()
}

fn into_stream(receiver: mpsc::Receiver<Event>) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|event| (Ok(event), receiver)))
}

pub(super) async fn send(events: &EventSender, name: &str, data: &impl Serialize) -> Result<(), ReaderGone> {
    let data = serde_json::to_string(data).map_err(|_| ReaderGone)?;
    events.send(Event::default().event(name).data(data)).await.map_err(|_| ReaderGone)
}

async fn send_changes(state: ViewerState, filter: TraceFilter, events: EventSender) -> Result<(), ReaderGone> {
    let mut changes = state.store.watch_version();
    let mut version = *changes.borrow_and_update();
    let mut pace = interval(CHANGE_INTERVAL);
    let mut figures = interval(STATISTICS_INTERVAL);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let filter = Arc::new(filter);
    loop {
        tokio::select! {
            changed = changes.changed() => {
                changed.map_err(|_| ReaderGone)?;
                pace.tick().await;
                changes.borrow_and_update();
                version = send_new_changes(&state, &filter, version, &events).await?;
            }
            _ = figures.tick() => send(&events, "store", &StoreJson::from(state.store.figures())).await?,
        }
    }
}

async fn send_new_changes(
    state: &ViewerState,
    filter: &Arc<TraceFilter>,
    since: u64,
    events: &EventSender,
) -> Result<u64, ReaderGone> {
    let store = state.store.clone();
    let filter = filter.clone();
    let told = tokio::task::spawn_blocking(move || {
        let changed = store.changed_since(since);
        let matching = changed.traces.iter().rev().filter(|trace| filter.matches(trace)).take(MAX_TRACES_PER_EVENT);
        let json = |trace: &Arc<StoredTrace>| serde_json::to_string(&SummaryJson::new(trace)).ok();
        (matching.filter_map(json).collect::<Vec<_>>(), changed.version)
    });
    let (told, version) = told.await.map_err(|_| ReaderGone)?;
    // The most recently changed trace comes last.
    for data in told.into_iter().rev() {
        events.send(Event::default().event("trace").data(data)).await.map_err(|_| ReaderGone)?;
    }
    Ok(version)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TailJson<'a> {
    trace_id: TraceId,
    service: &'a str,
    #[serde(flatten)]
    span: SpanJson<'a>,
}

#[derive(Serialize)]
struct SkippedJson {
    spans: u64,
}

async fn send_spans(state: ViewerState, filter: TraceFilter, events: EventSender) -> Result<(), ReaderGone> {
    let mut tail = state.store.subscribe();
    let mut expected = None;
    // Signals to the reader that no span is missed from here on.
    send(&events, "store", &StoreJson::from(state.store.figures())).await?;
    loop {
        let arrived = match tail.recv().await {
            Ok(arrived) => arrived,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return Err(ReaderGone),
        };
        let skipped = expected.map_or(0, |expected| arrived.earlier_spans.saturating_sub(expected));
        if skipped > 0 {
            send(&events, "skipped", &SkippedJson { spans: skipped }).await?;
        }
        expected = Some(arrived.earlier_spans + arrived.chunk.entries().len() as u64);
        for data in matching_spans(&arrived, &filter) {
            events.send(Event::default().event("span").data(data)).await.map_err(|_| ReaderGone)?;
        }
    }
}

fn matching_spans(arrived: &ArrivedSpans, filter: &TraceFilter) -> Vec<String> {
    if filter.id.as_ref().is_some_and(|id| !arrived.trace.to_string().starts_with(id)) {
        return Vec::new();
    }
    let json = |span: SpanRef<'_>| {
        let json =
            TailJson { trace_id: arrived.trace, service: span.service(), span: SpanJson::as_sent(span, 0, false) };
        serde_json::to_string(&json).ok()
    };
    arrived.chunk.spans().filter(|span| filter.matches_span(*span)).filter_map(json).collect()
}
