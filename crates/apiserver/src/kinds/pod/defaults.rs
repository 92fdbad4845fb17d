//! What a pod spec has when its writer does not say, wherever the spec stands (a Pod, or the template of another kind).

use serde_json::{Value, json};

use crate::kinds::object::{Object, each, fill, fill_number, fill_text, sub, text};

/// Every list of containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// `0644`, the mode of files in volumes.
const FILE_MODE: i64 = 0o644;

/// The defaults of a template: an empty metadata, and those of its spec.
pub fn template(template: &mut Object) {
    fill(template, "metadata", json!({}));
    fill(template, "spec", json!({}));
    if let Some(spec) = sub(template, "spec") {
        pod_spec(spec);
    }
}

/// The defaults of a spec, beside those that only a Pod itself has.
pub fn pod_spec(spec: &mut Object) {
    fill_text(spec, "dnsPolicy", "ClusterFirst");
    fill_text(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill_text(spec, "schedulerName", "default-scheduler");
    both_names_of_the_account(spec);
    for list in CONTAINERS {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
}

/// The defaults of a Pod: those of its spec, requests taken from limits, and service links.
pub fn pod(spec: &mut Object) {
    pod_spec(spec);
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    for list in ["containers", "initContainers"] {
        for one in each(spec, list) {
            requests_from_limits(one);
            if host_network {
                each(one, "ports").for_each(host_port);
            }
        }
    }
    fill(spec, "enableServiceLinks", true);
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always there.
fn both_names_of_the_account(spec: &mut Object) {
    let (new, old) = (text(spec, "serviceAccountName").to_owned(), text(spec, "serviceAccount").to_owned());
    let account = if new.is_empty() { old } else { new };
    if !account.is_empty() {
        spec.insert("serviceAccountName".to_owned(), account.clone().into());
        spec.insert("serviceAccount".to_owned(), account.into());
    }
}

fn container(container: &mut Object) {
    let policy = pull_policy(text(container, "image"));
    fill_text(container, "imagePullPolicy", policy);
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    fill(container, "resources", json!({}));
    for port in each(container, "ports") {
        fill_text(port, "protocol", "TCP");
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = sub(container, name) {
            self::probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(get) =
            sub(container, "lifecycle").and_then(|hooks| sub(hooks, hook)).and_then(|hook| sub(hook, "httpGet"))
        {
            http_get(get);
        }
    }
    for variable in each(container, "env") {
        if let Some(field) = sub(variable, "valueFrom").and_then(|from| sub(from, "fieldRef")) {
            fill_text(field, "apiVersion", "v1");
        }
    }
}

/// On the host's network a port is the host's.
fn host_port(port: &mut Object) {
    let number = port.get("containerPort").and_then(Value::as_i64).unwrap_or(0);
    fill_number(port, "hostPort", number);
}

/// `Always` for an image that names no version, or `latest`.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or_default();
    let latest = match last.split_once(':') {
        _ if image.is_empty() || image.contains('@') => false,
        Some((_, tag)) => tag == "latest",
        None => true,
    };
    if latest { "Always" } else { "IfNotPresent" }
}

fn probe(probe: &mut Object) {
    fill_number(probe, "timeoutSeconds", 1);
    fill_number(probe, "periodSeconds", 10);
    fill_number(probe, "successThreshold", 1);
    fill_number(probe, "failureThreshold", 3);
    if let Some(get) = sub(probe, "httpGet") {
        http_get(get);
    }
    if let Some(grpc) = sub(probe, "grpc") {
        fill(grpc, "service", "");
    }
}

fn http_get(get: &mut Object) {
    fill_text(get, "path", "/");
    fill_text(get, "scheme", "HTTP");
}

fn requests_from_limits(container: &mut Object) {
    let Some(resources) = sub(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).filter(|limits| !limits.is_empty()).cloned()
    else {
        return;
    };
    fill(resources, "requests", json!({}));
    if let Some(requests) = sub(resources, "requests") {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// The defaults of a volume. One without a source is an emptyDir.
fn volume(volume: &mut Object) {
    if volume.iter().all(|(name, source)| name == "name" || source.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = sub(volume, source) {
            fill(source, "defaultMode", FILE_MODE);
            downward_fields(source);
            for part in each(source, "sources") {
                if let Some(token) = sub(part, "serviceAccountToken") {
                    fill(token, "expirationSeconds", 3600);
                }
                if let Some(downward) = sub(part, "downwardAPI") {
                    downward_fields(downward);
                }
            }
        }
    }
    other_sources(volume);
}

fn other_sources(volume: &mut Object) {
    if let Some(path) = sub(volume, "hostPath") {
        fill(path, "type", "");
    }
    if let Some(iscsi) = sub(volume, "iscsi") {
        fill_text(iscsi, "iscsiInterface", "default");
    }
    if let Some(image) = sub(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        fill_text(image, "pullPolicy", policy);
    }
    let claim = sub(volume, "ephemeral").and_then(|ephemeral| sub(ephemeral, "volumeClaimTemplate"));
    if let Some(template) = claim {
        fill(template, "metadata", json!({}));
        if let Some(spec) = sub(template, "spec") {
            fill_text(spec, "volumeMode", "Filesystem");
        }
    }
}

fn downward_fields(source: &mut Object) {
    for item in each(source, "items") {
        if let Some(field) = sub(item, "fieldRef") {
            fill_text(field, "apiVersion", "v1");
        }
    }
}
