//! Warnings about accepted pods and templates: deprecated fields, fields without effect, and values that an
//! apply loses.
//!
//! Not done: overlapping paths in one volume, and IP addresses in old notations.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::{
    api::{go_format, meta::MetaAccessor},
    kinds::{field_value::FieldValue, names},
};

/// Deprecated labels of nodes, with their new names.
const DEPRECATED_NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

const DEPRECATED_VOLUMES: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APPARMOR_CONTAINER: &str = "container.apparmor.security.beta.kubernetes.io/";
const USE_SECCOMP_FIELD: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// The order in which kube-apiserver visits containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// The name of a pod's owner becomes part of host names, where dots and long names cause problems. `used_in`
/// says which names.
pub(in crate::kinds) fn host_name(object: &Value, used_in: &str) -> Vec<String> {
    let wrong = names::label(object.name());
    if wrong.is_empty() {
        return Vec::new();
    }
    let why = "which can result in surprising behavior; a DNS label is recommended";
    vec![format!("metadata.name: this is used in {used_in}, {why}: [{}]", wrong.join(" "))]
}

/// The names that `used_in` mentions for pods, in kube-apiserver's warning.
pub(in crate::kinds) const POD_NAMES: &str = "Pod names and hostnames";

/// Warnings about the template of a changed object, if anything but its labels, annotations and status changed.
pub(in crate::kinds) fn template_on_update(new: &Value, old: &Value, path: &[&str]) -> Vec<String> {
    if new.generation() == old.generation() { Vec::new() } else { template(new, path) }
}

/// Warnings about the template at a path of an object.
pub(in crate::kinds) fn template(object: &Value, path: &[&str]) -> Vec<String> {
    let Some(found) = path.iter().try_fold(object, |value, name| value.get(*name)) else { return Vec::new() };
    let path = path.join(".");
    let at = FieldValue::named_root(&path, found);
    collect(&at, true)
}

pub(super) fn pod(pod: &Value) -> Vec<String> {
    let mut found = host_name(pod, "the Pod's hostname");
    found.extend(collect(&FieldValue::root(pod), false));
    found
}

fn collect(pod: &FieldValue<'_>, is_template: bool) -> Vec<String> {
    let mut found = Vec::new();
    let meta = pod.get("metadata");
    let spec = pod.get("spec");
    let annotations = meta.get("annotations");
    nodes(&spec, &mut found);
    for (key, why) in DEPRECATED_ANNOTATIONS.iter().filter(|(key, _)| has(&annotations, key)) {
        found.push(format!("{}: {why}", annotations.key(key).path()));
    }
    for volume in spec.get("volumes").items() {
        for (source, why) in DEPRECATED_VOLUMES.iter().filter(|(source, _)| volume.get(source).is_set()) {
            let source = if *source == "storageos" { "storageOS" } else { source };
            found.push(format!("{}: {why}", volume.get(source).path()));
        }
    }
    repeated(&spec.get("hostAliases"), "ip", &mut found);
    repeated(&spec.get("imagePullSecrets"), "name", &mut found);
    for secret in spec.get("imagePullSecrets").items().filter(|secret| secret.get("name").is_empty()) {
        found.push(format!("{}: invalid empty name \"\"", secret.get("name").path()));
    }
    fractions(&spec.get("overhead"), &mut found);
    if !spec.get("securityContext").get("seccompProfile").is_set() && has(&annotations, SECCOMP) {
        found.push(format!("{}: {USE_SECCOMP_FIELD}", annotations.key(SECCOMP).path()));
    }
    for list in CONTAINERS {
        for container in spec.get(list).items() {
            self::container(&container, &annotations, is_template, &mut found);
        }
    }
    ports(&spec, &mut found);
    if spec.get("terminationGracePeriodSeconds").int().is_some_and(|seconds| seconds < 0) {
        let path = spec.get("terminationGracePeriodSeconds").path();
        found.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    pod_affinity(&spec.get("affinity"), &mut found);
    found
}

fn has(annotations: &FieldValue<'_>, key: &str) -> bool {
    annotations.value.get(key).is_some()
}

fn deprecated_label(label: &str) -> Option<&'static str> {
    DEPRECATED_NODE_LABELS.iter().find(|(known, _)| *known == label).map(|(_, why)| *why)
}

/// Warnings about labels of nodes in selectors, affinity and topology.
fn nodes(spec: &FieldValue<'_>, found: &mut Vec<String>) {
    for (label, value) in spec.get("nodeSelector").entries() {
        found.extend(deprecated_label(label).map(|why| format!("{}: {why}", value.path())));
    }
    let affinity = spec.get("affinity");
    let of_nodes = affinity.get("nodeAffinity");
    for term in of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution").get("nodeSelectorTerms").items() {
        node_term(&term, found);
    }
    for preferred in of_nodes.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
        node_term(&preferred.get("preference"), found);
    }
    for constraint in spec.get("topologySpreadConstraints").items() {
        let key = constraint.get("topologyKey");
        found.extend(deprecated_label(key.str()).map(|why| format!("{}: {} is {why}", key.path(), key.str())));
        null_selector(&constraint, found);
    }
}

