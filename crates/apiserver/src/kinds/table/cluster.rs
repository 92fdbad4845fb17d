//! Columns of what clusters are made of: flow control, storage drivers, devices, addresses and registered APIs.
//!
//! What the columns say of themselves is in `descriptions.json`.

use serde_json::{Value, json};

use super::{AGE, Column, NAME, Row, boolean, integer, text};
use crate::{
    api::meta::Meta,
    kinds::object::{at, list_at, text_at},
};

pub(super) fn columns(group: &str, kind: &str) -> Option<&'static [Column]> {
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

/// Of the `scale` of any built-in kind.
pub(super) const SCALE: &[Column] = &[
    NAME,
    integer("Desired", "", |row| row.number(&["spec", "replicas"]).into()),
    integer("Available", "", |row| row.number(&["status", "replicas"]).into()),
    AGE,
];

const COMPONENT: &[Column] = &[
    NAME,
    text("Status", "", |row| match health(row).map(|condition| text_at(condition, &["status"])) {
        Some("True") => "Healthy".into(),
        Some(_) => "Unhealthy".into(),
        None => "Unknown".into(),
    }),
    text("Message", "", |row| health(row).map_or("", |condition| text_at(condition, &["message"])).into()),
    text("Error", "", |row| health(row).map_or("", |condition| text_at(condition, &["error"])).into()),
];

fn health<'a>(row: &Row<'a>) -> Option<&'a Value> {
    list_at(row.object, &["conditions"]).iter().find(|condition| text_at(condition, &["type"]) == "Healthy")
}

const API_SERVICE: &[Column] = &[
    NAME,
    text("Service", "", |row| match at(row.object, &["spec", "service"]) {
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

const FLOW_SCHEMA: &[Column] = &[
    NAME,
    text("PriorityLevel", "", |row| row.text(&["spec", "priorityLevelConfiguration", "name"]).into()),
    text("MatchingPrecedence", "", |row| row.number(&["spec", "matchingPrecedence"]).into()),
    text("DistinguisherMethod", "", |row| row.or(&["spec", "distinguisherMethod", "type"], "<none>")),
    AGE,
    text("MissingPL", "", |row| {
        let conditions = row.list(&["status", "conditions"]);
        let dangling = conditions.iter().find(|condition| text_at(condition, &["type"]) == "Dangling");
        dangling.map_or("?", |condition| text_at(condition, &["status"])).into()
    }),
];

const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    text("Type", "", |row| row.text(&["spec", "type"]).into()),
    text("NominalConcurrencyShares", "", |row| limited(row, &["nominalConcurrencyShares"])),
    text("Queues", "", |row| limited(row, &["limitResponse", "queuing", "queues"])),
    text("HandSize", "", |row| limited(row, &["limitResponse", "queuing", "handSize"])),
    text("QueueLengthLimit", "", |row| limited(row, &["limitResponse", "queuing", "queueLengthLimit"])),
    AGE,
];

fn limited(row: &Row<'_>, path: &[&str]) -> Value {
    let limited = at(row.object, &["spec", "limited"]);
    limited.and_then(|limited| at(limited, path)).cloned().unwrap_or_else(|| json!("<none>"))
}

const ADDRESS: &[Column] = &[
    NAME,
    text("ParentRef", "", |row| {
        let Some(parent) = at(row.object, &["spec", "parentRef"]) else { return "<none>".into() };
        let part = |field: &str| text_at(parent, &[field]);
        let group = if part("group").is_empty() { String::new() } else { format!(".{}", part("group")) };
        let namespace = if part("namespace").is_empty() { String::new() } else { format!("/{}", part("namespace")) };
        format!("{}{namespace}/{}", format!("{}{group}", part("resource")).to_lowercase(), part("name")).into()
    }),
];

const SERVICE_RANGE: &[Column] = &[NAME, text("CIDRs", "", |row| joined(row.list(&["spec", "cidrs"])).into()), AGE];

fn joined(texts: &[Value]) -> String {
    texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}

const RESOURCE_CLAIM: &[Column] = &[
    NAME,
    text("State", "", |row| {
        let deleted = row.object.is_deleting();
        let allocated = at(row.object, &["status", "allocation"]).is_some();
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

const RESOURCE_SLICE: &[Column] = &[
    NAME,
    text("Node", "", |row| row.text(&["spec", "nodeName"]).into()),
    text("Driver", "", |row| row.text(&["spec", "driver"]).into()),
    text("Pool", "", |row| row.text(&["spec", "pool", "name"]).into()),
    AGE,
];

const STORAGE_DRIVER: &[Column] = &[
    NAME,
    boolean("AttachRequired", "", |row| {
        at(row.object, &["spec", "attachRequired"]).and_then(Value::as_bool).unwrap_or(true).into()
    }),
    boolean("PodInfoOnMount", "", |row| row.is_true(&["spec", "podInfoOnMount"]).into()),
    boolean("StorageCapacity", "", |row| row.is_true(&["spec", "storageCapacity"]).into()),
    text("TokenRequests", "", |row| {
        let Some(requests) = at(row.object, &["spec", "tokenRequests"]).and_then(Value::as_array) else {
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

const STORAGE_NODE: &[Column] = &[NAME, integer("Drivers", "", |row| row.list(&["spec", "drivers"]).len().into()), AGE];

const STORAGE_CAPACITY: &[Column] = &[
    NAME,
    text("StorageClassName", "", |row| row.text(&["storageClassName"]).into()),
    text("Capacity", "", |row| row.or(&["capacity"], "<unset>")),
];

const ATTACHMENT: &[Column] = &[
    NAME,
    text("Attacher", "", |row| row.text(&["spec", "attacher"]).into()),
    text("PV", "", |row| row.text(&["spec", "source", "persistentVolumeName"]).into()),
    text("Node", "", |row| row.text(&["spec", "nodeName"]).into()),
    boolean("Attached", "", |row| row.is_true(&["status", "attached"]).into()),
    AGE,
];

const ATTRIBUTES_CLASS: &[Column] = &[NAME, text("DriverName", "", |row| row.text(&["driverName"]).into()), AGE];
