//! The stamp of an object's last change: the trace in its annotations, and the time at which it became ready.
//!
//! *Assumed.* The annotations have the names that the trail library and the webhook use by default. *Not done.*
//! Timestamps in the cluster are whole seconds, so durations between them have the same resolution.

use jiff::{SignedDuration, Timestamp};
use kube::core::ObjectMeta;
use serde_json::Value;

use crate::{
    query::objects::{ConvergencePhase, ObjectStamp},
    store::TraceId,
};

const TRACEPARENT_ANNOTATION: &str = "tracing.k8s.io/traceparent";
const GENERATION_ANNOTATION: &str = "trail.kubewake.io/generation";
const CHANGED_ANNOTATION: &str = "trail.kubewake.io/changed";
/// Kinds whose status tells when they became ready. Only the metadata is read of all others.
const KINDS_WITH_STATUS: [(&str, &str); 2] = [("v1", "Pod"), ("apps/v1", "Deployment")];

/// The longest time from the start of a pod to its readiness: the default progress deadline of a Deployment.
const MAX_READY_DELAY: SignedDuration = SignedDuration::from_mins(10);

pub(super) fn has_status(api_version: &str, kind: &str) -> bool {
    KINDS_WITH_STATUS.contains(&(api_version, kind))
}

/// The stamp of an object's last change, if its annotations name a trace.
pub(super) fn read_stamp(kind: &str, meta: &ObjectMeta, status: Option<&Value>) -> Option<ObjectStamp> {
    let annotation = |key: &str| meta.annotations.as_ref()?.get(key).map(String::as_str);
    let (trace, span) = parse_traceparent(annotation(TRACEPARENT_ANNOTATION)?)?;
    let said = annotation(GENERATION_ANNOTATION).and_then(|text| text.parse().ok());
    let generation: i64 = said.or(meta.generation).unwrap_or_default();
    let changed = annotation(CHANGED_ANNOTATION).and_then(|text| text.parse().ok());
    let start: Timestamp = changed.or_else(|| meta.creation_timestamp.as_ref().map(|time| time.0))?;
    // Skip a status that describes another change.
    let status = status.filter(|_| meta.generation.is_none_or(|now| now == generation));
    let (state, end) = match status {
        Some(status) if kind == "Deployment" => deployment_state(generation, start, status),
        Some(status) => pod_state(start, status),
        None => (ConvergencePhase::Unknown, None),
    };
    let end = end.filter(|end| end.as_second() >= start.as_second());
    let begin = unix_nanos(start)?;
    let duration = end.and_then(unix_nanos).map(|end| end.saturating_sub(begin));
    Some(ObjectStamp { generation, start: begin, duration, state, trace: Some(trace), span: Some(span) })
}

/// The ids of a `traceparent` of any version.
fn parse_traceparent(text: &str) -> Option<(TraceId, u64)> {
    let mut parts = text.trim().split('-');
    let _version = parts.next()?;
    let trace = parts.next()?;
    let span = parts.next()?;
    let _flags = parts.next()?;
    let trace = Some(trace).filter(|digits| digits.len() == 32)?.parse().ok()?;
    let span = Some(span).filter(|digits| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let span = u64::from_str_radix(span, 16).ok()?;
    (trace != TraceId([0; 16]) && span != 0).then_some((trace, span))
}

/// The phase of a Deployment, and when it was reached.
fn deployment_state(generation: i64, start: Timestamp, status: &Value) -> (ConvergencePhase, Option<Timestamp>) {
    // `Available` stays true during a rollout; `Progressing` is updated when the rollout has ended.
    let is_done = |it: &&Value| is_observed(generation, status) && it["reason"] == "NewReplicaSetAvailable";
    let done = condition(status, "Progressing").filter(is_done).and_then(|done| time(&done["lastUpdateTime"]));
    match done.filter(|end| end.as_second() >= start.as_second()) {
        None if is_rolled_out(generation, status) => (ConvergencePhase::Converged, None),
        None => (ConvergencePhase::Converging, None),
        end => (ConvergencePhase::Converged, end),
    }
}

/// The phase of a pod, and when it was reached.
fn pod_state(start: Timestamp, status: &Value) -> (ConvergencePhase, Option<Timestamp>) {
    let containers = || status["containerStatuses"].as_array().into_iter().flatten();
    match status["phase"].as_str() {
        Some("Succeeded") => {
            let ends = containers().filter_map(|it| time(it.pointer("/state/terminated/finishedAt")?));
            return (ConvergencePhase::Converged, ends.max());
        }
        Some("Failed") => return (ConvergencePhase::Failed, None),
        _ => {}
    }
    let Some(ready) = condition(status, "Ready").filter(|ready| ready["status"] == "True") else {
        return (ConvergencePhase::Converging, None);
    };
    // The condition tells when the pod last became ready. That is the first time only if nothing has happened
    // since.
    let started = containers().filter_map(|it| time(it.pointer("/state/running/startedAt")?)).max().unwrap_or(start);
    let is_first = |end: &Timestamp| end.duration_since(started) <= MAX_READY_DELAY;
    let restarted = containers().any(|it| it["restartCount"].as_i64().is_some_and(|count| count > 0));
    (ConvergencePhase::Converged, time(&ready["lastTransitionTime"]).filter(|end| !restarted && is_first(end)))
}

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn is_observed(generation: i64, status: &Value) -> bool {
    status["observedGeneration"].as_i64().is_some_and(|seen| seen >= generation)
}

/// Whether all pods of a Deployment have the current template. After a mere change of scale no condition tells
/// since when.
fn is_rolled_out(generation: i64, status: &Value) -> bool {
    let count = |name: &str| status[name].as_i64().unwrap_or_default();
    is_observed(generation, status)
        && count("unavailableReplicas") == 0
        && count("updatedReplicas") == count("replicas")
        && count("availableReplicas") == count("replicas")
}

/// Nanoseconds since 1970, up to the year 2554. Times outside that range are dropped, as they could not be
/// shown beside others.
fn unix_nanos(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests;
