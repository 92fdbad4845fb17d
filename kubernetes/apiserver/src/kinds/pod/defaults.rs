//! The defaults of a pod spec, in a Pod or in the template of another kind.

use serde_json::{Value, json};

use crate::kinds::json_object::{
    JsonObject, nested_object_mut, object_items_mut, set_if_absent, set_number_if_zero, set_text_if_empty, text,
};

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// `0644`, the mode of files in volumes.
const FILE_MODE: i64 = 0o644;

/// The defaults of a template: an empty metadata, and those of its spec.
pub fn template(template: &mut JsonObject) {
    set_if_absent(template, "metadata", json!({}));
    set_if_absent(template, "spec", json!({}));
    if let Some(spec) = nested_object_mut(template, "spec") {
        pod_spec(spec);
    }
}

/// The defaults of a spec, except those of a Pod only.
pub fn pod_spec(spec: &mut JsonObject) {
    set_text_if_empty(spec, "dnsPolicy", "ClusterFirst");
    set_text_if_empty(spec, "restartPolicy", "Always");
    set_if_absent(spec, "securityContext", json!({}));
    set_if_absent(spec, "terminationGracePeriodSeconds", 30);
    set_text_if_empty(spec, "schedulerName", "default-scheduler");
    both_names_of_the_account(spec);
    for list in CONTAINERS {
        object_items_mut(spec, list).for_each(container);
    }
    object_items_mut(spec, "volumes").for_each(volume);
}

/// The defaults of a Pod: those of its spec, requests taken from limits, and service links.
pub fn pod(spec: &mut JsonObject) {
    pod_spec(spec);
    let host_network = spec.get("hostNetwork").and_then(Value::as_bool).unwrap_or(false);
    for list in ["containers", "initContainers"] {
        for one in object_items_mut(spec, list) {
            requests_from_limits(one);
            if host_network {
                object_items_mut(one, "ports").for_each(host_port);
            }
        }
    }
    set_if_absent(spec, "enableServiceLinks", true);
}

/// `serviceAccount` is the old name of `serviceAccountName`; both are always set.
fn both_names_of_the_account(spec: &mut JsonObject) {
    let new = text(spec, "serviceAccountName").to_owned();
    let old = text(spec, "serviceAccount").to_owned();
    let account = if new.is_empty() { old } else { new };
    if !account.is_empty() {
        spec.insert("serviceAccountName".to_owned(), account.clone().into());
        spec.insert("serviceAccount".to_owned(), account.into());
    }
}

fn container(container: &mut JsonObject) {
    let policy = pull_policy(text(container, "image"));
    set_text_if_empty(container, "imagePullPolicy", policy);
    set_text_if_empty(container, "terminationMessagePath", "/dev/termination-log");
    set_text_if_empty(container, "terminationMessagePolicy", "File");
    set_if_absent(container, "resources", json!({}));
    for port in object_items_mut(container, "ports") {
        set_text_if_empty(port, "protocol", "TCP");
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = nested_object_mut(container, name) {
            self::probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(get) = nested_object_mut(container, "lifecycle")
            .and_then(|hooks| nested_object_mut(hooks, hook))
            .and_then(|hook| nested_object_mut(hook, "httpGet"))
        {
            http_get(get);
        }
    }
    for variable in object_items_mut(container, "env") {
        if let Some(field) =
            nested_object_mut(variable, "valueFrom").and_then(|from| nested_object_mut(from, "fieldRef"))
        {
            set_text_if_empty(field, "apiVersion", "v1");
        }
    }
}

/// On the host network the host port is the container port.
fn host_port(port: &mut JsonObject) {
    let number = port.get("containerPort").and_then(Value::as_i64).unwrap_or(0);
    set_number_if_zero(port, "hostPort", number);
}

/// `Always` for an image without a tag, or with `latest`.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or_default();
    let latest = match last.split_once(':') {
        _ if image.is_empty() || image.contains('@') => false,
        Some((_, tag)) => tag == "latest",
        None => true,
    };
    if latest { "Always" } else { "IfNotPresent" }
}

fn probe(probe: &mut JsonObject) {
    set_number_if_zero(probe, "timeoutSeconds", 1);
    set_number_if_zero(probe, "periodSeconds", 10);
    set_number_if_zero(probe, "successThreshold", 1);
    set_number_if_zero(probe, "failureThreshold", 3);
    if let Some(get) = nested_object_mut(probe, "httpGet") {
        http_get(get);
    }
    if let Some(grpc) = nested_object_mut(probe, "grpc") {
        set_if_absent(grpc, "service", "");
    }
}

fn http_get(get: &mut JsonObject) {
    set_text_if_empty(get, "path", "/");
    set_text_if_empty(get, "scheme", "HTTP");
}

fn requests_from_limits(container: &mut JsonObject) {
    let Some(resources) = nested_object_mut(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).filter(|limits| !limits.is_empty()).cloned()
    else {
        return;
    };
    set_if_absent(resources, "requests", json!({}));
    if let Some(requests) = nested_object_mut(resources, "requests") {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// The defaults of a volume. One without a source is an emptyDir.
fn volume(volume: &mut JsonObject) {
    if volume.iter().all(|(name, source)| name == "name" || source.is_null()) {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = nested_object_mut(volume, source) {
            set_if_absent(source, "defaultMode", FILE_MODE);
            downward_fields(source);
            for part in object_items_mut(source, "sources") {
                if let Some(token) = nested_object_mut(part, "serviceAccountToken") {
                    set_if_absent(token, "expirationSeconds", 3600);
                }
                if let Some(downward) = nested_object_mut(part, "downwardAPI") {
                    downward_fields(downward);
                }
            }
        }
    }
    other_sources(volume);
}

fn other_sources(volume: &mut JsonObject) {
    if let Some(path) = nested_object_mut(volume, "hostPath") {
        set_if_absent(path, "type", "");
    }
    if let Some(iscsi) = nested_object_mut(volume, "iscsi") {
        set_text_if_empty(iscsi, "iscsiInterface", "default");
    }
    if let Some(image) = nested_object_mut(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        set_text_if_empty(image, "pullPolicy", policy);
    }
    let claim = nested_object_mut(volume, "ephemeral")
        .and_then(|ephemeral| nested_object_mut(ephemeral, "volumeClaimTemplate"));
    if let Some(template) = claim {
        set_if_absent(template, "metadata", json!({}));
        if let Some(spec) = nested_object_mut(template, "spec") {
            set_text_if_empty(spec, "volumeMode", "Filesystem");
        }
    }
}

fn downward_fields(source: &mut JsonObject) {
    for item in object_items_mut(source, "items") {
        if let Some(field) = nested_object_mut(item, "fieldRef") {
            set_text_if_empty(field, "apiVersion", "v1");
        }
    }
}
