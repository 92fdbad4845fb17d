//! Follows a trace in the viewer until it is complete.

use std::{collections::HashSet, future::Future, pin::pin, time::Duration};

use anyhow::{Context, bail};
use http::StatusCode;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::{
    http_client::{self, JsonHttpClient},
    output::units,
};

/// How long an object may take to become ready.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
/// The last spans may arrive a little later than the convergence span.
const SETTLE_PERIOD: Duration = Duration::from_secs(2);
/// How long to wait for the complete trace after the convergence span has arrived.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(15);
/// Spans reach the viewer within seconds; after this time they are missing.
const STATUS_SPAN_TIMEOUT: Duration = Duration::from_secs(20);
/// How often the viewer is queried.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// A busy machine may respond slowly.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The fields of the viewer's response that are used.
#[derive(Debug, Deserialize)]
struct SampleTrace {
    services: Vec<SampleService>,
    spans: Vec<SampleSpan>,
}

#[derive(Debug, Deserialize)]
struct SampleService {
    name: String,
}

#[derive(Debug, Deserialize)]
struct SampleSpan {
    id: String,
    parent: Option<String>,
    name: String,
    duration: u64,
}

#[derive(Debug)]
pub(crate) struct CompletedTrace {
    /// A short description of the trace.
    pub(crate) facts: String,
    pub(crate) link: String,
}

/// Waits for the convergence span and everything that led to it. `ready` completes when the object itself is
/// ready.
pub(crate) async fn wait_for_trace(
    page: &str,
    id: &str,
    converge: &str,
    ready: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<CompletedTrace> {
    let web = JsonHttpClient::new(REQUEST_TIMEOUT);
    let link = format!("{page}/trace/{id}");
    let mut deadline = Instant::now() + READY_TIMEOUT;
    let mut last = 0;
    let mut since = Instant::now();
    let mut is_ready = None;
    let mut is_told = false;
    let mut ready = pin!(ready);
    loop {
        let trace = fetch_trace(&web, page, id).await?;
        if let Some(trace) = trace {
            if trace.spans.len() != last {
                (last, since) = (trace.spans.len(), Instant::now());
            }
            if let Some(found) = trace.find_span(converge) {
                if !is_told {
                    (is_told, deadline) = (true, Instant::now() + COMPLETION_TIMEOUT);
                }
                let is_whole = trace.is_complete() && since.elapsed() > SETTLE_PERIOD;
                if is_whole || Instant::now() > deadline {
                    return Ok(CompletedTrace { facts: trace.describe(found), link });
                }
            }
        }
        if Instant::now() > deadline {
            bail!("{}", describe_missing(is_ready == Some(true), (last > 0).then_some(&link)))
        }
        tokio::select! {
            ended = &mut ready, if is_ready.is_none() => {
                is_ready = Some(ended.is_ok());
                if ended.is_ok() && !is_told {
                    deadline = Instant::now() + STATUS_SPAN_TIMEOUT;
                }
            }
            () = sleep(POLL_INTERVAL) => {}
        }
    }
}

/// What is missing, and where to look.
fn describe_missing(is_ready: bool, link: Option<&String>) -> String {
    let what = if is_ready {
        format!("the object is ready, but after {} s the viewer has", STATUS_SPAN_TIMEOUT.as_secs())
    } else {
        format!("the object is not ready after {} s, and the viewer has", READY_TIMEOUT.as_secs())
    };
    match link {
        Some(link) if is_ready => {
            format!("{what} only a part of the trace: see {link}, and run `kubewake check`")
        }
        Some(link) => format!("{what} a part of the trace: see {link}"),
        None => format!("{what} no spans of the trace: run `kubewake check`"),
    }
}

/// Looks up a trace that has a convergence span.
pub(crate) async fn lookup_trace(page: &str, id: &str, converge: &str) -> anyhow::Result<Option<CompletedTrace>> {
    let trace = fetch_trace(&JsonHttpClient::new(REQUEST_TIMEOUT), page, id).await?;
    let facts = trace.and_then(|trace| trace.find_span(converge).map(|found| trace.describe(found)));
    Ok(facts.map(|facts| CompletedTrace { facts, link: format!("{page}/trace/{id}") }))
}

impl SampleTrace {
    fn find_span(&self, name: &str) -> Option<&SampleSpan> {
        self.spans.iter().find(|span| span.name == name)
    }

    /// Whether no parent is missing.
    fn is_complete(&self) -> bool {
        let known: HashSet<_> = self.spans.iter().map(|span| &span.id).collect();
        self.spans.iter().filter_map(|span| span.parent.as_ref()).all(|parent| known.contains(parent))
    }

    fn describe(&self, converge: &SampleSpan) -> String {
        let mut services: Vec<&str> = self.services.iter().map(|service| service.name.as_str()).collect();
        services.sort_unstable();
        services.dedup();
        let time = units::format_duration(converge.duration);
        let spans = self.spans.len();
        format!("ready after {time}: {spans} spans of {}", services.join(", "))
    }
}

/// Fetches a trace; none if the viewer does not have it.
async fn fetch_trace(web: &JsonHttpClient, page: &str, id: &str) -> anyhow::Result<Option<SampleTrace>> {
    match web.get(&format!("{page}/api/v1/traces/{id}")).await {
        Ok(trace) => Ok(Some(trace)),
        Err(http_client::JsonHttpError::Status(StatusCode::NOT_FOUND, _)) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to get trace {id} from the viewer at {page}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(spans: &str) -> SampleTrace {
        serde_json::from_str(&format!(
            r#"{{"services": [{{"name": "b"}}, {{"name": "a"}}, {{"name": "b"}}], "spans": {spans}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_trace_is_whole_when_no_parent_is_missing() {
        let whole = r#"[{"id": "1", "name": "POST", "duration": 1}, {"id": "2", "parent": "1", "name": "converge Head", "duration": 1500000000}]"#;
        let trace = trace(whole);
        assert!(trace.is_complete());
        let converge = trace.find_span("converge Head").unwrap();
        assert_eq!(trace.describe(converge), "ready after 1.5 s: 2 spans of a, b");
        assert!(trace.find_span("converge").is_none());
    }

    #[test]
    fn a_trace_whose_beginning_is_not_there_is_not_whole() {
        assert!(!trace(r#"[{"id": "2", "parent": "1", "name": "x", "duration": 1}]"#).is_complete());
    }

    #[test]
    fn what_is_missing_is_said_without_a_link_to_nothing() {
        let link = "http://127.0.0.1:1/trace/a".to_owned();
        for (is_ready, link, said) in [
            (true, None, "the object is ready, but after 20 s the viewer has no spans of the trace"),
            (false, None, "the object is not ready after 90 s, and the viewer has no spans of the trace"),
            (true, Some(&link), "the viewer has only a part of the trace: see http://127.0.0.1:1/trace/a"),
            (false, Some(&link), "the object is not ready after 90 s, and the viewer has a part of the trace"),
        ] {
            let text = describe_missing(is_ready, link);
            assert!(text.contains(said), "{text}");
            assert_eq!(text.contains("http"), link.is_some(), "{text}");
        }
    }
}
