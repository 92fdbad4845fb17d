//! What is wrong with the containers of a pod spec.

use serde_json::Value;

use super::spec::Volumes;
use crate::{
    api::field::{Error, Errors},
    kinds::{at::At, names, quantity::Quantity},
};

/// Resources that are not asked for by a name with a domain.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const FIELDS: [&str; 11] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "metadata.labels",
    "metadata.annotations",
];

/// What sort of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Main,
    Init,
    Ephemeral,
}

/// All containers of one list. Names are unique in the whole spec.
pub(super) fn containers<'a>(
    list: &'a At<'a>,
    sort: Sort,
    volumes: &Volumes<'_>,
    seen: &mut Vec<&'a str>,
    errors: &mut Errors,
) {
    if sort == Sort::Main && list.is_empty() {
        return list.required(errors, "");
    }
    let mut host_ports = Vec::new();
    for container in list.items() {
        let name = container.value.get("name").and_then(Value::as_str).unwrap_or_default();
        one(&container, sort, volumes, errors);
        if !name.is_empty() && seen.contains(&name) {
            container.get("name").duplicate(errors);
        }
        seen.push(name);
        unique_host_ports(&container, &mut host_ports, errors);
    }
}

fn one(container: &At<'_>, sort: Sort, volumes: &Volumes<'_>, errors: &mut Errors) {
    let name = container.get("name");
    if name.require(errors, "") {
        name.invalid_each(errors, names::label(name.str()));
    }
    container.get("image").require(errors, "");
    container.get("terminationMessagePolicy").one_of(errors, &["FallbackToLogsOnError", "File"]);
    container.get("imagePullPolicy").one_of(errors, &["Always", "IfNotPresent", "Never"]);
    ports(&container.get("ports"), errors);
    env(&container.get("env"), errors);
    env_from(&container.get("envFrom"), errors);
    mounts(container, volumes, errors);
    resources(&container.get("resources"), errors);
    match sort {
        Sort::Main => {
            probes(container, errors);
            lifecycle(&container.get("lifecycle"), errors);
        }
        Sort::Init => init_only(container, errors),
        Sort::Ephemeral => ephemeral_only(container, errors),
    }
}

fn init_only(container: &At<'_>, errors: &mut Errors) {
    let policy = container.get("restartPolicy");
    if policy.str() == "Always" {
        probes(container, errors);
        return lifecycle(&container.get("lifecycle"), errors);
    }
    if policy.is_set() {
        policy.one_of(errors, &["Always", "Never", "OnFailure"]);
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.get(field).is_set() {
            container.get(field).forbidden(errors, "may not be set for init containers without restartPolicy=Always");
        }
    }
}

fn ephemeral_only(container: &At<'_>, errors: &mut Errors) {
    for field in ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
        if !container.get(field).is_empty() {
            container.get(field).forbidden(errors, "cannot be set for an Ephemeral Container");
        }
    }
}

fn ports(ports: &At<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for port in ports.items() {
        let name = port.value.get("name").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() {
            let wrong = names::port_name(name);
            if wrong.is_empty() && seen.contains(&name) {
                port.get("name").duplicate(errors);
            }
            port.get("name").invalid_each(errors, wrong);
            seen.push(name);
        }
        let number = port.get("containerPort");
        match number.int().unwrap_or(0) {
            0 => number.required(errors, ""),
            value => number_wrong(&number, names::port_number(value), errors),
        }
        if let Some(host) = port.get("hostPort").int().filter(|host| *host != 0) {
            number_wrong(&port.get("hostPort"), names::port_number(host), errors);
        }
        port.get("protocol").one_of(errors, &["SCTP", "TCP", "UDP"]);
    }
}

fn unique_host_ports(container: &At<'_>, seen: &mut Vec<String>, errors: &mut Errors) {
    for port in container.get("ports").items() {
        let Some(host) = port.get("hostPort").int().filter(|host| *host != 0) else { continue };
        let claim = format!("{}/{}/{host}", port.get("protocol").str(), port.get("hostIP").str());
        if seen.contains(&claim) {
            errors.push(Error::duplicate(port.get("hostPort").path(), &Value::from(claim.as_str())));
        }
        seen.push(claim);
    }
}

