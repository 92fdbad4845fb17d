//! Columns of the workloads in the groups `apps` and `batch`.

use serde_json::{Value, json};

use super::{AGE, NAME, PrinterColumn, PrinterRow, age, boolean, core::none_if_empty, integer, text, wide};
use crate::{
    api::meta::MetaAccessor,
    kinds::{
        json_object::{list_at, text_at, value_at},
        selector,
    },
};

pub(super) fn columns(kind: &str) -> Option<&'static [PrinterColumn]> {
    Some(match kind {
        "ControllerRevision" => REVISION,
        "CronJob" => CRON_JOB,
        "DaemonSet" => DAEMON_SET,
        "Deployment" => DEPLOYMENT,
        "Job" => JOB,
        "ReplicaSet" => REPLICAS,
        "StatefulSet" => STATEFUL_SET,
        _ => return None,
    })
}

const CONTAINERS: PrinterColumn = wide("Containers", "Names of each container in the template.", |row| {
    joined(row.list(&["spec", "template", "spec", "containers"]), "name")
});
const IMAGES: PrinterColumn = wide("Images", "Images referenced by each container in the template.", |row| {
    joined(row.list(&["spec", "template", "spec", "containers"]), "image")
});
const SELECTOR: PrinterColumn = wide("Selector", "Label selector of the pods that it manages.", |row| {
    let selector = value_at(row.object, &["spec", "selector"]);
    none_if_empty(selector.map(either_selector).unwrap_or_default())
});

