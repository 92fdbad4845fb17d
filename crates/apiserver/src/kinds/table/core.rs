//! Columns of the core group.

use serde_json::{Value, json};

use super::{AGE, Column, NAME, Row, boolean, integer, pod, text, wide, words};
use crate::{
    api::meta::Meta,
    kinds::{
        jsonpath::shown,
        object::{at, list_at, number_at, text_at},
        selector,
    },
};

pub(super) fn columns(kind: &str) -> Option<&'static [Column]> {
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

const CONFIG_MAP: &[Column] =
    &[NAME, text("Data", words::CONFIG_DATA, |row| (count(row, "data") + count(row, "binaryData")).into()), AGE];

const SECRET: &[Column] = &[
    NAME,
    text("Type", words::SECRET_TYPE, |row| row.text(&["type"]).into()),
    text("Data", words::SECRET_DATA, |row| count(row, "data").into()),
    AGE,
];

const NAMESPACE: &[Column] =
    &[NAME, text("Status", "The status of the namespace", |row| row.text(&["status", "phase"]).into()), AGE];

const SERVICE: &[Column] = &[
    NAME,
    text("Type", words::SERVICE_TYPE, |row| row.text(&["spec", "type"]).into()),
    text("Cluster-IP", words::SERVICE_CLUSTER_IP, |row| row.or(&["spec", "clusterIP"], "<none>")),
    text("External-IP", words::SERVICE_EXTERNAL_IP, |row| external_ip(row).into()),
    text("Port(s)", words::SERVICE_PORTS, |row| none_if_empty(service_ports(row))),
    AGE,
    wide("Selector", words::SERVICE_SELECTOR, |row| {
        none_if_empty(at(row.object, &["spec", "selector"]).map(selector::map_line).unwrap_or_default())
    }),
];

const ENDPOINTS: &[Column] =
    &[NAME, text("Endpoints", "Addresses and ports that are ready.", |row| endpoints(row).into()), AGE];

const NODE: &[Column] = &[
    NAME,
    text("Status", "The status of the node", |row| node_status(row).into()),
    text("Roles", "The roles of the node", |row| none_if_empty(roles(row))),
    AGE,
    text("Version", "The version of the node's agent.", |row| {
        row.text(&["status", "nodeInfo", "kubeletVersion"]).into()
    }),
    wide("Internal-IP", "Its address inside the cluster.", |row| address(row, "InternalIP")),
    wide("External-IP", "Its address outside the cluster.", |row| address(row, "ExternalIP")),
    wide("OS-Image", "Its operating system.", |row| row.or(&["status", "nodeInfo", "osImage"], "<unknown>")),
    wide("Kernel-Version", "Its kernel.", |row| row.or(&["status", "nodeInfo", "kernelVersion"], "<unknown>")),
    wide("Container-Runtime", "What runs its containers.", |row| {
        row.or(&["status", "nodeInfo", "containerRuntimeVersion"], "<unknown>")
    }),
];

pub(super) const EVENT: &[Column] = &[
    text("Last Seen", "Time this event was last observed", |row| last_seen(row).into()),
    text("Type", "Type of this event (Normal, Warning).", |row| row.text(&["type"]).into()),
    text("Reason", "Why it happened, in one word.", |row| row.text(&["reason"]).into()),
    text("Object", "The object that this event is about.", |row| involved(row).into()),
    wide("Subobject", "The part of the object.", |row| involved_field(row, "fieldPath").into()),
    wide("Source", "Who reports this event.", |row| source(row).into()),
    text("Message", "What happened.", |row| either(row, &["message"], &["note"]).trim().into()),
    wide("First Seen", "Time this event was first observed", |row| first_seen(row).into()),
    wide("Count", "How often this has happened.", |row| event_count(row).into()),
    Column { wide: true, ..NAME },
];

const VOLUME: &[Column] = &[
    NAME,
    text("Capacity", "How much it holds.", |row| amount(row, &["spec", "capacity", "storage"])),
    text("Access Modes", "How it can be mounted.", |row| modes(row.list(&["spec", "accessModes"])).into()),
    text("Reclaim Policy", "What happens to it when its claim goes.", |row| {
        row.text(&["spec", "persistentVolumeReclaimPolicy"]).into()
    }),
    text("Status", "Whether it is bound.", phase),
    text("Claim", "The claim that it is bound to.", |row| match at(row.object, &["spec", "claimRef"]) {
        Some(claim) => format!("{}/{}", text_at(claim, &["namespace"]), text_at(claim, &["name"])).into(),
        None => json!(""),
    }),
    text("StorageClass", "Its class.", |row| row.text(&["spec", "storageClassName"]).into()),
    text("VolumeAttributesClass", "The class of its attributes.", |row| {
        row.or(&["spec", "volumeAttributesClassName"], "<unset>")
    }),
    text("Reason", "Why it is in its phase.", |row| row.text(&["status", "reason"]).into()),
    AGE,
    wide("VolumeMode", "A file system or a block device.", |row| row.or(&["spec", "volumeMode"], "<unset>")),
];

const CLAIM: &[Column] = &[
    NAME,
    text("Status", "Whether it is bound.", phase),
    text("Volume", "The volume that it is bound to.", |row| row.text(&["spec", "volumeName"]).into()),
    text("Capacity", "How much it holds.", |row| if_bound(row, |row| amount(row, &["status", "capacity", "storage"]))),
    text("Access Modes", "How it can be mounted.", |row| {
        if_bound(row, |row| modes(row.list(&["status", "accessModes"])).into())
    }),
    text("StorageClass", "Its class.", |row| row.text(&["spec", "storageClassName"]).into()),
    text("VolumeAttributesClass", "The class of its attributes.", |row| {
        row.or(&["spec", "volumeAttributesClassName"], "<unset>")
    }),
    AGE,
    wide("VolumeMode", "A file system or a block device.", |row| row.or(&["spec", "volumeMode"], "<unset>")),
];

