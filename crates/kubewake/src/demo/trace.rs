//! A trace as the viewer has it, followed until it is whole.

use std::{collections::HashSet, time::Duration};

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

/// How long it may take until something is ready.
const PATIENCE: Duration = Duration::from_secs(90);
/// What was done in the end may be told a little later than that it is ready.
const SETTLE: Duration = Duration::from_secs(2);
/// Longest time that it is waited for it to be whole, when it is ready.
const LAST: Duration = Duration::from_secs(15);
/// How often the viewer is asked.
const PAUSE: Duration = Duration::from_millis(250);
/// Traces of samples have some hundred spans.
const LONGEST: usize = 64 << 20;

/// As much of the viewer's answer as is needed.
#[derive(Debug, Deserialize)]
struct Trace {
    services: Vec<Service>,
    spans: Vec<Span>,
}

#[derive(Debug, Deserialize)]
struct Service {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Span {
    id: String,
    parent: Option<String>,
    name: String,
    duration: u64,
}

/// A trace that is whole.
#[derive(Debug)]
pub(crate) struct Followed {
    /// What there is to know about it, in a few words.
    pub(crate) facts: String,
    /// Where it is shown.
    pub(crate) link: String,
}

/// Waits until the span is there that says that something is ready, and everything that led to it.
pub(crate) async fn follow(page: &str, id: &str, converge: &str) -> anyhow::Result<Followed> {
    let viewer = Viewer::new(page);
    let link = format!("{page}/trace/{id}");
    let mut deadline = Instant::now() + PATIENCE;
    let (mut last, mut since) = (0, Instant::now());
    let mut is_ready = false;
    loop {
        let trace = viewer.trace(id).await?;
        if let Some(trace) = trace {
            if trace.spans.len() != last {
                (last, since) = (trace.spans.len(), Instant::now());
            }
            if let Some(found) = trace.span(converge) {
                if !is_ready {
                    (is_ready, deadline) = (true, Instant::now() + LAST);
                }
                let is_whole = trace.is_whole() && since.elapsed() > SETTLE;
                if is_whole || Instant::now() > deadline {
                    return Ok(Followed { facts: trace.facts(found), link });
                }
            }
        }
        if Instant::now() > deadline {
            bail!("it is not ready after {} s; what is there of its trace is at {link}", PATIENCE.as_secs())
        }
        sleep(PAUSE).await;
    }
}

/// What the viewer has of a trace now, if it has something.
pub(crate) async fn known(page: &str, id: &str, converge: &str) -> anyhow::Result<Option<Followed>> {
    let trace = Viewer::new(page).trace(id).await?;
    let facts = trace.and_then(|trace| trace.span(converge).map(|found| trace.facts(found)));
    Ok(facts.map(|facts| Followed { facts, link: format!("{page}/trace/{id}") }))
}

impl Trace {
    fn span(&self, name: &str) -> Option<&Span> {
        self.spans.iter().find(|span| span.name == name)
    }

    /// Whether every parent is there.
    fn is_whole(&self) -> bool {
        let known: HashSet<_> = self.spans.iter().map(|span| &span.id).collect();
        self.spans.iter().filter_map(|span| span.parent.as_ref()).all(|parent| known.contains(parent))
    }

    fn facts(&self, converge: &Span) -> String {
        let mut services: Vec<&str> = self.services.iter().map(|service| service.name.as_str()).collect();
        services.sort_unstable();
        services.dedup();
        let seconds = Duration::from_nanos(converge.duration).as_secs_f64();
        format!("ready after {seconds:.1} s: {} spans of {}", self.spans.len(), services.join(", "))
    }
}

/// Asks the viewer.
struct Viewer {
    client: Client<HttpConnector, Empty<Bytes>>,
    page: String,
}

impl Viewer {
    fn new(page: &str) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http(), page: page.to_owned() }
    }

    async fn trace(&self, id: &str) -> anyhow::Result<Option<Trace>> {
        let uri = format!("{}/api/v1/traces/{id}", self.page).parse()?;
        let answer = timeout(PATIENCE, self.client.get(uri)).await.context("the viewer does not answer")?;
        let answer = answer.with_context(|| format!("the viewer at {} cannot be reached", self.page))?;
        if answer.status() == http::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if !answer.status().is_success() {
            bail!("the viewer at {} answers {}", self.page, answer.status())
        }
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the viewer's answer broke off: {error}"))?.to_bytes();
        Ok(Some(serde_json::from_slice(&body).context("the viewer answers something else than a trace")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(spans: &str) -> Trace {
        serde_json::from_str(&format!(
            r#"{{"services": [{{"name": "b"}}, {{"name": "a"}}, {{"name": "b"}}], "spans": {spans}}}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_trace_is_whole_when_no_parent_is_missing() {
        let whole = r#"[{"id": "1", "name": "POST", "duration": 1}, {"id": "2", "parent": "1", "name": "converge Head", "duration": 1500000000}]"#;
        let trace = trace(whole);
        assert!(trace.is_whole());
        let converge = trace.span("converge Head").unwrap();
        assert_eq!(trace.facts(converge), "ready after 1.5 s: 2 spans of a, b");
        assert!(trace.span("converge").is_none());
    }

    #[test]
    fn a_trace_whose_beginning_is_not_there_is_not_whole() {
        assert!(!trace(r#"[{"id": "2", "parent": "1", "name": "x", "duration": 1}]"#).is_whole());
    }
}