/// Errors about a number, which is shown as one.
pub(super) fn number_wrong(at: &At<'_>, wrong: Vec<String>, errors: &mut Errors) {
    for detail in wrong {
        at.invalid(errors, &detail);
    }
}

fn env(env: &At<'_>, errors: &mut Errors) {
    for variable in env.items() {
        let name = variable.get("name");
        if name.require(errors, "") {
            name.invalid_each(errors, names::env_name(name.str()));
        }
        let from = variable.get("valueFrom");
        if from.is_set() {
            value_from(&from, !variable.get("value").is_empty(), errors);
        }
    }
}

fn value_from(from: &At<'_>, has_value: bool, errors: &mut Errors) {
    const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let count = SOURCES.iter().filter(|source| from.get(source).is_set()).count();
    let wrong = |detail: &str, errors: &mut Errors| from.invalid_as(errors, "\"\"", detail);
    if count == 0 {
        let sources = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        wrong(&format!("must specify one of: {sources}"), errors);
    } else if has_value {
        wrong("may not be specified when `value` is not empty", errors);
    } else if count > 1 {
        wrong("may not have more than one field specified at a time", errors);
    }
    field_ref(&from.get("fieldRef"), errors);
    for source in ["configMapKeyRef", "secretKeyRef"] {
        let reference = from.get(source);
        if reference.is_set() {
            let (name, key) = (reference.get("name"), reference.get("key"));
            name.invalid_each(errors, names::subdomain(name.str()));
            if key.require(errors, "") {
                key.invalid_each(errors, names::config_key(key.str()));
            }
        }
    }
    let resource = from.get("resourceFieldRef");
    if resource.is_set() {
        resource.get("resource").require(errors, "");
    }
}

/// A field of the pod itself, as variables and volumes take it.
pub(super) fn field_ref(field: &At<'_>, errors: &mut Errors) {
    if !field.is_set() {
        return;
    }
    let path = field.get("fieldPath");
    if !path.require(errors, "") {
        return;
    }
    let map = ["metadata.labels['", "metadata.annotations['"].iter().any(|start| path.str().starts_with(start));
    if !map && !FIELDS.contains(&path.str()) {
        let detail = format!("error converting fieldPath: field label not supported: {}", path.str());
        path.invalid(errors, &detail);
    }
}

fn env_from(env: &At<'_>, errors: &mut Errors) {
    for source in env.items() {
        let prefix = source.get("prefix");
        if !prefix.is_empty() {
            prefix.invalid_each(errors, names::env_name(prefix.str()));
        }
        let references = ["configMapRef", "secretRef"];
        for reference in references {
            let reference = source.get(reference);
            let name = reference.get("name");
            if reference.is_set() && name.require(errors, "") {
                name.invalid_each(errors, names::subdomain(name.str()));
            }
        }
        match references.iter().filter(|name| source.get(name).is_set()).count() {
            0 => env.invalid_as(errors, "\"\"", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => env.invalid_as(errors, "\"\"", "may not have more than one field specified at a time"),
        }
    }
}

fn mounts(container: &At<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let list = container.get("volumeMounts");
    let mut seen = Vec::new();
    for mount in list.items() {
        let name = mount.get("name");
        name.require(errors, "");
        if !volumes.contains(&name.str()) {
            errors.push(Error::not_found(name.path(), &Value::from(name.str())));
        }
        let path = mount.get("mountPath");
        path.require(errors, "");
        let text = mount.value.get("mountPath").and_then(Value::as_str).unwrap_or_default();
        if seen.contains(&text) {
            path.invalid(errors, "must be unique");
        }
        seen.push(text);
        sub_path(&mount, errors);
    }
}

fn sub_path(mount: &At<'_>, errors: &mut Errors) {
    let (plain, expression) = (mount.get("subPath"), mount.get("subPathExpr"));
    for path in [plain, expression] {
        if path.str().starts_with('/') {
            path.invalid(errors, "must be a relative path");
        }
        if path.str().split('/').any(|part| part == "..") {
            path.invalid(errors, "must not contain '..'");
        }
    }
    if !plain.is_empty() && !expression.is_empty() {
        expression.invalid(errors, "subPathExpr and subPath are mutually exclusive");
    }
}

/// Amounts are not negative, and requests not above limits.
fn resources(resources: &At<'_>, errors: &mut Errors) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    for list in [&limits, &requests] {
        for (name, amount) in list.entries() {
            resource_name(&amount, name, errors);
            let quantity = Quantity::of(amount.value);
            if quantity.is_some_and(Quantity::is_negative) {
                amount.invalid(errors, "must be greater than or equal to 0");
            }
            if name.contains('/') && quantity.is_some_and(|quantity| !quantity.is_integer()) {
                amount.invalid(errors, "must be an integer");
            }
        }
    }
    for (name, amount) in requests.entries() {
        above_limit(&requests, name, amount.value, limits.value.get(name), errors);
    }
}

