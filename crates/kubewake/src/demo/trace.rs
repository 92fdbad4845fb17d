//! A trace as the viewer has it, followed until it is whole.

use std::{collections::HashSet, future::Future, pin::pin, time::Duration};

use anyhow::{Context, bail};
use http::StatusCode;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::{
    output::number,
    web::{self, Web},
};

/// How long it may take until something is ready.
const PATIENCE: Duration = Duration::from_secs(90);
/// What was done in the end may be told a little later than that it is ready.
const SETTLE: Duration = Duration::from_secs(2);
/// Longest time that it is waited for it to be whole, when it is ready.
const LAST: Duration = Duration::from_secs(15);
/// What something says of itself comes to the viewer within seconds: after this it does not come.
const LATE: Duration = Duration::from_secs(20);
/// How often the viewer is asked.
const PAUSE: Duration = Duration::from_millis(250);
/// A machine that is busy may take a while to answer.
const ANSWER: Duration = Duration::from_secs(20);

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

/// Waits until the span is there that says that something is ready, and everything that led to it. `ready` ends when the object itself says so.
pub(crate) async fn follow(
    page: &str,
    id: &str,
    converge: &str,
    ready: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Followed> {
    let web = Web::new(ANSWER);
    let link = format!("{page}/trace/{id}");
    let mut deadline = Instant::now() + PATIENCE;
    let (mut last, mut since) = (0, Instant::now());
    let (mut is_ready, mut is_told) = (None, false);
    let mut ready = pin!(ready);
    loop {
        let trace = read(&web, page, id).await?;
        if let Some(trace) = trace {
            if trace.spans.len() != last {
                (last, since) = (trace.spans.len(), Instant::now());
            }
            if let Some(found) = trace.span(converge) {
                if !is_told {
                    (is_told, deadline) = (true, Instant::now() + LAST);
                }
                let is_whole = trace.is_whole() && since.elapsed() > SETTLE;
                if is_whole || Instant::now() > deadline {
                    return Ok(Followed { facts: trace.facts(found), link });
                }
            }
        }
        if Instant::now() > deadline {
            bail!("{}", missing(is_ready == Some(true), (last > 0).then_some(&link)))
        }
        tokio::select! {
            ended = &mut ready, if is_ready.is_none() => {
                is_ready = Some(ended.is_ok());
                if ended.is_ok() && !is_told {
                    deadline = Instant::now() + LATE;
                }
            }
            () = sleep(PAUSE) => {}
        }
    }
}

/// What did not come, and where to look.
fn missing(is_ready: bool, link: Option<&String>) -> String {
    let what = if is_ready {
        format!("it is ready, but after {} s the viewer has", LATE.as_secs())
    } else {
        format!("it is not ready after {} s, and the viewer has", PATIENCE.as_secs())
    };
    match link {
        Some(link) if is_ready => {
            format!("{what} only a part of its trace, which is at {link}; `kubewake check` says why")
        }
        Some(link) => format!("{what} a part of its trace, which is at {link}"),
        None => format!("{what} nothing of its trace: `kubewake check` says where spans stay"),
    }
}

/// What the viewer has of a trace now, if it has something.
pub(crate) async fn known(page: &str, id: &str, converge: &str) -> anyhow::Result<Option<Followed>> {
    let trace = read(&Web::new(ANSWER), page, id).await?;
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
        let (time, spans) = (number::duration(converge.duration), self.spans.len());
        format!("ready after {time}: {spans} spans of {}", services.join(", "))
    }
}

/// What the viewer has of a trace; none if it has nothing.
async fn read(web: &Web, page: &str, id: &str) -> anyhow::Result<Option<Trace>> {
    match web.get(&format!("{page}/api/v1/traces/{id}")).await {
        Ok(trace) => Ok(Some(trace)),
        Err(web::Error::Status(StatusCode::NOT_FOUND, _)) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("the viewer at {page}")),
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

    #[test]
    fn what_is_missing_is_said_without_a_link_to_nothing() {
        let link = "http://127.0.0.1:1/trace/a".to_owned();
        for (is_ready, link, said) in [
            (true, None, "it is ready, but after 20 s the viewer has nothing of its trace"),
            (false, None, "it is not ready after 90 s, and the viewer has nothing of its trace"),
            (true, Some(&link), "the viewer has only a part of its trace, which is at http://127.0.0.1:1/trace/a"),
            (false, Some(&link), "it is not ready after 90 s, and the viewer has a part of its trace"),
        ] {
            let text = missing(is_ready, link);
            assert!(text.contains(said), "{text}");
            assert_eq!(text.contains("http"), link.is_some(), "{text}");
        }
    }
}