const DEPLOYMENT: &[PrinterColumn] = &[
    NAME,
    text("Ready", "Number of the pod with ready state", |row| {
        format!("{}/{}", row.number(&["status", "readyReplicas"]), row.number(&["spec", "replicas"])).into()
    }),
    text("Up-to-date", "Number of pods with the newest template.", |row| {
        row.number(&["status", "updatedReplicas"]).into()
    }),
    text("Available", "Number of pods that have been ready for minReadySeconds.", |row| {
        row.number(&["status", "availableReplicas"]).into()
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) const REPLICAS: &[PrinterColumn] = &[
    NAME,
    integer("Desired", "Desired number of pods.", |row| row.number(&["spec", "replicas"]).into()),
    integer("Current", "Current number of pods.", |row| row.number(&["status", "replicas"]).into()),
    integer("Ready", "Number of ready pods.", |row| row.number(&["status", "readyReplicas"]).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const STATEFUL_SET: &[PrinterColumn] = &[
    NAME,
    text("Ready", "Number of the pod with ready state", |row| {
        format!("{}/{}", row.number(&["status", "readyReplicas"]), row.number(&["spec", "replicas"])).into()
    }),
    AGE,
    CONTAINERS,
    IMAGES,
];

const DAEMON_SET: &[PrinterColumn] = &[
    NAME,
    integer("Desired", "Number of nodes that should run a pod.", |row| {
        row.number(&["status", "desiredNumberScheduled"]).into()
    }),
    integer("Current", "Number of nodes that run a pod.", |row| {
        row.number(&["status", "currentNumberScheduled"]).into()
    }),
    integer("Ready", "Number of ready pods.", |row| row.number(&["status", "numberReady"]).into()),
    integer("Up-to-date", "Number of pods with the newest template.", |row| {
        row.number(&["status", "updatedNumberScheduled"]).into()
    }),
    integer("Available", "Number of pods that have been ready for minReadySeconds.", |row| {
        row.number(&["status", "numberAvailable"]).into()
    }),
    text("Node Selector", "Label selector of the nodes.", |row| {
        let nodes = value_at(row.object, &["spec", "template", "spec", "nodeSelector"]);
        none_if_empty(nodes.map(selector::format_labels).unwrap_or_default())
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const JOB: &[PrinterColumn] = &[
    NAME,
    text("Status", "Status of the job.", |row| job_status(row).into()),
    text("Completions", "Number of succeeded pods, of the number of required completions.", |row| {
        completions(row).into()
    }),
    text("Duration", "Time required to complete the job.", |row| duration(row).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const CRON_JOB: &[PrinterColumn] = &[
    NAME,
    text("Schedule", "Schedule in cron format.", |row| row.text(&["spec", "schedule"]).into()),
    text("Timezone", "Time zone of the schedule.", |row| row.text_or(&["spec", "timeZone"], "<none>")),
    boolean("Suspend", "Whether subsequent executions are suspended.", |row| {
        let suspend = value_at(row.object, &["spec", "suspend"]).and_then(Value::as_bool);
        suspend.map_or_else(|| json!("<unset>"), |yes| if yes { json!("True") } else { json!("False") })
    }),
    integer("Active", "Number of running jobs.", |row| row.list(&["status", "active"]).len().into()),
    text("Last Schedule", "Time of the last scheduled run.", |row| match row.text(&["status", "lastScheduleTime"]) {
        "" => json!("<none>"),
        time => row.since(time).into(),
    }),
    AGE,
    wide("Containers", "Names of each container in the template.", |row| joined(cron_containers(row), "name")),
    wide("Images", "Images referenced by each container in the template.", |row| joined(cron_containers(row), "image")),
    wide("Selector", "Label selector of the pods that it manages.", |row| {
        let selector = value_at(row.object, &["spec", "jobTemplate", "spec", "selector"]);
        none_if_empty(selector.map(either_selector).unwrap_or_default())
    }),
];

const REVISION: &[PrinterColumn] = &[
    NAME,
    text("Controller", "Controller that owns the revision.", |row| {
        let owner = row.object.owners().iter().find(|owner| owner.get("controller") == Some(&json!(true)));
        owner.map_or_else(|| json!("<none>"), |owner| controller(owner).into())
    }),
    text("Revision", "Number of the revision.", |row| row.number(&["revision"]).into()),
    AGE,
];

/// A field of all containers, in one line.
pub(super) fn joined(containers: &[Value], field: &str) -> Value {
    containers.iter().map(|one| text_at(one, &[field])).collect::<Vec<_>>().join(",").into()
}

/// A selector, or the plain map of older kinds.
fn either_selector(wanted: &Value) -> String {
    let is_new = wanted.get("matchLabels").is_some_and(Value::is_object) || wanted.get("matchExpressions").is_some();
    if is_new { selector::format_selector(wanted) } else { selector::format_labels(wanted) }
}

fn cron_containers<'a>(row: &'a PrinterRow<'_>) -> &'a [Value] {
    list_at(row.object, &["spec", "jobTemplate", "spec", "template", "spec", "containers"])
}

fn controller(owner: &Value) -> String {
    let group = text_at(owner, &["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let kind = text_at(owner, &["kind"]).to_lowercase();
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{}", text_at(owner, &["name"]))
}

fn job_status(row: &PrinterRow<'_>) -> &'static str {
    let has = |kind: &str| {
        let conditions = row.list(&["status", "conditions"]);
        conditions.iter().any(|one| text_at(one, &["type"]) == kind && text_at(one, &["status"]) == "True")
    };
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if row.object.is_deleting() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(row: &PrinterRow<'_>) -> String {
    let done = row.number(&["status", "succeeded"]);
    match (value_at(row.object, &["spec", "completions"]).and_then(Value::as_i64), row.number(&["spec", "parallelism"]))
    {
        (Some(all), _) => format!("{done}/{all}"),
        (None, at_once) if at_once > 1 => format!("{done}/1 of {at_once}"),
        (None, _) => format!("{done}/1"),
    }
}

fn duration(row: &PrinterRow<'_>) -> String {
    match (row.text(&["status", "startTime"]), row.text(&["status", "completionTime"])) {
        ("", _) => String::new(),
        (start, "") => row.since(start),
        (start, end) => age::between(start, end),
    }
}
