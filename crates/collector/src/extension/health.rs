//! `health_check`: whether the collector does its work, over HTTP.
//!
//! * the configured path (`/`): 200 while the collector is ready and every pipeline gets on, else 503 with the pipelines that
//!   do not; in the words of `response_body` if there are any;
//! * `/livez`: 200 as long as the process serves at all, for a liveness probe: a backend that is down is no reason to
//!   restart a collector that holds data for it;
//! * `/readyz`: 200 when it takes data: after its start, until it drains;
//! * `/status`: the document of [`crate::telemetry::status`].
//!
//! Every answer is made by a pure function from [`Status`].

mod duration;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::StatusCode;
use kubewake_config::model::{HealthBodies, HealthCheck, PipelineCheck};
use serde::Serialize;

use self::duration::go_duration;
use crate::telemetry::{Phase, Reply, Routes, State, Status, Telemetry};

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What the health endpoint answers.
pub(crate) struct HealthRoutes {
    telemetry: Arc<Telemetry>,
    path: String,
    check: PipelineCheck,
    bodies: Option<HealthBodies>,
}

/// The health answer, as the Collector's extension has it, with the state of each pipeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Health {
    /// `Server available` or `Server not available`.
    pub(crate) status: &'static str,
    /// When the process started.
    pub(crate) up_since: String,
    /// Since then, as Go writes durations.
    pub(crate) uptime: String,
    /// Whether it takes data.
    pub(crate) phase: Phase,
    /// The pipelines that keep failing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stalled: Vec<String>,
    /// The state of every pipeline.
    pub(crate) pipelines: BTreeMap<String, State>,
}

impl HealthRoutes {
    /// Routes as `settings` say.
    pub(crate) fn new(settings: &HealthCheck, telemetry: Arc<Telemetry>) -> Self {
        // The Collector takes a path with or without its slash.
        let path = format!("/{}", settings.path.trim_start_matches('/'));
        let (check, bodies) = (settings.pipeline_check.clone(), settings.response_body.clone());
        Self { telemetry, path, check, bodies }
    }

    fn status(&self) -> Status {
        self.telemetry.status(&self.check)
    }
}

impl Routes for HealthRoutes {
    fn get(&self, path: &str) -> Option<Reply> {
        match path {
            _ if path == self.path => Some(in_words(health(&self.status()), self.bodies.as_ref())),
            "/livez" => Some(Reply::ok(TEXT, "ok\n".into())),
            "/readyz" => Some(ready(self.telemetry.running().phase)),
            "/status" => Some(json(StatusCode::OK, &self.status())),
            _ => None,
        }
    }
}

/// The health answer.
pub(crate) fn health(status: &Status) -> Reply {
    let stalled = status.pipelines.iter().filter(|(_, p)| p.state == State::Stalled);
    let stalled: Vec<String> = stalled.map(|(id, _)| id.clone()).collect();
    let good = status.phase == Phase::Ready && stalled.is_empty();
    let (code, text) = match good {
        true => (StatusCode::OK, "Server available"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "Server not available"),
    };
    let health = Health {
        status: text,
        up_since: status.started.clone(),
        uptime: go_duration(Duration::try_from_secs_f64(status.uptime_seconds).unwrap_or_default()),
        phase: status.phase,
        stalled,
        pipelines: status.pipelines.iter().map(|(id, pipeline)| (id.clone(), pipeline.state)).collect(),
    };
    json(code, &health)
}

/// The same answer in the words that the settings give for it.
fn in_words(reply: Reply, bodies: Option<&HealthBodies>) -> Reply {
    let Some(bodies) = bodies else { return reply };
    let body = if reply.status == StatusCode::OK { &bodies.healthy } else { &bodies.unhealthy };
    Reply { content_type: TEXT, body: body.clone(), ..reply }
}

fn ready(phase: Phase) -> Reply {
    let (status, body) = match phase {
        Phase::Ready => (StatusCode::OK, "ok\n"),
        Phase::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        Phase::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    };
    Reply { status, content_type: TEXT, body: body.into() }
}

fn json(status: StatusCode, document: &impl Serialize) -> Reply {
    match serde_json::to_string(document) {
        Ok(body) => Reply { status, content_type: JSON, body },
        // Plain data with text keys always has a JSON form.
        Err(error) => {
            Reply { status: StatusCode::INTERNAL_SERVER_ERROR, content_type: "text/plain", body: error.to_string() }
        }
    }
}
