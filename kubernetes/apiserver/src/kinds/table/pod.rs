//! The status of a pod in one word, as in `kubectl get pods`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AGE, NAME, PrinterColumn, PrinterRow, age::format_duration, column_descriptions, text, wide};
use crate::{
    api::meta::MetaAccessor,
    kinds::json_object::{list_at, number_at, text_at, value_at},
};

pub(super) const COLUMNS: &[PrinterColumn] = &[
    NAME,
    text("Ready", column_descriptions::POD_READY, |row| {
        let (ready, total) = ready(row.object);
        format!("{ready}/{total}").into()
    }),
    text("Status", column_descriptions::POD_STATUS, |row| status(row.object).into()),
    text("Restarts", column_descriptions::POD_RESTARTS, |row| restarts(row.object, row.now).into()),
    AGE,
    wide("IP", column_descriptions::POD_IP, |row| match row.list(&["status", "podIPs"]).first() {
        Some(ip) => ip.get("ip").cloned().unwrap_or_default(),
        None => json!("<none>"),
    }),
    wide("Node", column_descriptions::POD_NODE, |row| row.text_or(&["spec", "nodeName"], "<none>")),
    wide("Nominated Node", column_descriptions::POD_NOMINATED, |row| {
        row.text_or(&["status", "nominatedNodeName"], "<none>")
    }),
    wide("Readiness Gates", column_descriptions::POD_GATES, gates),
];

fn containers(pod: &Value) -> &[Value] {
    list_at(pod, &["status", "containerStatuses"])
}

/// Init containers that always restart count as containers.
fn sidecars(pod: &Value) -> impl Iterator<Item = &str> {
    let init = list_at(pod, &["spec", "initContainers"]).iter();
    init.filter(|one| text_at(one, &["restartPolicy"]) == "Always").map(|one| text_at(one, &["name"]))
}

fn ready(pod: &Value) -> (usize, usize) {
    let total = list_at(pod, &["spec", "containers"]).len() + sidecars(pod).count();
    let is_ready = |one: &&Value| one.get("ready").and_then(Value::as_bool).unwrap_or(false);
    let running = |one: &&Value| is_ready(one) && value_at(one, &["state", "running"]).is_some();
    let sidecars: Vec<&str> = sidecars(pod).collect();
    let init = list_at(pod, &["status", "initContainerStatuses"]).iter();
    let init = init.filter(|one| sidecars.contains(&text_at(one, &["name"]))).filter(is_ready).count();
    (containers(pod).iter().filter(running).count() + init, total)
}

fn status(pod: &Value) -> String {
    let reason = reason(pod);
    let phase = text_at(pod, &["status", "phase"]);
    if !pod.is_deleting() {
        return reason;
    }
    match text_at(pod, &["status", "reason"]) {
        "NodeLost" => "Unknown".to_owned(),
        _ if ["Failed", "Succeeded"].contains(&phase) => reason,
        _ => "Terminating".to_owned(),
    }
}

fn reason(pod: &Value) -> String {
    let of_pod = match text_at(pod, &["status", "reason"]) {
        "" => text_at(pod, &["status", "phase"]),
        reason => reason,
    };
    let gated = condition(pod, "PodScheduled").is_some_and(|one| text_at(one, &["reason"]) == "SchedulingGated");
    let of_pod = if gated { "SchedulingGated" } else { of_pod };
    match initializing(pod) {
        Some(reason) if !is_true(pod, "Initialized") => reason,
        _ => first_container_reason(pod, of_pod),
    }
}

/// The reason of the first init container that is not done.
fn initializing(pod: &Value) -> Option<String> {
    let all = list_at(pod, &["status", "initContainerStatuses"]);
    let total = list_at(pod, &["spec", "initContainers"]).len();
    let sidecars: Vec<&str> = sidecars(pod).collect();
    for (index, one) in all.iter().enumerate() {
        let ended = value_at(one, &["state", "terminated"]);
        let started = one.get("started").and_then(Value::as_bool).unwrap_or(false);
        if ended.is_some_and(|ended| number_at(ended, &["exitCode"]) == 0) {
            continue;
        }
        if started && sidecars.contains(&text_at(one, &["name"])) {
            continue;
        }
        let waiting = text_at(one, &["state", "waiting", "reason"]);
        return Some(match ended {
            Some(ended) => format!("Init:{}", ended_reason(ended)),
            None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
            None => format!("Init:{index}/{total}"),
        });
    }
    None
}

/// The reason of the first container that has one; a completed container is ignored while others run.
fn first_container_reason(pod: &Value, of_pod: &str) -> String {
    let mut reason = of_pod.to_owned();
    let mut running = false;
    for one in containers(pod).iter().rev() {
        let waiting = text_at(one, &["state", "waiting", "reason"]);
        if !waiting.is_empty() {
            waiting.clone_into(&mut reason);
        } else if let Some(ended) = value_at(one, &["state", "terminated"]) {
            reason = ended_reason(ended);
        } else {
            let ready = one.get("ready").and_then(Value::as_bool).unwrap_or(false);
            running |= ready && value_at(one, &["state", "running"]).is_some();
        }
    }
    if reason == "Completed" && running {
        return if is_true(pod, "Ready") { "Running".to_owned() } else { "NotReady".to_owned() };
    }
    reason
}

fn ended_reason(ended: &Value) -> String {
    match (text_at(ended, &["reason"]), number_at(ended, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", number_at(ended, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn condition<'a>(pod: &'a Value, kind: &str) -> Option<&'a Value> {
    list_at(pod, &["status", "conditions"]).iter().find(|one| text_at(one, &["type"]) == kind)
}

fn is_true(pod: &Value, kind: &str) -> bool {
    condition(pod, kind).is_some_and(|one| text_at(one, &["status"]) == "True")
}

fn restarts(pod: &Value, now: Timestamp) -> String {
    let all = containers(pod).iter();
    let count: i64 = all.clone().map(|one| number_at(one, &["restartCount"])).sum();
    let last =
        all.filter_map(|one| text_at(one, &["lastState", "terminated", "finishedAt"]).parse::<Timestamp>().ok()).max();
    match last.filter(|_| count > 0) {
        Some(last) => format!("{count} ({} ago)", format_duration(now.as_second().saturating_sub(last.as_second()))),
        None => count.to_string(),
    }
}

fn gates(row: &PrinterRow<'_>) -> Value {
    let gates = row.list(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return json!("<none>");
    }
    let open = gates.iter().filter(|gate| is_true(row.object, text_at(gate, &["conditionType"]))).count();
    format!("{open}/{}", gates.len()).into()
}
