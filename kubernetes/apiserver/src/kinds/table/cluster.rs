//! Columns of cluster infrastructure: flow control, storage drivers, devices, addresses and registered APIs.
//!
//! The descriptions of the columns are in `descriptions.json`.

use serde_json::{Value, json};

use super::{AGE, NAME, PrinterColumn, PrinterRow, boolean, integer, text};
use crate::{
    api::meta::MetaAccessor,
    kinds::json_object::{list_at, text_at, value_at},
};

pub(super) fn columns(group: &str, kind: &str) -> Option<&'static [PrinterColumn]> {
    Some(match (group, kind) {
        ("", "ComponentStatus") => COMPONENT,
        ("apiregistration.k8s.io", "APIService") => API_SERVICE,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => PRIORITY_LEVEL,
        ("networking.k8s.io", "IPAddress") => ADDRESS,
        ("networking.k8s.io", "ServiceCIDR") => SERVICE_RANGE,
        ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => &[NAME, AGE],
        ("resource.k8s.io", "ResourceClaim") => RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceSlice") => RESOURCE_SLICE,
        ("storage.k8s.io", "CSIDriver") => STORAGE_DRIVER,
        ("storage.k8s.io", "CSINode") => STORAGE_NODE,
        ("storage.k8s.io", "CSIStorageCapacity") => STORAGE_CAPACITY,
        ("storage.k8s.io", "VolumeAttachment") => ATTACHMENT,
        ("storage.k8s.io", "VolumeAttributesClass") => ATTRIBUTES_CLASS,
        _ => return None,
    })
}

/// The `scale` of any built-in kind.
pub(super) const SCALE: &[PrinterColumn] = &[
    NAME,
    integer("Desired", "", |row| row.number(&["spec", "replicas"]).into()),
    integer("Available", "", |row| row.number(&["status", "replicas"]).into()),
    AGE,
];

const COMPONENT: &[PrinterColumn] = &[
    NAME,
    text("Status", "", |row| match health(row).map(|condition| text_at(condition, &["status"])) {
        Some("True") => "Healthy".into(),
        Some(_) => "Unhealthy".into(),
        None => "Unknown".into(),
    }),
    text("Message", "", |row| health(row).map_or("", |condition| text_at(condition, &["message"])).into()),
    text("Error", "", |row| health(row).map_or("", |condition| text_at(condition, &["error"])).into()),
];

fn health<'a>(row: &PrinterRow<'a>) -> Option<&'a Value> {
    list_at(row.object, &["conditions"]).iter().find(|condition| text_at(condition, &["type"]) == "Healthy")
}

const API_SERVICE: &[PrinterColumn] = &[
    NAME,
    text("Service", "", |row| match value_at(row.object, &["spec", "service"]) {
        Some(service) => format!("{}/{}", text_at(service, &["namespace"]), text_at(service, &["name"])).into(),
        None => "Local".into(),
    }),
    text("Available", "", |row| {
        let conditions = row.list(&["status", "conditions"]);
        let Some(found) = conditions.iter().find(|condition| text_at(condition, &["type"]) == "Available") else {
            return "Unknown".into();
        };
        match (text_at(found, &["status"]), text_at(found, &["reason"])) {
            ("True", _) => "True".into(),
            (status, reason) => format!("{status} ({reason})").into(),
        }
    }),
    AGE,
];

const FLOW_SCHEMA: &[PrinterColumn] = &[
    NAME,
    text("PriorityLevel", "", |row| row.text(&["spec", "priorityLevelConfiguration", "name"]).into()),
    text("MatchingPrecedence", "", |row| row.number(&["spec", "matchingPrecedence"]).into()),
    text("DistinguisherMethod", "", |row| row.text_or(&["spec", "distinguisherMethod", "type"], "<none>")),
    AGE,
    text("MissingPL", "", |row| {
        let conditions = row.list(&["status", "conditions"]);
        let dangling = conditions.iter().find(|condition| text_at(condition, &["type"]) == "Dangling");
        dangling.map_or("?", |condition| text_at(condition, &["status"])).into()
    }),
];

const PRIORITY_LEVEL: &[PrinterColumn] = &[
    NAME,
    text("Type", "", |row| row.text(&["spec", "type"]).into()),
    text("NominalConcurrencyShares", "", |row| limited(row, &["nominalConcurrencyShares"])),
    text("Queues", "", |row| limited(row, &["limitResponse", "queuing", "queues"])),
    text("HandSize", "", |row| limited(row, &["limitResponse", "queuing", "handSize"])),
    text("QueueLengthLimit", "", |row| limited(row, &["limitResponse", "queuing", "queueLengthLimit"])),
    AGE,
];

