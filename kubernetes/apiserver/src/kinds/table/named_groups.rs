//! Columns of the other groups.

use serde_json::{Value, json};

use super::{
    AGE, CREATED, NAME, PrinterColumn, PrinterRow, age, boolean, column_descriptions,
    core::{self, balancers, first_three, none_if_empty},
    integer, text, wide,
};
use crate::kinds::{
    json_object::{list_at, number_at, text_at, value_at},
    jsonpath::format_value,
    selector,
};

pub(super) fn columns(group: &str, kind: &str) -> Option<&'static [PrinterColumn]> {
    Some(match (group, kind) {
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => POLICY,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => POLICY_BINDING,
        ("admissionregistration.k8s.io", _) => WEBHOOKS,
        ("apiextensions.k8s.io", _) => DEFINITION,
        ("autoscaling", _) => AUTOSCALER,
        ("certificates.k8s.io", _) => SIGNING_REQUEST,
        ("coordination.k8s.io", "Lease") => LEASE,
        ("discovery.k8s.io", _) => SLICE,
        ("events.k8s.io", _) => core::EVENT,
        ("networking.k8s.io", "Ingress") => INGRESS,
        ("networking.k8s.io", "IngressClass") => INGRESS_CLASS,
        ("networking.k8s.io", "NetworkPolicy") => NETWORK_POLICY,
        ("node.k8s.io", "RuntimeClass") => RUNTIME_CLASS,
        ("policy", _) => BUDGET,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => BINDING,
        ("scheduling.k8s.io", "PriorityClass") => PRIORITY_CLASS,
        ("storage.k8s.io", "StorageClass") => STORAGE_CLASS,
        _ => return None,
    })
}

const SIGNING_REQUEST: &[PrinterColumn] = &[
    NAME,
    AGE,
    text("SignerName", "Requested signer.", |row| row.text_or(&["spec", "signerName"], "<none>")),
    text("Requestor", "Requesting user.", |row| row.text(&["spec", "username"]).into()),
    text("RequestedDuration", "Requested validity of the certificate.", |row| {
        match row.number(&["spec", "expirationSeconds"]) {
            0 => "<none>".into(),
            seconds => age::format_duration(seconds).into(),
        }
    }),
    text("Condition", "Conditions of the request.", |row| decided(row).into()),
];