fn above_limit(requests: &At<'_>, name: &str, amount: &Value, limit: Option<&Value>, errors: &mut Errors) {
    let overcommit = !name.contains('/') && !name.starts_with("hugepages-");
    let Some(limit) = limit else {
        if !overcommit {
            let path = requests.path().replace(".requests", ".limits");
            errors.push(Error::required(path, "Limit must be set for non overcommitable resources"));
        }
        return;
    };
    let shown = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
    let (asked, most) = (Quantity::of(amount), Quantity::of(limit));
    let wrong = match overcommit {
        false if asked != most => format!("must be equal to {name} limit of {shown}"),
        true if asked > most => format!("must be less than or equal to {name} limit of {shown}"),
        _ => return,
    };
    errors.push(Error::invalid(requests.path(), amount, &wrong));
}

fn resource_name(at: &At<'_>, name: &str, errors: &mut Errors) {
    let wrong = names::qualified(name);
    let value = Value::from(name);
    if wrong.is_empty() && !name.contains('/') && !STANDARD.contains(&name) && !name.starts_with("hugepages-") {
        for detail in
            ["must be a standard resource type or fully qualified", "must be a standard resource for containers"]
        {
            errors.push(Error::invalid(at.path(), &value, detail));
        }
    }
    for detail in wrong {
        errors.push(Error::invalid(at.path(), &value, &detail));
    }
}

fn probes(container: &At<'_>, errors: &mut Errors) {
    for name in ["livenessProbe", "startupProbe", "readinessProbe"] {
        let probe = container.get(name);
        if !probe.is_set() {
            continue;
        }
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], errors);
        for number in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            probe.get(number).non_negative(errors);
        }
        let grace = probe.get("terminationGracePeriodSeconds");
        if name == "readinessProbe" {
            if grace.is_set() {
                grace.invalid(errors, "must not be set for readinessProbes");
            }
        } else {
            if probe.get("successThreshold").int().is_some_and(|count| count != 1) {
                probe.get("successThreshold").invalid(errors, "must be 1");
            }
            grace.positive(errors);
        }
    }
}

fn lifecycle(lifecycle: &At<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let hook = lifecycle.get(hook);
        if hook.is_set() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], errors);
        }
    }
}

fn handler(at: &At<'_>, known: &[&str], errors: &mut Errors) {
    let mut given = known.iter().filter(|name| at.get(name).is_set());
    if given.next().is_none() {
        return at.required(errors, "must specify a handler type");
    }
    for more in given {
        at.get(more).forbidden(errors, "may not specify more than 1 handler type");
    }
    let (exec, http) = (at.get("exec"), at.get("httpGet"));
    if exec.is_set() {
        exec.get("command").require(errors, "");
    }
    if http.is_set() {
        http.get("path").require(errors, "");
        port(&http.get("port"), errors);
        http.get("scheme").one_of(errors, &["HTTP", "HTTPS"]);
        for header in http.get("httpHeaders").items() {
            header.get("name").invalid_each(errors, names::http_header(header.get("name").str()));
        }
    }
    for field in ["tcpSocket", "grpc"] {
        if at.get(field).is_set() {
            port(&at.get(field).get("port"), errors);
        }
    }
}

/// A port by its number or its name.
pub(in crate::kinds) fn port(port: &At<'_>, errors: &mut Errors) {
    match port.value {
        Value::String(name) => port.invalid_each(errors, names::port_name(name)),
        other => {
            let number = other.as_i64().unwrap_or(0);
            for detail in names::port_number(number) {
                errors.push(Error::invalid(port.path(), &Value::from(number), &detail));
            }
        }
    }
}
