//! Columns of the core group.

use serde_json::{Value, json};

use super::{AGE, NAME, PrinterColumn, PrinterRow, boolean, column_descriptions, integer, pod, text, wide};
use crate::{
    api::meta::MetaAccessor,
    kinds::{
        json_object::{list_at, number_at, text_at, value_at},
        jsonpath::format_value,
        selector,
    },
};

pub(super) fn columns(kind: &str) -> Option<&'static [PrinterColumn]> {
    Some(match kind {
        "ConfigMap" => CONFIG_MAP,
        "Endpoints" => ENDPOINTS,
        "Event" => EVENT,
        "Namespace" => NAMESPACE,
        "Node" => NODE,
        "PersistentVolume" => VOLUME,
        "PersistentVolumeClaim" => CLAIM,
        "Pod" => pod::COLUMNS,
        "PodTemplate" => POD_TEMPLATE,
        "ReplicationController" => super::apps::REPLICAS,
        "ResourceQuota" => QUOTA,
        "Secret" => SECRET,
        "Service" => SERVICE,
        "ServiceAccount" => &[NAME, AGE],
        _ => return None,
    })
}

const CONFIG_MAP: &[PrinterColumn] = &[
    NAME,
    text("Data", column_descriptions::CONFIG_DATA, |row| (count(row, "data") + count(row, "binaryData")).into()),
    AGE,
];

const SECRET: &[PrinterColumn] = &[
    NAME,
    text("Type", column_descriptions::SECRET_TYPE, |row| row.text(&["type"]).into()),
    text("Data", column_descriptions::SECRET_DATA, |row| count(row, "data").into()),
    AGE,
];

const NAMESPACE: &[PrinterColumn] =
    &[NAME, text("Status", "The status of the namespace", |row| row.text(&["status", "phase"]).into()), AGE];

const SERVICE: &[PrinterColumn] = &[
    NAME,
    text("Type", column_descriptions::SERVICE_TYPE, |row| row.text(&["spec", "type"]).into()),
    text("Cluster-IP", column_descriptions::SERVICE_CLUSTER_IP, |row| row.text_or(&["spec", "clusterIP"], "<none>")),
    text("External-IP", column_descriptions::SERVICE_EXTERNAL_IP, |row| external_ip(row).into()),
    text("Port(s)", column_descriptions::SERVICE_PORTS, |row| none_if_empty(service_ports(row))),
    AGE,
    wide("Selector", column_descriptions::SERVICE_SELECTOR, |row| {
        none_if_empty(value_at(row.object, &["spec", "selector"]).map(selector::format_labels).unwrap_or_default())
    }),
];

const ENDPOINTS: &[PrinterColumn] =
    &[NAME, text("Endpoints", "Ready addresses and ports.", |row| endpoints(row).into()), AGE];

const NODE: &[PrinterColumn] = &[
    NAME,
    text("Status", "The status of the node", |row| node_status(row).into()),
    text("Roles", "The roles of the node", |row| none_if_empty(roles(row))),
    AGE,
    text("Version", "Kubelet version of the node.", |row| row.text(&["status", "nodeInfo", "kubeletVersion"]).into()),
    wide("Internal-IP", "Internal IP address of the node.", |row| address(row, "InternalIP")),
    wide("External-IP", "External IP address of the node.", |row| address(row, "ExternalIP")),
    wide("OS-Image", "OS image of the node.", |row| row.text_or(&["status", "nodeInfo", "osImage"], "<unknown>")),
    wide("Kernel-Version", "Kernel version of the node.", |row| {
        row.text_or(&["status", "nodeInfo", "kernelVersion"], "<unknown>")
    }),
    wide("Container-Runtime", "Container runtime of the node.", |row| {
        row.text_or(&["status", "nodeInfo", "containerRuntimeVersion"], "<unknown>")
    }),
];

pub(super) const EVENT: &[PrinterColumn] = &[
    text("Last Seen", "Time this event was last observed", |row| last_seen(row).into()),
    text("Type", "Type of this event (Normal, Warning).", |row| row.text(&["type"]).into()),
    text("Reason", "Reason of the event, in one word.", |row| row.text(&["reason"]).into()),
    text("Object", "The object that this event is about.", |row| involved(row).into()),
    wide("Subobject", "Field path of the object.", |row| involved_field(row, "fieldPath").into()),
    wide("Source", "Component that reports this event.", |row| source(row).into()),
    text("Message", "Message of the event.", |row| either(row, &["message"], &["note"]).trim().into()),
    wide("First Seen", "Time this event was first observed", |row| first_seen(row).into()),
    wide("Count", "Number of occurrences of this event.", |row| event_count(row).into()),
    PrinterColumn { wide: true, ..NAME },
];

