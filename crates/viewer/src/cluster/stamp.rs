//! What an object of the cluster says of its last change: the trace in its annotations, and when it was ready.
//!
//! *Assumed.* The annotations are those that the trail library and the webhook write unless they are told otherwise. *Not done.* Times of the cluster are whole seconds, so
//! what is measured between them is no more exact.

use jiff::{SignedDuration, Timestamp};
use kube::core::ObjectMeta;
use serde_json::Value;

use crate::{
    query::objects::{Stamp, State},
    store::TraceId,
};

const TRACEPARENT: &str = "tracing.k8s.io/traceparent";
const GENERATION: &str = "trail.kubewake.io/generation";
const CHANGED: &str = "trail.kubewake.io/changed";
/// Kinds whose status says when they were ready. Of all others only the metadata is read.
const TELLING: [(&str, &str); 2] = [("v1", "Pod"), ("apps/v1", "Deployment")];

/// How long after its start a pod becomes ready, at most: as long as a Deployment waits for one unless it is told otherwise.
const SLOWEST: SignedDuration = SignedDuration::from_mins(10);

pub(super) fn has_status(api_version: &str, kind: &str) -> bool {
    TELLING.contains(&(api_version, kind))
}

/// What an object says of the change that its annotations name the trace of.
pub(super) fn stamp(kind: &str, meta: &ObjectMeta, status: Option<&Value>) -> Option<Stamp> {
    let annotation = |key: &str| meta.annotations.as_ref()?.get(key).map(String::as_str);
    let (trace, span) = context(annotation(TRACEPARENT)?)?;
    let said = annotation(GENERATION).and_then(|text| text.parse().ok());
    let generation: i64 = said.or(meta.generation).unwrap_or_default();
    let changed = annotation(CHANGED).and_then(|text| text.parse().ok());
    let start: Timestamp = changed.or_else(|| meta.creation_timestamp.as_ref().map(|time| time.0))?;
    // A status that is about another change says nothing of this one.
    let status = status.filter(|_| meta.generation.is_none_or(|now| now == generation));
    let (state, end) = match status {
        Some(status) if kind == "Deployment" => deployment(generation, start, status),
        Some(status) => pod(start, status),
        None => (State::Unknown, None),
    };
    let end = end.filter(|end| end.as_second() >= start.as_second());
    let begin = nanos(start)?;
    let duration = end.and_then(nanos).map(|end| end.saturating_sub(begin));
    Some(Stamp { generation, start: begin, duration, state, trace: Some(trace), span: Some(span) })
}

/// The ids of a `traceparent` of any version.
fn context(text: &str) -> Option<(TraceId, u64)> {
    let mut parts = text.trim().split('-');
    let (_version, trace, span, _flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let trace = Some(trace).filter(|digits| digits.len() == 32)?.parse().ok()?;
    let span = Some(span).filter(|digits| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let span = u64::from_str_radix(span, 16).ok()?;
    (trace != TraceId([0; 16]) && span != 0).then_some((trace, span))
}

/// How far a Deployment is, and when it came there.
fn deployment(generation: i64, start: Timestamp, status: &Value) -> (State, Option<Timestamp>) {
    // It is available all the while it is rolled out; this one is renewed when that has ended.
    let is_done = |it: &&Value| is_seen(generation, status) && it["reason"] == "NewReplicaSetAvailable";
    let done = condition(status, "Progressing").filter(is_done).and_then(|done| time(&done["lastUpdateTime"]));
    match done.filter(|end| end.as_second() >= start.as_second()) {
        None if is_rolled_out(generation, status) => (State::Converged, None),
        None => (State::Converging, None),
        end => (State::Converged, end),
    }
}

/// How far a pod is, and when it came there.
fn pod(start: Timestamp, status: &Value) -> (State, Option<Timestamp>) {
    let containers = || status["containerStatuses"].as_array().into_iter().flatten();
    match status["phase"].as_str() {
        Some("Succeeded") => {
            let ends = containers().filter_map(|it| time(it.pointer("/state/terminated/finishedAt")?));
            return (State::Converged, ends.max());
        }
        Some("Failed") => return (State::Failed, None),
        _ => {}
    }
    let Some(ready) = condition(status, "Ready").filter(|ready| ready["status"] == "True") else {
        return (State::Converging, None);
    };
    // What is said is when it became ready for the last time: that is the first one only if nothing has happened since.
    let started = containers().filter_map(|it| time(it.pointer("/state/running/startedAt")?)).max().unwrap_or(start);
    let is_first = |end: &Timestamp| end.duration_since(started) <= SLOWEST;
    let restarted = containers().any(|it| it["restartCount"].as_i64().is_some_and(|count| count > 0));
    (State::Converged, time(&ready["lastTransitionTime"]).filter(|end| !restarted && is_first(end)))
}

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn is_seen(generation: i64, status: &Value) -> bool {
    status["observedGeneration"].as_i64().is_some_and(|seen| seen >= generation)
}

/// Whether all pods of a Deployment are those that it wants. After it was only scaled nothing says since when.
fn is_rolled_out(generation: i64, status: &Value) -> bool {
    let count = |name: &str| status[name].as_i64().unwrap_or_default();
    is_seen(generation, status)
        && count("unavailableReplicas") == 0
        && count("updatedReplicas") == count("replicas")
        && count("availableReplicas") == count("replicas")
}

/// Nanoseconds since 1970, up to the year 2554. What is said to be before or after is no time that could be shown beside others.
fn nanos(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests;
