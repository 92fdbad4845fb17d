//! `health_check`: HTTP endpoints that report whether the collector is healthy.
//!
//! * the configured path (`/`): 200 while the collector is ready and every pipeline makes progress, else 503
//!   with the pipelines that do not; `response_body` replaces the body if it is set;
//! * `/livez`: 200 as long as the process serves at all, for a liveness probe: a backend that is down is no
//!   reason to restart a collector that holds data for it;
//! * `/readyz`: 200 while the collector accepts data: from its start until it drains;
//! * `/status`: the document of [`crate::telemetry::status`].
//!
//! Every response is computed from [`CollectorStatus`] by a pure function.

mod go_duration;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::StatusCode;
use kubewake_config::model::{HealthBodies, HealthCheck, PipelineCheck};
use serde::Serialize;

use self::go_duration::go_duration;
use super::{Extension, ExtensionEndpoint};
use crate::{
    components::{BuildError, ExtensionContext},
    telemetry::{CollectorPhase, CollectorStatus, RouteHandler, SendState, TelemetryResponse, TelemetryState},
};

const JSON_CONTENT_TYPE: &str = "application/json";
const TEXT_CONTENT_TYPE: &str = "text/plain; charset=utf-8";

pub(crate) fn prepare(settings: &HealthCheck, _: &ExtensionContext<'_>) -> Result<Box<dyn Extension>, BuildError> {
    Ok(Box::new(settings.clone()))
}

impl Extension for HealthCheck {
    fn endpoint(&self) -> Option<ExtensionEndpoint> {
        let settings = self.clone();
        Some(ExtensionEndpoint {
            endpoint: self.endpoint.to_string(),
            tls: self.tls.clone(),
            routes: Box::new(move |telemetry| Arc::new(HealthRoutes::new(&settings, telemetry))),
        })
    }
}

/// The health endpoints and their configured bodies.
pub(crate) struct HealthRoutes {
    telemetry: Arc<TelemetryState>,
    path: String,
    check: PipelineCheck,
    bodies: Option<HealthBodies>,
}

/// The health response of the Collector's extension, extended with the state of each pipeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HealthReport {
    /// `Server available` or `Server not available`.
    pub(crate) status: &'static str,
    pub(crate) up_since: String,
    /// Time since the start, in Go's notation.
    pub(crate) uptime: String,
    pub(crate) phase: CollectorPhase,
    /// The pipelines that keep failing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stalled: Vec<String>,
    /// The state of every pipeline.
    pub(crate) pipelines: BTreeMap<String, SendState>,
}

impl HealthRoutes {
    pub(crate) fn new(settings: &HealthCheck, telemetry: Arc<TelemetryState>) -> Self {
        // The Collector accepts a path with or without its leading slash.
        let path = format!("/{}", settings.path.trim_start_matches('/'));
        let check = settings.pipeline_check.clone();
        let bodies = settings.response_body.clone();
        Self { telemetry, path, check, bodies }
    }

    fn status(&self) -> CollectorStatus {
        self.telemetry.status(&self.check)
    }
}

impl RouteHandler for HealthRoutes {
    fn get(&self, path: &str) -> Option<TelemetryResponse> {
        match path {
            _ if path == self.path => Some(with_configured_body(health(&self.status()), self.bodies.as_ref())),
            "/livez" => Some(TelemetryResponse::ok(TEXT_CONTENT_TYPE, "ok\n".into())),
            "/readyz" => Some(readiness(self.telemetry.running().phase)),
            "/status" => Some(json(StatusCode::OK, &self.status())),
            _ => None,
        }
    }
}

pub(crate) fn health(status: &CollectorStatus) -> TelemetryResponse {
    let stalled = status.pipelines.iter().filter(|(_, p)| p.state == SendState::Stalled);
    let stalled: Vec<String> = stalled.map(|(id, _)| id.clone()).collect();
    let good = status.phase == CollectorPhase::Ready && stalled.is_empty();
    let (code, text) = if good {
        (StatusCode::OK, "Server available")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "Server not available")
    };
    let health = HealthReport {
        status: text,
        up_since: status.started.clone(),
        uptime: go_duration(Duration::try_from_secs_f64(status.uptime_seconds).unwrap_or_default()),
        phase: status.phase,
        stalled,
        pipelines: status.pipelines.iter().map(|(id, pipeline)| (id.clone(), pipeline.state)).collect(),
    };
    json(code, &health)
}

/// Replaces the body of a response with the configured one.
fn with_configured_body(reply: TelemetryResponse, bodies: Option<&HealthBodies>) -> TelemetryResponse {
    let Some(bodies) = bodies else { return reply };
    let body = if reply.status == StatusCode::OK { &bodies.healthy } else { &bodies.unhealthy };
    TelemetryResponse { content_type: TEXT_CONTENT_TYPE, body: body.clone(), ..reply }
}

fn readiness(phase: CollectorPhase) -> TelemetryResponse {
    let (status, body) = match phase {
        CollectorPhase::Ready => (StatusCode::OK, "ok\n"),
        CollectorPhase::Starting | CollectorPhase::Unknown => (StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        CollectorPhase::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    };
    TelemetryResponse { status, content_type: TEXT_CONTENT_TYPE, body: body.into() }
}

fn json(status: StatusCode, document: &impl Serialize) -> TelemetryResponse {
    match serde_json::to_string(document) {
        Ok(body) => TelemetryResponse { status, content_type: JSON_CONTENT_TYPE, body },
        // Plain data with text keys always has a JSON form.
        Err(error) => TelemetryResponse {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            content_type: "text/plain",
            body: error.to_string(),
        },
    }
}
