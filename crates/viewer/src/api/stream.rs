//! What comes, as it comes: server-sent events.
//!
//! A reader that is slow holds nobody up. Traces that changed several times meanwhile are told once, spans that did not get through are counted.

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

use super::{Params, Problem, StoreJson, bad_parameters, refuse, search::SummaryJson, trace::SpanJson};
use crate::{
    query::Filter,
    receive::now,
    serve::State,
    store::{Arrived, SpanRef, Trace, TraceId},
};

/// Changes are told five times a second: more often nobody can look.
const PACE: Duration = Duration::from_millis(200);
/// How often the figures of the store are told.
const FIGURES: Duration = Duration::from_secs(2);
/// Traces that are told of at once; of more, those that grew last.
const AT_ONCE: usize = 100;
/// Events that wait for a reader.
const WAITING: usize = 256;

/// The reader has gone.
struct Gone;

type Events = mpsc::Sender<Event>;

pub(crate) async fn live(
    extract::State(state): extract::State<State>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    match wanted(pairs) {
        Ok(filter) => events(state, move |state, events| follow(state, filter, events)),
        Err(problems) => bad_parameters(&problems),
    }
}

pub(crate) async fn tail(
    extract::State(state): extract::State<State>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    match wanted(pairs) {
        Ok(filter) => events(state, move |state, events| spans(state, filter, events)),
        Err(problems) => bad_parameters(&problems),
    }
}

/// What is to be told, or all that is wrong with the question.
fn wanted(pairs: Vec<(String, String)>) -> Result<Filter, Vec<Problem>> {
    let mut params = Params::new(pairs);
    let filter = params.filter(now());
    if params.problems.is_empty() { Ok(filter) } else { Err(params.problems) }
}

/// Answers with what `work` says, until it ends, the reader goes, or the viewer stops.
fn events<F>(state: State, work: impl FnOnce(State, Events) -> F) -> Response
where
    F: Future<Output = Result<(), Gone>> + Send + 'static,
{
    let Ok(stream) = state.streams.clone().try_acquire_owned() else {
        let mut response =
            refuse(StatusCode::SERVICE_UNAVAILABLE, "too many streams are open; close one, or try later");
        // It must not go on to hold a connection that a page could have.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return response;
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    let mut stopping = state.stopping.clone();
    let (work, gone) = (work(state, sender.clone()), sender);
    tokio::spawn(async move {
        let _stream = stream;
        tokio::select! {
            _ = work => {}
            () = gone.closed() => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    });
    Sse::new(received(receiver)).keep_alive(KeepAlive::default()).into_response()
}

fn received(receiver: mpsc::Receiver<Event>) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|event| (Ok(event), receiver)))
}

async fn send(events: &Events, name: &str, data: &impl Serialize) -> Result<(), Gone> {
    let data = serde_json::to_string(data).map_err(|_| Gone)?;
    events.send(Event::default().event(name).data(data)).await.map_err(|_| Gone)
}

async fn follow(state: State, filter: Filter, events: Events) -> Result<(), Gone> {
    let mut changes = state.store.watch();
    let mut version = *changes.borrow_and_update();
    let (mut pace, mut figures) = (interval(PACE), interval(FIGURES));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let filter = Arc::new(filter);
    loop {
        tokio::select! {
            changed = changes.changed() => {
                changed.map_err(|_| Gone)?;
                pace.tick().await;
                changes.borrow_and_update();
                version = tell_changes(&state, &filter, version, &events).await?;
            }
            _ = figures.tick() => send(&events, "store", &StoreJson::from(state.store.figures())).await?,
        }
    }
}

async fn tell_changes(state: &State, filter: &Arc<Filter>, since: u64, events: &Events) -> Result<u64, Gone> {
    let (store, filter) = (state.store.clone(), filter.clone());
    let told = tokio::task::spawn_blocking(move || {
        let changed = store.changed_since(since);
        let matching = changed.traces.iter().rev().filter(|trace| filter.matches(trace)).take(AT_ONCE);
        let json = |trace: &Arc<Trace>| serde_json::to_string(&SummaryJson::new(trace)).ok();
        (matching.filter_map(json).collect::<Vec<_>>(), changed.version)
    });
    let (told, version) = told.await.map_err(|_| Gone)?;
    // The one that grew last comes last.
    for data in told.into_iter().rev() {
        events.send(Event::default().event("trace").data(data)).await.map_err(|_| Gone)?;
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
struct Skipped {
    spans: u64,
}

async fn spans(state: State, filter: Filter, events: Events) -> Result<(), Gone> {
    let mut tail = state.store.tail();
    let mut expected = None;
    // So that a reader knows that nothing is missed from here on.
    send(&events, "store", &StoreJson::from(state.store.figures())).await?;
    loop {
        let arrived = match tail.recv().await {
            Ok(arrived) => arrived,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return Err(Gone),
        };
        let skipped = expected.map_or(0, |expected| arrived.before.saturating_sub(expected));
        if skipped > 0 {
            send(&events, "skipped", &Skipped { spans: skipped }).await?;
        }
        expected = Some(arrived.before + arrived.chunk.entries().len() as u64);
        for data in matching(&arrived, &filter) {
            events.send(Event::default().event("span").data(data)).await.map_err(|_| Gone)?;
        }
    }
}

fn matching(arrived: &Arrived, filter: &Filter) -> Vec<String> {
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