fn limited(row: &PrinterRow<'_>, path: &[&str]) -> Value {
    let limited = value_at(row.object, &["spec", "limited"]);
    limited.and_then(|limited| value_at(limited, path)).cloned().unwrap_or_else(|| json!("<none>"))
}

const ADDRESS: &[PrinterColumn] = &[
    NAME,
    text("ParentRef", "", |row| {
        let Some(parent) = value_at(row.object, &["spec", "parentRef"]) else { return "<none>".into() };
        let part = |field: &str| text_at(parent, &[field]);
        let group = if part("group").is_empty() { String::new() } else { format!(".{}", part("group")) };
        let namespace = if part("namespace").is_empty() { String::new() } else { format!("/{}", part("namespace")) };
        format!("{}{namespace}/{}", format!("{}{group}", part("resource")).to_lowercase(), part("name")).into()
    }),
];

const SERVICE_RANGE: &[PrinterColumn] =
    &[NAME, text("CIDRs", "", |row| joined(row.list(&["spec", "cidrs"])).into()), AGE];

fn joined(texts: &[Value]) -> String {
    texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

const RESOURCE_CLAIM: &[PrinterColumn] = &[
    NAME,
    text("State", "", |row| {
        let deleted = row.object.is_deleting();
        let allocated = value_at(row.object, &["status", "allocation"]).is_some();
        let reserved = allocated && !row.list(&["status", "reservedFor"]).is_empty();
        let states = [
            ("deleted", deleted),
            ("pending", !deleted && !allocated),
            ("allocated", allocated),
            ("reserved", reserved),
        ];
        states.iter().filter(|(_, so)| *so).map(|(state, _)| *state).collect::<Vec<_>>().join(",").into()
    }),
    AGE,
];

const RESOURCE_SLICE: &[PrinterColumn] = &[
    NAME,
    text("Node", "", |row| row.text(&["spec", "nodeName"]).into()),
    text("Driver", "", |row| row.text(&["spec", "driver"]).into()),
    text("Pool", "", |row| row.text(&["spec", "pool", "name"]).into()),
    AGE,
];

const STORAGE_DRIVER: &[PrinterColumn] = &[
    NAME,
    boolean("AttachRequired", "", |row| {
        value_at(row.object, &["spec", "attachRequired"]).and_then(Value::as_bool).unwrap_or(true).into()
    }),
    boolean("PodInfoOnMount", "", |row| row.is_true(&["spec", "podInfoOnMount"]).into()),
    boolean("StorageCapacity", "", |row| row.is_true(&["spec", "storageCapacity"]).into()),
    text("TokenRequests", "", |row| {
        let Some(requests) = value_at(row.object, &["spec", "tokenRequests"]).and_then(Value::as_array) else {
            return "<unset>".into();
        };
        let audiences: Vec<&str> = requests.iter().map(|request| text_at(request, &["audience"])).collect();
        audiences.join(",").into()
    }),
    boolean("RequiresRepublish", "", |row| row.is_true(&["spec", "requiresRepublish"]).into()),
    text("Modes", "", |row| match joined(row.list(&["spec", "volumeLifecycleModes"])).as_str() {
        "" => "<none>".into(),
        modes => modes.into(),
    }),
    AGE,
];

const STORAGE_NODE: &[PrinterColumn] =
    &[NAME, integer("Drivers", "", |row| row.list(&["spec", "drivers"]).len().into()), AGE];

const STORAGE_CAPACITY: &[PrinterColumn] = &[
    NAME,
    text("StorageClassName", "", |row| row.text(&["storageClassName"]).into()),
    text("Capacity", "", |row| row.text_or(&["capacity"], "<unset>")),
];

const ATTACHMENT: &[PrinterColumn] = &[
    NAME,
    text("Attacher", "", |row| row.text(&["spec", "attacher"]).into()),
    text("PV", "", |row| row.text(&["spec", "source", "persistentVolumeName"]).into()),
    text("Node", "", |row| row.text(&["spec", "nodeName"]).into()),
    boolean("Attached", "", |row| row.is_true(&["status", "attached"]).into()),
    AGE,
];

const ATTRIBUTES_CLASS: &[PrinterColumn] = &[NAME, text("DriverName", "", |row| row.text(&["driverName"]).into()), AGE];