const VOLUME: &[PrinterColumn] = &[
    NAME,
    text("Capacity", "Capacity of the volume.", |row| amount(row, &["spec", "capacity", "storage"])),
    text("Access Modes", "Access modes of the volume.", |row| modes(row.list(&["spec", "accessModes"])).into()),
    text("Reclaim Policy", "What happens to the volume when its claim is deleted.", |row| {
        row.text(&["spec", "persistentVolumeReclaimPolicy"]).into()
    }),
    text("Status", "Phase of binding.", phase),
    text("Claim", "Claim that the volume is bound to.", |row| match value_at(row.object, &["spec", "claimRef"]) {
        Some(claim) => format!("{}/{}", text_at(claim, &["namespace"]), text_at(claim, &["name"])).into(),
        None => json!(""),
    }),
    text("StorageClass", "Storage class.", |row| row.text(&["spec", "storageClassName"]).into()),
    text("VolumeAttributesClass", "VolumeAttributesClass.", |row| {
        row.text_or(&["spec", "volumeAttributesClassName"], "<unset>")
    }),
    text("Reason", "Reason of the phase.", |row| row.text(&["status", "reason"]).into()),
    AGE,
    wide("VolumeMode", "Volume mode: file system or block device.", |row| {
        row.text_or(&["spec", "volumeMode"], "<unset>")
    }),
];

const CLAIM: &[PrinterColumn] = &[
    NAME,
    text("Status", "Phase of binding.", phase),
    text("Volume", "Volume that the claim is bound to.", |row| row.text(&["spec", "volumeName"]).into()),
    text("Capacity", "Capacity of the volume.", |row| {
        if_bound(row, |row| amount(row, &["status", "capacity", "storage"]))
    }),
    text("Access Modes", "Access modes of the volume.", |row| {
        if_bound(row, |row| modes(row.list(&["status", "accessModes"])).into())
    }),
    text("StorageClass", "Storage class.", |row| row.text(&["spec", "storageClassName"]).into()),
    text("VolumeAttributesClass", "VolumeAttributesClass.", |row| {
        row.text_or(&["spec", "volumeAttributesClassName"], "<unset>")
    }),
    AGE,
    wide("VolumeMode", "Volume mode: file system or block device.", |row| {
        row.text_or(&["spec", "volumeMode"], "<unset>")
    }),
];

const POD_TEMPLATE: &[PrinterColumn] = &[
    NAME,
    text("Containers", "Names of each container in the template.", |row| {
        super::apps::joined(row.list(&["template", "spec", "containers"]), "name")
    }),
    text("Images", "Images referenced by each container in the template.", |row| {
        super::apps::joined(row.list(&["template", "spec", "containers"]), "image")
    }),
    text("Pod Labels", "The labels for the pod template.", |row| {
        none_if_empty(
            value_at(row.object, &["template", "metadata", "labels"]).map(selector::format_labels).unwrap_or_default(),
        )
    }),
];

const QUOTA: &[PrinterColumn] = &[
    NAME,
    text("Request", "Used and allowed requests.", |row| quota(row, false).into()),
    text("Limit", "Used and allowed limits.", |row| quota(row, true).into()),
    AGE,
];

/// Columns that are used in other files.
pub(super) const CLASS_DEFAULT: PrinterColumn =
    boolean("Global-Default", "Whether it is the default class of pods.", |row| row.is_true(&["globalDefault"]).into());
pub(super) const CLASS_VALUE: PrinterColumn = integer("Value", "Priority value.", |row| row.number(&["value"]).into());

fn count(row: &PrinterRow<'_>, field: &str) -> usize {
    row.object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

pub(super) fn none_if_empty(text: String) -> Value {
    if text.is_empty() { json!("<none>") } else { text.into() }
}

fn amount(row: &PrinterRow<'_>, path: &[&str]) -> Value {
    value_at(row.object, path).map(format_value).unwrap_or_else(|| "0".to_owned()).into()
}

fn phase(row: &PrinterRow<'_>) -> Value {
    if row.object.is_deleting() { json!("Terminating") } else { row.text(&["status", "phase"]).into() }
}

fn if_bound(row: &PrinterRow<'_>, cell: fn(&PrinterRow<'_>) -> Value) -> Value {
    if row.text(&["spec", "volumeName"]).is_empty() { json!("") } else { cell(row) }
}