const POD_TEMPLATE: &[Column] = &[
    NAME,
    text("Containers", "Names of each container in the template.", |row| {
        super::apps::joined(row.list(&["template", "spec", "containers"]), "name")
    }),
    text("Images", "Images referenced by each container in the template.", |row| {
        super::apps::joined(row.list(&["template", "spec", "containers"]), "image")
    }),
    text("Pod Labels", "The labels for the pod template.", |row| {
        none_if_empty(at(row.object, &["template", "metadata", "labels"]).map(selector::map_line).unwrap_or_default())
    }),
];

const QUOTA: &[Column] = &[
    NAME,
    text("Request", "Requests and what limits them.", |row| quota(row, false).into()),
    text("Limit", "Limits and what limits them.", |row| quota(row, true).into()),
    AGE,
];

/// Columns of kinds that no row of this file needs yet use these shapes.
pub(super) const CLASS_DEFAULT: Column =
    boolean("Global-Default", "Whether pods have it when they name none.", |row| {
        row.is_true(&["globalDefault"]).into()
    });
pub(super) const CLASS_VALUE: Column = integer("Value", "The priority itself.", |row| row.number(&["value"]).into());

fn count(row: &Row<'_>, field: &str) -> usize {
    row.object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

pub(super) fn none_if_empty(text: String) -> Value {
    if text.is_empty() { json!("<none>") } else { text.into() }
}

fn amount(row: &Row<'_>, path: &[&str]) -> Value {
    at(row.object, path).map(shown).unwrap_or_else(|| "0".to_owned()).into()
}

fn phase(row: &Row<'_>) -> Value {
    if row.object.is_deleting() { json!("Terminating") } else { row.text(&["status", "phase"]).into() }
}

fn if_bound(row: &Row<'_>, cell: fn(&Row<'_>) -> Value) -> Value {
    if row.text(&["spec", "volumeName"]).is_empty() { json!("") } else { cell(row) }
}

fn modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |long: &str| modes.iter().any(|mode| mode == long);
    SHORT.iter().filter(|(long, _)| has(long)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn external_ip(row: &Row<'_>) -> String {
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

fn service_ports(row: &Row<'_>) -> String {
    let one = |port: &Value| {
        let (number, protocol) = (number_at(port, &["port"]), text_at(port, &["protocol"]));
        match number_at(port, &["nodePort"]) {
            0 => format!("{number}/{protocol}"),
            node => format!("{number}:{node}/{protocol}"),
        }
    };
    row.list(&["spec", "ports"]).iter().map(one).collect::<Vec<_>>().join(",")
}

/// At most three, and how many more.
fn endpoints(row: &Row<'_>) -> String {
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

fn node_status(row: &Row<'_>) -> String {
    let ready = row.list(&["status", "conditions"]).iter().find(|one| text_at(one, &["type"]) == "Ready");
    let status = match ready.map(|ready| text_at(ready, &["status"])) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let closed = if row.is_true(&["spec", "unschedulable"]) { ",SchedulingDisabled" } else { "" };
    format!("{status}{closed}")
}

fn roles(row: &Row<'_>) -> String {
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

fn address(row: &Row<'_>, kind: &str) -> Value {
    let found = row.list(&["status", "addresses"]).iter().find(|one| text_at(one, &["type"]) == kind);
    found.map_or_else(|| json!("<none>"), |one| text_at(one, &["address"]).into())
}

/// Events are shown in either of their shapes.
fn either<'a>(row: &'a Row<'_>, one: &[&str], other: &[&str]) -> &'a str {
    match row.text(one) {
        "" => row.text(other),
        text => text,
    }
}

fn involved_field<'a>(row: &'a Row<'_>, field: &str) -> &'a str {
    either(row, &["involvedObject", field], &["regarding", field])
}

fn involved(row: &Row<'_>) -> String {
    let (kind, name) = (involved_field(row, "kind").to_lowercase(), involved_field(row, "name"));
    if name.is_empty() { kind } else { format!("{kind}/{name}") }
}

fn first_seen(row: &Row<'_>) -> String {
    match either(row, &["firstTimestamp"], &["deprecatedFirstTimestamp"]) {
        "" => row.since(row.text(&["eventTime"])),
        time => row.since(time),
    }
}

fn last_seen(row: &Row<'_>) -> String {
    let series = row.text(&["series", "lastObservedTime"]);
    if at(row.object, &["series"]).is_some_and(Value::is_object) {
        return row.since(series);
    }
    match either(row, &["lastTimestamp"], &["deprecatedLastTimestamp"]) {
        "" => first_seen(row),
        time => row.since(time),
    }
}

fn event_count(row: &Row<'_>) -> i64 {
    let counts = [&["series", "count"][..], &["count"], &["deprecatedCount"]];
    counts.iter().map(|path| row.number(path)).find(|count| *count != 0).unwrap_or(1)
}

fn source(row: &Row<'_>) -> String {
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

fn quota(row: &Row<'_>, limits: bool) -> String {
    let hard = at(row.object, &["status", "hard"]).and_then(Value::as_object).into_iter().flatten();
    let of_sort = hard.filter(|(name, _)| name.starts_with("limits") == limits);
    let one = |(name, most): (&String, &Value)| {
        let used = at(row.object, &["status", "used", name]).map(shown).unwrap_or_else(|| "0".to_owned());
        format!("{name}: {used}/{}", shown(most))
    };
    of_sort.map(one).collect::<Vec<_>>().join(", ")
}