fn node_term(term: &FieldValue<'_>, found: &mut Vec<String>) {
    for expression in term.get("matchExpressions").items() {
        let key = expression.get("key");
        found.extend(deprecated_label(key.str()).map(|why| format!("{}: {} is {why}", key.path(), key.str())));
    }
}

fn pod_affinity(affinity: &FieldValue<'_>, found: &mut Vec<String>) {
    for sort in ["podAffinity", "podAntiAffinity"] {
        let terms = affinity.get(sort);
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
            null_selector(&term, found);
        }
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
            null_selector(&weighted.get("podAffinityTerm"), found);
        }
    }
}

fn null_selector(of: &FieldValue<'_>, found: &mut Vec<String>) {
    let selector = of.get("labelSelector");
    if !selector.is_set() {
        found.push(format!("{}: {NULL_SELECTOR}", selector.path()));
    }
}

fn repeated(list: &FieldValue<'_>, field: &str, found: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for item in list.items() {
        let value = item.value.get(field).and_then(Value::as_str).unwrap_or_default();
        if !seen.insert(value) {
            found.push(format!("{}: duplicate {field} {}", item.get(field).path(), go_format::quote(value)));
        }
    }
}

fn container(container: &FieldValue<'_>, annotations: &FieldValue<'_>, is_template: bool, found: &mut Vec<String>) {
    let name = container.get("name").str();
    let context = container.get("securityContext");
    let seccomp = format!("{SECCOMP_CONTAINER}{name}");
    if !context.get("seccompProfile").is_set() && has(annotations, &seccomp) {
        found.push(format!("{}: {USE_SECCOMP_FIELD}", annotations.key(&seccomp).path()));
    }
    let apparmor = format!("{APPARMOR_CONTAINER}{name}");
    if is_template && !context.get("appArmorProfile").is_set() && has(annotations, &apparmor) {
        let why = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        found.push(format!("{}: {why}", annotations.key(&apparmor).path()));
    }
    for name in ["memory", "ephemeral-storage"] {
        for list in ["limits", "requests"] {
            fraction(&container.get("resources").get(list).key(name), found);
        }
    }
    environment(&container.get("env"), found);
}

fn fractions(list: &FieldValue<'_>, found: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        fraction(&list.key(name), found);
    }
}

/// Bytes are integers. In the canonical form, which is stored, only fractions have this suffix.
fn fraction(amount: &FieldValue<'_>, found: &mut Vec<String>) {
    let text = amount.str();
    if text.ends_with(['m', 'u', 'n']) {
        let why = format!("fractional byte value {} is invalid, must be an integer", go_format::quote(text));
        found.push(format!("{}: {why}", amount.path()));
    }
}

/// An apply merges variables by name, so that the first of two with the same name may be lost. It is intended
/// if the second refers to the first.
fn environment(env: &FieldValue<'_>, found: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for variable in env.items() {
        let name = variable.value.get("name").and_then(Value::as_str).unwrap_or_default();
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = variable.get("value");
        if variable.get("valueFrom").is_set() || value.str() == reference || !value.str().contains(&reference) {
            let why = "which may be dropped when using apply";
            found.push(format!("{}: hides previous definition of {}, {why}", variable.path(), go_format::quote(name)));
        }
    }
}

/// A port as far as duplicates matter: its path, and its host binding.
type PortBinding = (String, String, i64);

fn ports(spec: &FieldValue<'_>, found: &mut Vec<String>) {
    let mut all: HashMap<String, Vec<PortBinding>> = HashMap::new();
    let mut named: HashMap<String, String> = HashMap::new();
    let mut of_names = Vec::new();
    for list in CONTAINERS {
        for container in spec.get(list).items() {
            for port in container.get("ports").items() {
                let key = format!("{}/{}", port.get("containerPort").int().unwrap_or(0), port.get("protocol").str());
                let own = (port.path(), port.get("hostIP").str().to_owned(), port.get("hostPort").int().unwrap_or(0));
                let others = all.entry(key).or_default();
                found.extend(others.iter().filter_map(|other| clash(&own, other)));
                others.push(own);
                let name = port.get("name").str();
                if name.is_empty() {
                    continue;
                }
                match named.get(name) {
                    None => drop(named.insert(name.to_owned(), port.path())),
                    Some(other) => {
                        let what =
                            format!("{}: duplicate port name {} with {other}", port.path(), go_format::quote(name));
                        let why = "services and probes that select ports by name will use";
                        of_names.push(format!("{what}, {why} {other}"));
                    }
                }
            }
        }
    }
    found.extend(of_names);
}

fn clash((path, ip, host): &PortBinding, (other_path, other_ip, other_host): &PortBinding) -> Option<String> {
    let how = if (ip, host) == (other_ip, other_host) {
        "duplicate"
    } else if *host == 0 || *other_host == 0 {
        "overlapping"
    } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
        "dangerously ambiguous"
    } else {
        return None;
    };
    Some(format!("{path}: {how} port definition with {other_path}"))
}