fn modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |long: &str| modes.iter().any(|mode| mode == long);
    SHORT.iter().filter(|(long, _)| has(long)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn external_ip(row: &PrinterRow<'_>) -> String {
    let own = row.list(&["spec", "externalIPs"]).iter().filter_map(Value::as_str).map(str::to_owned);
    let mut all: Vec<String> = match row.text(&["spec", "type"]) {
        "ExternalName" => return row.text(&["spec", "externalName"]).to_owned(),
        "LoadBalancer" => balancers(row.list(&["status", "loadBalancer", "ingress"])),
        _ => Vec::new(),
    };
    all.extend(own);
    match (all.is_empty(), row.text(&["spec", "type"])) {
        (true, "LoadBalancer") => "<pending>".to_owned(),
        (true, _) => "<none>".to_owned(),
        (false, _) => all.join(","),
    }
}

/// The addresses or names of load balancers.
pub(super) fn balancers(list: &[Value]) -> Vec<String> {
    let one = |balancer: &Value| match text_at(balancer, &["ip"]) {
        "" => text_at(balancer, &["hostname"]).to_owned(),
        ip => ip.to_owned(),
    };
    list.iter().map(one).filter(|text| !text.is_empty()).collect()
}

fn service_ports(row: &PrinterRow<'_>) -> String {
    let one = |port: &Value| {
        let number = number_at(port, &["port"]);
        let protocol = text_at(port, &["protocol"]);
        match number_at(port, &["nodePort"]) {
            0 => format!("{number}/{protocol}"),
            node => format!("{number}:{node}/{protocol}"),
        }
    };
    row.list(&["spec", "ports"]).iter().map(one).collect::<Vec<_>>().join(",")
}

/// At most three endpoints, and the number of further ones.
fn endpoints(row: &PrinterRow<'_>) -> String {
    let mut all = Vec::new();
    for subset in row.list(&["subsets"]) {
        let ports = list_at(subset, &["ports"]);
        for address in list_at(subset, &["addresses"]) {
            let ip = text_at(address, &["ip"]);
            if ports.is_empty() {
                all.push(ip.to_owned());
            }
            all.extend(ports.iter().map(|port| format!("{ip}:{}", number_at(port, &["port"]))));
        }
    }
    first_three(&all)
}

pub(super) fn first_three(all: &[String]) -> String {
    match (all.len(), all.get(..3)) {
        (0, _) => "<none>".to_owned(),
        (count, Some(first)) if count > 3 => format!("{} + {} more...", first.join(","), count - 3),
        _ => all.join(","),
    }
}

fn node_status(row: &PrinterRow<'_>) -> String {
    let ready = row.list(&["status", "conditions"]).iter().find(|one| text_at(one, &["type"]) == "Ready");
    let status = match ready.map(|ready| text_at(ready, &["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let closed = if row.is_true(&["spec", "unschedulable"]) { ",SchedulingDisabled" } else { "" };
    format!("{status}{closed}")
}

fn roles(row: &PrinterRow<'_>) -> String {
    let role = |(key, value): (&'_ str, &'_ str)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) if !role.is_empty() => Some(role.to_owned()),
        _ if key == "kubernetes.io/role" && !value.is_empty() => Some(value.to_owned()),
        _ => None,
    };
    let mut roles: Vec<String> = row.object.labels().filter_map(role).collect();
    roles.sort();
    roles.dedup();
    roles.join(",")
}

fn address(row: &PrinterRow<'_>, kind: &str) -> Value {
    let found = row.list(&["status", "addresses"]).iter().find(|one| text_at(one, &["type"]) == kind);
    found.map_or_else(|| json!("<none>"), |one| text_at(one, &["address"]).into())
}

/// Reads a field of an Event in either of its shapes.
fn either<'a>(row: &'a PrinterRow<'_>, one: &[&str], other: &[&str]) -> &'a str {
    match row.text(one) {
        "" => row.text(other),
        text => text,
    }
}

fn involved_field<'a>(row: &'a PrinterRow<'_>, field: &str) -> &'a str {
    either(row, &["involvedObject", field], &["regarding", field])
}

fn involved(row: &PrinterRow<'_>) -> String {
    let kind = involved_field(row, "kind").to_lowercase();
    let name = involved_field(row, "name");
    if name.is_empty() { kind } else { format!("{kind}/{name}") }
}

fn first_seen(row: &PrinterRow<'_>) -> String {
    match either(row, &["firstTimestamp"], &["deprecatedFirstTimestamp"]) {
        "" => row.since(row.text(&["eventTime"])),
        time => row.since(time),
    }
}

fn last_seen(row: &PrinterRow<'_>) -> String {
    let series = row.text(&["series", "lastObservedTime"]);
    if value_at(row.object, &["series"]).is_some_and(Value::is_object) {
        return row.since(series);
    }
    match either(row, &["lastTimestamp"], &["deprecatedLastTimestamp"]) {
        "" => first_seen(row),
        time => row.since(time),
    }
}

fn event_count(row: &PrinterRow<'_>) -> i64 {
    let counts = [&["series", "count"][..], &["count"], &["deprecatedCount"]];
    counts.iter().map(|path| row.number(path)).find(|count| *count != 0).unwrap_or(1)
}

fn source(row: &PrinterRow<'_>) -> String {
    let component = match either(row, &["source", "component"], &["deprecatedSource", "component"]) {
        "" => either(row, &["reportingComponent"], &["reportingController"]),
        component => component,
    };
    let host = match either(row, &["source", "host"], &["deprecatedSource", "host"]) {
        "" => row.text(&["reportingInstance"]),
        host => host,
    };
    if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") }
}

fn quota(row: &PrinterRow<'_>, limits: bool) -> String {
    let hard = value_at(row.object, &["status", "hard"]).and_then(Value::as_object).into_iter().flatten();
    let of_sort = hard.filter(|(name, _)| name.starts_with("limits") == limits);
    let one = |(name, most): (&String, &Value)| {
        let used = value_at(row.object, &["status", "used", name]).map(format_value).unwrap_or_else(|| "0".to_owned());
        format!("{name}: {used}/{}", format_value(most))
    };
    of_sort.map(one).collect::<Vec<_>>().join(", ")
}
