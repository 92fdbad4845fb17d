//! Validates the containers of a pod spec.

use serde_json::Value;

use super::{
    env::{env, env_from},
    probe::{lifecycle, probes},
    spec::{VolumeNames, user_ids},
};
use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, names},
    schema::quantity::Quantity,
};

/// Resource names without a domain.
const STANDARD_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerType {
    Main,
    Init,
    Ephemeral,
}

/// Validates all containers of one list. Names are unique in the whole spec.
pub(super) fn containers<'a>(
    list: &'a FieldValue<'a>,
    sort: ContainerType,
    volumes: &VolumeNames<'_>,
    seen: &mut Vec<&'a str>,
    errors: &mut FieldErrors,
) {
    if sort == ContainerType::Main && list.is_empty() {
        return list.report_required(errors, "");
    }
    let mut host_ports = Vec::new();
    for container in list.items() {
        let name = container.value.get("name").and_then(Value::as_str).unwrap_or_default();
        validate_container(&container, sort, volumes, errors);
        if !name.is_empty() && seen.contains(&name) {
            container.get("name").report_duplicate(errors);
        }
        seen.push(name);
        unique_host_ports(&container, &mut host_ports, errors);
    }
}

fn validate_container(
    container: &FieldValue<'_>,
    sort: ContainerType,
    volumes: &VolumeNames<'_>,
    errors: &mut FieldErrors,
) {
    let name = container.get("name");
    if name.require(errors, "") {
        name.report_invalid_each(errors, names::label(name.str()));
    }
    container.get("image").require(errors, "");
    container.get("terminationMessagePolicy").require_one_of(errors, &["FallbackToLogsOnError", "File"]);
    container.get("imagePullPolicy").require_one_of(errors, &["Always", "IfNotPresent", "Never"]);
    ports(&container.get("ports"), errors);
    env(&container.get("env"), errors);
    env_from(&container.get("envFrom"), errors);
    mounts(container, volumes, errors);
    resources(&container.get("resources"), errors);
    user_ids(&container.get("securityContext"), &["runAsUser", "runAsGroup"], errors);
    match sort {
        ContainerType::Main => {
            probes(container, errors);
            lifecycle(&container.get("lifecycle"), errors);
        }
        ContainerType::Init => init_only(container, errors),
        ContainerType::Ephemeral => ephemeral_only(container, errors),
    }
}

fn init_only(container: &FieldValue<'_>, errors: &mut FieldErrors) {
    let policy = container.get("restartPolicy");
    if policy.str() == "Always" {
        probes(container, errors);
        return lifecycle(&container.get("lifecycle"), errors);
    }
    if policy.is_set() {
        policy.require_one_of(errors, &["Always", "Never", "OnFailure"]);
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.get(field).is_set() {
            container
                .get(field)
                .report_forbidden(errors, "may not be set for init containers without restartPolicy=Always");
        }
    }
}

fn ephemeral_only(container: &FieldValue<'_>, errors: &mut FieldErrors) {
    for field in ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] {
        if !container.get(field).is_empty() {
            container.get(field).report_forbidden(errors, "cannot be set for an Ephemeral Container");
        }
    }
}

fn ports(ports: &FieldValue<'_>, errors: &mut FieldErrors) {
    let mut seen = Vec::new();
    for port in ports.items() {
        let name = port.value.get("name").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() {
            let wrong = names::port_name(name);
            if wrong.is_empty() && seen.contains(&name) {
                port.get("name").report_duplicate(errors);
            }
            port.get("name").report_invalid_each(errors, wrong);
            seen.push(name);
        }
        let number = port.get("containerPort");
        match number.int().unwrap_or(0) {
            0 => number.report_required(errors, ""),
            value => report_invalid_number(&number, names::port_number(value), errors),
        }
        if let Some(host) = port.get("hostPort").int().filter(|host| *host != 0) {
            report_invalid_number(&port.get("hostPort"), names::port_number(host), errors);
        }
        port.get("protocol").require_one_of(errors, &["SCTP", "TCP", "UDP"]);
    }
}

