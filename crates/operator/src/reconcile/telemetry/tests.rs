use kubewake_api::v1alpha1::TelemetrySpec;
use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn telemetry(spec: serde_json::Value) -> Telemetry {
    Telemetry::new("default", serde_json::from_value::<TelemetrySpec>(spec).unwrap())
}

fn said(telemetry: &Telemetry, collectors: Option<&CollectorReadiness>) -> TelemetryStatus {
    said_after(telemetry, collectors, None)
}

fn said_after(
    telemetry: &Telemetry,
    collectors: Option<&CollectorReadiness>,
    failure: Option<String>,
) -> TelemetryStatus {
    let (settings, problems) = CollectorSettings::from_spec_lenient(&telemetry.spec, "kubewake-system");
    let (collectors, is_needed, has_service) = (collectors.cloned(), collectors.is_some(), collectors.is_some());
    telemetry_status(
        telemetry,
        &problems,
        &[],
        &LayerSummary { collectors, is_needed, has_service, failure, settings },
        NOW,
    )
}

#[test]
fn senders_are_told_where_to_send_when_there_are_collectors() {
    let one = CollectorReadiness::example(1, 2);
    let empty = said(&telemetry(json!({})), None);
    assert_eq!((empty.state, empty.endpoints), (Some(State::Ready), None));
    let full = said(&telemetry(json!({"receivers": {"opencensus": {"enabled": true}}})), Some(&one));
    let endpoints = full.endpoints.unwrap();
    assert_eq!(endpoints.otlp.unwrap().grpc, "http://kubewake-otlp.kubewake-system:4317");
    assert_eq!(endpoints.opencensus.as_deref(), Some("http://kubewake-otlp.kubewake-system:55678"));
    assert_eq!(said(&telemetry(json!({})), Some(&CollectorReadiness::example(0, 2))).state, Some(State::Pending));
    assert_eq!(
        said(&telemetry(json!({})), Some(&CollectorReadiness::example(2, 2).with_stuck_collector())).state,
        Some(State::Degraded)
    );
}

#[test]
fn senders_keep_their_address_while_everything_is_paused() {
    let mut telemetry = telemetry(json!({}));
    let paused = telemetry_status(&telemetry, &[], &[], &without_collectors(false), NOW);
    assert_eq!((paused.state, paused.reason.as_deref()), (Some(State::Ready), Some("CollectorNotNeeded")));
    assert!(paused.endpoints.is_some());
    telemetry.status = Some(paused);
    assert!(
        telemetry_status(&telemetry, &[], &[], &without_collectors(true), NOW).endpoints.is_some(),
        "nor when it goes on"
    );
}

/// A layer with its Service and no collectors, which may be needed.
fn without_collectors(is_needed: bool) -> LayerSummary {
    let settings = CollectorSettings::new("kubewake-system");
    LayerSummary { collectors: None, is_needed, has_service: true, failure: None, settings }
}

#[test]
fn an_address_that_no_collector_has_listened_at_is_none() {
    let telemetry = telemetry(json!({}));
    let mut layer = without_collectors(true);
    let first = telemetry_status(&telemetry, &[], &[], &layer, NOW);
    assert_eq!((first.state, first.reason.as_deref()), (Some(State::Pending), Some("CollectorNotReady")));
    assert_eq!(first.endpoints, None);
    layer.failure = Some("failed to apply Deployment kubewake-gateway".to_owned());
    let refused = telemetry_status(&telemetry, &[], &[], &layer, NOW);
    assert_eq!((refused.state, refused.endpoints), (Some(State::Degraded), None));
}

#[test]
fn nonsense_is_said_and_takes_nothing_away() {
    let one = CollectorReadiness::example(1, 2);
    let mut telemetry = telemetry(json!({}));
    telemetry.spec = serde_json::from_value(json!({"defaults": {"timeout": "soon"}})).unwrap();
    let status = said(&telemetry, Some(&one));
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Invalid), Some("SettingInvalid")));
    assert!(status.endpoints.is_some(), "collectors listen");
    assert!(status.conditions.iter().any(|it| it.type_ == "Configured" && it.reason == "NotAccepted"));
    assert!(status.conditions.iter().any(|it| it.reason == "SettingInvalid" && it.message.contains("timeout")));
    assert_eq!(said(&telemetry, None).endpoints, None, "nobody listens there any more");
}

#[test]
fn what_an_api_server_refuses_is_said() {
    let failure =
        Some("failed to apply Deployment kubewake-gateway: the API server returned 422 Invalid: no".to_owned());
    let status = said_after(&telemetry(json!({})), Some(&CollectorReadiness::example(1, 2)), failure);
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Degraded), Some("ApplyFailed")));
    assert!(status.conditions.iter().any(|it| it.reason == "ApplyFailed" && it.message.contains("422 Invalid: no")));
}
