use std::collections::BTreeMap;

use kubewake_config::{ComponentId, PipelineId};
use kubewake_otlp::Signal;
use serde_json::Value;

use super::*;
use crate::{
    core::{DestinationLabels, SendError, StatsRegistry},
    telemetry::{PipelineInfo, ProcessIdentity},
};

/// A collector with one pipeline, `logs/app`, to one exporter.
fn collector() -> Arc<TelemetryState> {
    let telemetry = TelemetryState::new(Arc::default(), ProcessIdentity::start("1.0", &BTreeMap::new()));
    telemetry.update(|running| {
        let id = PipelineId { signal: Signal::Logs, name: Some("app".into()) };
        let exporters = vec![(ComponentId::new("otlp"), DestinationLabels::default())];
        running.pipelines =
            vec![PipelineInfo { id, uid: None, carries: Vec::new(), processors: Vec::new(), exporters }];
    });
    telemetry
}

fn routes(telemetry: &Arc<TelemetryState>) -> HealthRoutes {
    HealthRoutes::new(&HealthCheck::default(), telemetry.clone())
}

fn enter(telemetry: &TelemetryState, phase: CollectorPhase) {
    telemetry.update(|running| running.phase = phase);
}

/// Fails often enough to be stalled, and holds data.
fn fail(registry: &StatsRegistry) {
    let id = PipelineId { signal: Signal::Logs, name: Some("app".into()) };
    let exporter = registry.exporter(&ComponentId::new("otlp"), &id, DestinationLabels::default());
    exporter.queue.set(1, None);
    for _ in 0..5 {
        exporter.progress.record_failure(&SendError::connection("no"));
    }
}

fn get(routes: &HealthRoutes, path: &str) -> (u16, Value) {
    let reply = routes.get(path).expect("an answer");
    (reply.status.as_u16(), serde_json::from_str(&reply.body).unwrap_or(Value::String(reply.body)))
}

#[tokio::test(start_paused = true)]
async fn a_collector_is_available_between_its_start_and_its_end() {
    let telemetry = collector();
    let routes = routes(&telemetry);
    for (phase, code, text) in [
        (CollectorPhase::Starting, 503, "Server not available"),
        (CollectorPhase::Ready, 200, "Server available"),
        (CollectorPhase::Draining, 503, "Server not available"),
    ] {
        enter(&telemetry, phase);
        let (status, body) = get(&routes, "/");
        assert_eq!((status, &body["status"]), (code, &text.into()), "{phase:?}");
        assert_eq!(get(&routes, "/readyz").0, code, "{phase:?}");
        assert_eq!(get(&routes, "/livez").0, 200, "{phase:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_pipeline_makes_it_unavailable_but_not_unready() {
    let telemetry = collector();
    let routes = routes(&telemetry);
    enter(&telemetry, CollectorPhase::Ready);
    fail(telemetry.registry());
    let (status, body) = get(&routes, "/");
    assert_eq!((status, &body["pipelines"]["logs/app"]), (200, &"retrying".into()));
    tokio::time::advance(Duration::from_secs(300)).await;
    let (status, body) = get(&routes, "/");
    assert_eq!((status, &body["status"]), (503, &"Server not available".into()));
    assert_eq!(body["stalled"], serde_json::json!(["logs/app"]));
    assert_eq!(body["pipelines"]["logs/app"], "stalled");
    assert_eq!(get(&routes, "/readyz").0, 200);
}

#[tokio::test(start_paused = true)]
async fn the_answer_has_the_collectors_fields() {
    let telemetry = collector();
    enter(&telemetry, CollectorPhase::Ready);
    tokio::time::advance(Duration::from_millis(61_500)).await;
    let (_, body) = get(&routes(&telemetry), "/");
    assert_eq!(body["uptime"], "1m1.5s");
    assert!(body["upSince"].as_str().is_some_and(|since| since.ends_with('Z')), "{body}");
    assert!(body.get("stalled").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_path_can_be_set_and_status_is_there() {
    let telemetry = collector();
    let settings = HealthCheck { path: "health/status".into(), ..HealthCheck::default() };
    let routes = HealthRoutes::new(&settings, telemetry.clone());
    assert_eq!(get(&routes, "/health/status").0, 503);
    assert!(routes.get("/").is_none());
    let (status, body) = get(&routes, "/status");
    assert_eq!((status, &body["phase"]), (200, &"starting".into()));
    assert_eq!(body["pipelines"]["logs/app"]["state"], "idle");
}

#[tokio::test(start_paused = true)]
async fn the_settings_may_give_the_words() {
    let telemetry = collector();
    let bodies = HealthBodies { healthy: "fine".into(), unhealthy: "not now".into() };
    let settings = HealthCheck { response_body: Some(bodies), ..HealthCheck::default() };
    let routes = HealthRoutes::new(&settings, telemetry.clone());
    assert_eq!(get(&routes, "/"), (503, "not now".into()));
    enter(&telemetry, CollectorPhase::Ready);
    assert_eq!(get(&routes, "/"), (200, "fine".into()));
    assert_eq!(get(&routes, "/status").0, 200);
    assert!(get(&routes, "/status").1.is_object(), "only the one answer has other words");
}