fn decided(row: &PrinterRow<'_>) -> String {
    let conditions = row.list(&["status", "conditions"]);
    let says = |kind: &str| conditions.iter().any(|one| text_at(one, &["type"]) == kind);
    let decision = match (says("Denied"), says("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if says("Failed") { ",Failed" } else { "" };
    let issued = if row.text(&["status", "certificate"]).is_empty() { "" } else { ",Issued" };
    format!("{decision}{failed}{issued}")
}

const LEASE: &[PrinterColumn] =
    &[NAME, text("Holder", column_descriptions::LEASE_HOLDER, |row| row.text(&["spec", "holderIdentity"]).into()), AGE];

const DEFINITION: &[PrinterColumn] = &[
    NAME,
    text("Scope", "Cluster/Namespaced", |row| row.text(&["spec", "scope"]).into()),
    text("Versions", "Served versions", |row| versions(row).into()),
    CREATED,
    wide("Group", "API group", |row| row.text(&["spec", "group"]).into()),
    wide("Kind", "CustomResource kind", |row| row.text(&["spec", "names", "kind"]).into()),
    wide("ShortNames", "Short names", |row| texts(row.list(&["spec", "names", "shortNames"])).join(",").into()),
    PrinterColumn {
        wide: true,
        ..boolean("Established", "Established status", |row| {
            let conditions = row.list(&["status", "conditions"]).iter();
            let mut of_sort = conditions.filter(|one| text_at(one, &["type"]) == "Established");
            of_sort.any(|one| text_at(one, &["status"]) == "True").into()
        })
    },
];

const WEBHOOKS: &[PrinterColumn] =
    &[NAME, integer("Webhooks", "Number of webhooks.", |row| row.list(&["webhooks"]).len().into()), AGE];

const POLICY: &[PrinterColumn] = &[
    NAME,
    integer("Validations", "Number of validations.", |row| row.list(&["spec", "validations"]).len().into()),
    text("ParamKind", "Kind of the parameters.", |row| match value_at(row.object, &["spec", "paramKind"]) {
        Some(kind) => format!("{}/{}", text_at(kind, &["apiVersion"]), text_at(kind, &["kind"])).into(),
        None => json!("<unset>"),
    }),
    AGE,
];

const POLICY_BINDING: &[PrinterColumn] = &[
    NAME,
    text("PolicyName", "Policy that it refers to.", |row| row.text(&["spec", "policyName"]).into()),
    text("ParamRef", "Parameters of the policy.", |row| row.text_or(&["spec", "paramRef", "name"], "<unset>")),
    AGE,
];

const AUTOSCALER: &[PrinterColumn] = &[
    NAME,
    text("Reference", "Scaled object.", |row| {
        let kind = &["spec", "scaleTargetRef", "kind"];
        let name = &["spec", "scaleTargetRef", "name"];
        format!("{}/{}", row.text(kind), row.text(name)).into()
    }),
    text("Targets", "Current and target values of the metrics.", |row| targets(row).into()),
    text("MinPods", "Minimum number of pods.", |row| match value_at(row.object, &["spec", "minReplicas"]) {
        Some(min) => format_value(min).into(),
        None => json!("<unset>"),
    }),
    text("MaxPods", "Maximum number of pods.", |row| row.number(&["spec", "maxReplicas"]).into()),
    text("Replicas", "Current number of pods.", |row| row.number(&["status", "currentReplicas"]).into()),
    AGE,
];

const SLICE: &[PrinterColumn] = &[
    NAME,
    text("AddressType", "Type of the addresses.", |row| row.text(&["addressType"]).into()),
    text("Ports", "Ports of every endpoint.", |row| slice_ports(row).into()),
    text("Endpoints", "Addresses of the endpoints.", |row| {
        let all: Vec<String> =
            row.list(&["endpoints"]).iter().flat_map(|one| texts(list_at(one, &["addresses"]))).collect();
        if all.is_empty() { json!("<unset>") } else { first_three(&all).into() }
    }),
    AGE,
];

const INGRESS: &[PrinterColumn] = &[
    NAME,
    text("Class", "Controller that implements it.", |row| row.text_or(&["spec", "ingressClassName"], "<none>")),
    text("Hosts", "Hosts of the rules.", |row| hosts(row).into()),
    text("Address", "Addresses of the load balancer.", |row| {
        balancers(row.list(&["status", "loadBalancer", "ingress"])).join(",").into()
    }),
    text("Ports", "Ports of the load balancer.", |row| {
        if row.list(&["spec", "tls"]).is_empty() { json!("80") } else { json!("80, 443") }
    }),
    AGE,
];

const INGRESS_CLASS: &[PrinterColumn] = &[
    NAME,
    text("Controller", "Controller that implements it.", |row| row.text(&["spec", "controller"]).into()),
    text("Parameters", "Parameters of the class.", |row| match value_at(row.object, &["spec", "parameters"]) {
        None => json!("<none>"),
        Some(one) => {
            let group = text_at(one, &["apiGroup"]);
            let kind = text_at(one, &["kind"]);
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{group}/{}", text_at(one, &["name"])).into()
        }
    }),
    AGE,
];

const NETWORK_POLICY: &[PrinterColumn] = &[
    NAME,
    text("Pod-Selector", "Label selector of the pods that it applies to.", |row| {
        none_if_empty(value_at(row.object, &["spec", "podSelector"]).map(selector::format_selector).unwrap_or_default())
    }),
    AGE,
];

const BUDGET: &[PrinterColumn] = &[
    NAME,
    text("Min Available", "Number of pods that must remain available.", |row| or_na(row, &["spec", "minAvailable"])),
    text("Max Unavailable", "Number of pods that may be unavailable.", |row| or_na(row, &["spec", "maxUnavailable"])),
    integer("Allowed Disruptions", "Number of evictions that are currently allowed.", |row| {
        row.number(&["status", "disruptionsAllowed"]).into()
    }),
    AGE,
];

const BINDING: &[PrinterColumn] = &[
    NAME,
    text("Role", "Role that it grants.", |row| {
        format!("{}/{}", row.text(&["roleRef", "kind"]), row.text(&["roleRef", "name"])).into()
    }),
    AGE,
    wide("Users", "Users that the role is granted to.", |row| subjects(row, "User").into()),
    wide("Groups", "Groups that the role is granted to.", |row| subjects(row, "Group").into()),
    wide("ServiceAccounts", "ServiceAccounts that the role is granted to.", |row| {
        subjects(row, "ServiceAccount").into()
    }),
];

const PRIORITY_CLASS: &[PrinterColumn] = &[
    NAME,
    core::CLASS_VALUE,
    core::CLASS_DEFAULT,
    AGE,
    text("PreemptionPolicy", "Whether its pods preempt other pods.", |row| row.text(&["preemptionPolicy"]).into()),
];

const STORAGE_CLASS: &[PrinterColumn] = &[
    NAME,
    text("Provisioner", "Provisioner of the volumes.", |row| row.text(&["provisioner"]).into()),
    text("ReclaimPolicy", "What happens to a volume when its claim is deleted.", |row| {
        row.text_or(&["reclaimPolicy"], "Delete")
    }),
    text("VolumeBindingMode", "When a volume is bound and provisioned.", |row| {
        row.text_or(&["volumeBindingMode"], "Immediate")
    }),
    text("AllowVolumeExpansion", "Whether volumes can be expanded.", |row| {
        row.is_true(&["allowVolumeExpansion"]).into()
    }),
    AGE,
];

const RUNTIME_CLASS: &[PrinterColumn] =
    &[NAME, text("Handler", "Handler of the container runtime.", |row| row.text(&["handler"]).into()), AGE];

fn texts(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn or_na(row: &PrinterRow<'_>, path: &[&str]) -> Value {
    value_at(row.object, path).map_or_else(|| json!("N/A"), |value| format_value(value).into())
}

/// The served versions, and which one is stored.
fn versions(row: &PrinterRow<'_>) -> String {
    let yes = |version: &Value, field: &str| version.get(field).and_then(Value::as_bool).unwrap_or(false);
    let served = row.list(&["spec", "versions"]).iter().filter(|version| yes(version, "served"));
    let one = |version: &Value| {
        let stored = if yes(version, "storage") { "(storage)" } else { "" };
        format!("{}{stored}", text_at(version, &["name"]))
    };
    served.map(one).collect::<Vec<_>>().join(",")
}

fn subjects(row: &PrinterRow<'_>, kind: &str) -> String {
    let of_kind = row.list(&["subjects"]).iter().filter(|subject| text_at(subject, &["kind"]) == kind);
    let one = |subject: &Value| match (kind, text_at(subject, &["namespace"])) {
        ("ServiceAccount", namespace) => format!("{namespace}/{}", text_at(subject, &["name"])),
        _ => text_at(subject, &["name"]).to_owned(),
    };
    of_kind.map(one).collect::<Vec<_>>().join(", ")
}

fn slice_ports(row: &PrinterRow<'_>) -> String {
    let one = |port: &Value| match number_at(port, &["port"]) {
        0 => "*".to_owned(),
        number => number.to_string(),
    };
    let all: Vec<String> = row.list(&["ports"]).iter().map(one).collect();
    if all.is_empty() { "<unset>".to_owned() } else { first_three(&all) }
}

fn hosts(row: &PrinterRow<'_>) -> String {
    let rules = row.list(&["spec", "rules"]);
    let all: Vec<String> =
        rules.iter().map(|rule| text_at(rule, &["host"]).to_owned()).filter(|host| !host.is_empty()).collect();
    if all.is_empty() { "*".to_owned() } else { first_three(&all) }
}

/// At most two metrics, and the number of further ones.
fn targets(row: &PrinterRow<'_>) -> String {
    let specs = row.list(&["spec", "metrics"]);
    let now = row.list(&["status", "currentMetrics"]);
    let all: Vec<String> = specs.iter().enumerate().map(|(index, spec)| target(spec, now.get(index))).collect();
    match (all.len(), all.get(..2)) {
        (0, _) => "<none>".to_owned(),
        (count, Some(first)) if count > 2 => format!("{} + {} more...", first.join(", "), count - 2),
        _ => all.join(", "),
    }
}

fn target(spec: &Value, now: Option<&Value>) -> String {
    let source = match text_at(spec, &["type"]) {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = |field: &str| value_at(spec, &[source, "target", field]).map(format_value);
    let current = |field: &str| now.and_then(|now| value_at(now, &[source, "current", field])).map(format_value);
    let unknown = || "<unknown>".to_owned();
    let of_resource = source.ends_with("esource");
    let prefix = if of_resource { format!("{}: ", text_at(spec, &[source, "name"])) } else { String::new() };
    match (wanted("averageValue"), of_resource) {
        (Some(value), true) => format!("{prefix}{}/{value}", current("averageValue").unwrap_or_else(unknown)),
        (Some(value), false) if source == "pods" => {
            format!("{}/{value}", current("averageValue").unwrap_or_else(unknown))
        }
        (Some(value), false) => format!("{}/{value} (avg)", current("averageValue").unwrap_or_else(unknown)),
        (None, true) => {
            let now = current("averageUtilization").map_or_else(unknown, |percent| format!("{percent}%"));
            let wanted =
                wanted("averageUtilization").map_or_else(|| "<auto>".to_owned(), |percent| format!("{percent}%"));
            format!("{prefix}{now}/{wanted}")
        }
        (None, false) => {
            format!("{}/{}", current("value").unwrap_or_else(unknown), wanted("value").unwrap_or_else(unknown))
        }
    }
}
