//! Log records as server-sent events.

use axum::{
    extract::{self, Query},
    response::{Response, sse::Event},
};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;

use super::{
    QueryParams, parameter_errors_response,
    stream::{EventSender, ReaderGone, send, stream_response},
};
use crate::{
    log_tail::{SEVERITIES, TailRecord},
    serve::ViewerState,
};

const KNOWN_PARAMETERS: [&str; 5] = ["service", "namespace", "pod", "container", "severity"];

/// Which records a reader wants.
#[derive(Debug, Default, PartialEq, Eq)]
struct LogFilter {
    service: Option<String>,
    namespace: Option<String>,
    pod: Option<String>,
    container: Option<String>,
    /// The lowest level, from 1; with 0 also records without one.
    level: usize,
}

impl LogFilter {
    fn from_params(params: &mut QueryParams) -> Self {
        params.check_names(&KNOWN_PARAMETERS);
        let level = params.parse_with("severity", |text| {
            let level = SEVERITIES.iter().position(|level| *level == text);
            level.map(|level| level + 1).ok_or_else(|| format!("must be one of {}", SEVERITIES.join(", ")))
        });
        Self {
            service: params.name("service"),
            namespace: params.name("namespace"),
            pod: params.name("pod"),
            container: params.name("container"),
            level: level.unwrap_or_default(),
        }
    }

    fn matches(&self, record: &TailRecord) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let source = &record.source;
        record.level >= self.level
            && is(&self.service, &source.service)
            && is(&self.namespace, &source.namespace)
            && is(&self.pod, &source.pod)
            && is(&self.container, &source.container)
    }
}

pub(crate) async fn tail(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let mut params = QueryParams::new(pairs);
    let filter = LogFilter::from_params(&mut params);
    if params.problems.is_empty() {
        stream_response(state, move |state, events| send_records(state, filter, events))
    } else {
        parameter_errors_response(&params.problems)
    }
}

/// Sent first: no record is missed from here on.
#[derive(Serialize)]
struct ReadyJson {}

#[derive(Serialize)]
struct SkippedJson {
    records: u64,
}

async fn send_records(state: ViewerState, filter: LogFilter, events: EventSender) -> Result<(), ReaderGone> {
    let mut tail = state.logs.subscribe();
    let mut expected = None;
    send(&events, "ready", &ReadyJson {}).await?;
    loop {
        let chunk = match tail.recv().await {
            Ok(chunk) => chunk,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return Err(ReaderGone),
        };
        let skipped = expected.map_or(0, |expected| chunk.earlier.saturating_sub(expected));
        if skipped > 0 {
            send(&events, "skipped", &SkippedJson { records: skipped }).await?;
        }
        expected = Some(chunk.earlier + chunk.records.len() as u64);
        for record in chunk.records.iter().filter(|record| filter.matches(record)) {
            let event = Event::default().event("log").data(&record.json);
            events.send(event).await.map_err(|_| ReaderGone)?;
        }
    }
}