fn unique_host_ports(container: &FieldValue<'_>, seen: &mut Vec<String>, errors: &mut FieldErrors) {
    for port in container.get("ports").items() {
        let Some(host) = port.get("hostPort").int().filter(|host| *host != 0) else { continue };
        let claim = format!("{}/{}/{host}", port.get("protocol").str(), port.get("hostIP").str());
        if seen.contains(&claim) {
            errors.push(FieldError::duplicate(port.get("hostPort").path(), &Value::from(claim.as_str())));
        }
        seen.push(claim);
    }
}

/// Reports errors about a number, which is shown as one.
pub(super) fn report_invalid_number(at: &FieldValue<'_>, wrong: Vec<String>, errors: &mut FieldErrors) {
    for detail in wrong {
        at.report_invalid(errors, &detail);
    }
}

fn mounts(container: &FieldValue<'_>, volumes: &VolumeNames<'_>, errors: &mut FieldErrors) {
    let list = container.get("volumeMounts");
    let mut seen = Vec::new();
    for mount in list.items() {
        let name = mount.get("name");
        name.require(errors, "");
        if !volumes.contains(&name.str()) {
            errors.push(FieldError::not_found(name.path(), &Value::from(name.str())));
        }
        let path = mount.get("mountPath");
        path.require(errors, "");
        let text = mount.value.get("mountPath").and_then(Value::as_str).unwrap_or_default();
        if seen.contains(&text) {
            path.report_invalid(errors, "must be unique");
        }
        seen.push(text);
        sub_path(&mount, errors);
    }
}

fn sub_path(mount: &FieldValue<'_>, errors: &mut FieldErrors) {
    let plain = mount.get("subPath");
    let expression = mount.get("subPathExpr");
    for path in [plain, expression] {
        if path.str().starts_with('/') {
            path.report_invalid(errors, "must be a relative path");
        }
        if path.str().split('/').any(|part| part == "..") {
            path.report_invalid(errors, "must not contain '..'");
        }
    }
    if !plain.is_empty() && !expression.is_empty() {
        expression.report_invalid(errors, "subPathExpr and subPath are mutually exclusive");
    }
}

/// Quantities must not be negative, and requests not above limits.
fn resources(resources: &FieldValue<'_>, errors: &mut FieldErrors) {
    let limits = resources.get("limits");
    let requests = resources.get("requests");
    for list in [&limits, &requests] {
        for (name, amount) in list.entries() {
            resource_name(&amount, name, errors);
            let quantity = Quantity::from_value(amount.value);
            if quantity.is_some_and(Quantity::is_negative) {
                amount.report_invalid(errors, "must be greater than or equal to 0");
            }
            if name.contains('/') && quantity.is_some_and(|quantity| !quantity.is_integer()) {
                amount.report_invalid(errors, "must be an integer");
            }
        }
    }
    for (name, amount) in requests.entries() {
        above_limit(&requests, name, amount.value, limits.value.get(name), errors);
    }
}

fn above_limit(requests: &FieldValue<'_>, name: &str, amount: &Value, limit: Option<&Value>, errors: &mut FieldErrors) {
    let overcommit = !name.contains('/') && !name.starts_with("hugepages-");
    let Some(limit) = limit else {
        if !overcommit {
            let path = requests.path().replace(".requests", ".limits");
            errors.push(FieldError::required(path, "Limit must be set for non overcommitable resources"));
        }
        return;
    };
    let shown = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
    let asked = Quantity::from_value(amount);
    let most = Quantity::from_value(limit);
    let wrong = match overcommit {
        false if asked != most => format!("must be equal to {name} limit of {shown}"),
        true if asked > most => format!("must be less than or equal to {name} limit of {shown}"),
        _ => return,
    };
    errors.push(FieldError::invalid(requests.path(), amount, &wrong));
}

fn resource_name(at: &FieldValue<'_>, name: &str, errors: &mut FieldErrors) {
    let wrong = names::qualified(name);
    let value = Value::from(name);
    if wrong.is_empty() && !name.contains('/') && !STANDARD_RESOURCES.contains(&name) && !name.starts_with("hugepages-")
    {
        for detail in
            ["must be a standard resource type or fully qualified", "must be a standard resource for containers"]
        {
            errors.push(FieldError::invalid(at.path(), &value, detail));
        }
    }
    for detail in wrong {
        errors.push(FieldError::invalid(at.path(), &value, &detail));
    }
}
