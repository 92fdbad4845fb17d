//! What is wrong with the containers of a pod spec.

use serde_json::Value;

use super::{
    env::{env, env_from},
    probe::{lifecycle, probes},
    spec::Volumes,
};
use crate::{
    api::field::{Error, Errors},
    kinds::{at::At, names},
    schema::quantity::Quantity,
};

/// Resources that are not asked for by a name with a domain.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

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
