//! Validates the containers of a pod spec.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    env::{env, env_from},
    probe::{lifecycle, probes},
    security::{HostUsers, container_context},
    spec::PodContext,
    volume::mounts,
};
use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, names},
    schema::quantity::Quantity,
};

/// Resource names without a domain.
const STANDARD_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Resource names without a domain that only quotas know.
const OTHER_STANDARD_RESOURCES: [&str; 17] = [
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// The most rules of a container about its restart, and the most exit codes in one.
const MAX_RESTART_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerType {
    Main,
    Init,
    Ephemeral,
}

/// Validates all containers of one list. Names are unique in the whole spec.
pub(super) fn containers<'a>(
    list: &FieldValue<'a>,
    sort: ContainerType,
    pod: &PodContext<'_>,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut FieldErrors,
) {
    if sort == ContainerType::Main && list.is_empty() {
        return list.report_required(errors, "");
    }
    let others = seen.clone();
    let items: &'a [Value] = list.value.as_array().map_or(&[], Vec::as_slice);
    let mut host_ports = BTreeSet::new();
    for (container, value) in list.items().zip(items) {
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
        validate_container(&container, sort, pod, errors);
        if seen.contains(name) && (sort != ContainerType::Init || !name.is_empty()) {
            container.get("name").report_duplicate(errors);
        }
        seen.insert(name);
        if sort == ContainerType::Ephemeral {
            ephemeral_target(&container, &others, errors);
        }
        if sort == ContainerType::Init {
            host_ports.clear();
        }
        unique_host_ports(&container, &mut host_ports, errors);
    }
}

fn validate_container(container: &FieldValue<'_>, sort: ContainerType, pod: &PodContext<'_>, errors: &mut FieldErrors) {
    let name = container.get("name");
    if name.require(errors, "") {
        name.report_invalid_each(errors, names::label(name.str()));
    }
    container.get("image").require(errors, "");
    container.get("terminationMessagePolicy").require_one_of(errors, &["FallbackToLogsOnError", "File"]);
    ports(&container.get("ports"), errors);
    env(&container.get("env"), errors);
    env_from(&container.get("envFrom"), errors);
    mounts(container, &pod.volumes, errors);
    container.get("imagePullPolicy").require_one_of(errors, &["Always", "IfNotPresent", "Never"]);
    requirements(&container.get("resources"), ResourceOwner::Container, &pod.claims, errors);
    let resize = container.get("resizePolicy");
    resize_policy(&resize, pod.spec.get("restartPolicy").str(), errors);
    container_context(&container.get("securityContext"), HostUsers::from_spec(&pod.spec), errors);
    let restarts_always = container.get("restartPolicy").str() == "Always";
    match sort {
        ContainerType::Main => {
            hooks(container, pod, errors);
            restart_policy(container, errors);
        }
        ContainerType::Init => {
            let rules = container.get("restartPolicyRules");
            if restarts_always && !rules.is_empty() {
                let detail = "restartPolicyRules are not allowed for init containers with restart policy Always";
                rules.report_forbidden(errors, detail);
            } else {
                restart_policy(container, errors);
            }
            if restarts_always { hooks(container, pod, errors) } else { init_only(container, errors) }
        }
        ContainerType::Ephemeral => ephemeral_only(container, errors),
    }
}

/// Probes and hooks of a container that runs as long as the pod.
fn hooks(container: &FieldValue<'_>, pod: &PodContext<'_>, errors: &mut FieldErrors) {
    lifecycle(&container.get("lifecycle"), &pod.spec, errors);
    probes(container, pod.spec.get("terminationGracePeriodSeconds").int(), errors);
}

/// Whether a container is restarted, and on which exit codes.
fn restart_policy(container: &FieldValue<'_>, errors: &mut FieldErrors) {
    let policy = container.get("restartPolicy");
    let rules = container.get("restartPolicyRules");
    if policy.is_set() {
        policy.require_one_of(errors, &["Always", "Never", "OnFailure"]);
    } else if !rules.is_empty() {
        policy.report_required(errors, "must specify restartPolicy when restart rules are used");
    }
    if rules.len() > MAX_RESTART_RULES {
        errors.push(FieldError::too_long(rules.path(), MAX_RESTART_RULES));
    }
    for rule in rules.items() {
        rule.get("action").require_one_of(errors, &["Restart"]);
        let codes = rule.get("exitCodes");
        if !codes.is_set() {
            codes.report_required(errors, "must be specified");
            continue;
        }
        codes.get("operator").require_one_of(errors, &["In", "NotIn"]);
        if codes.get("values").len() > MAX_EXIT_CODES {
            errors.push(FieldError::too_long(codes.get("values").path(), MAX_EXIT_CODES));
        }
    }
}

/// What happens to a container whose resources change. All errors are at the list, as in kube-apiserver.
fn resize_policy(list: &FieldValue<'_>, pod_policy: &str, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for policy in list.items() {
        let name = policy.get("resourceName");
        let action = policy.get("restartPolicy");
        if !seen.insert(name.str().to_owned()) {
            errors.push(FieldError::duplicate(policy.path(), name.value));
        }
        for (given, known) in [(&name, ["cpu", "memory"]), (&action, ["NotRequired", "RestartContainer"])] {
            if given.is_empty() {
                list.report_required(errors, "");
            } else if !known.contains(&given.str()) {
                errors.push(FieldError::not_supported(list.path(), given.value, &known));
            }
        }
        if pod_policy == "Never" && action.str() != "NotRequired" {
            let detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(list.path(), &action.str().into(), detail));
        }
    }
}

fn init_only(container: &FieldValue<'_>, errors: &mut FieldErrors) {
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if container.get(field).is_set() {
            container
                .get(field)
                .report_forbidden(errors, "may not be set for init containers without restartPolicy=Always");
        }
    }
}

/// The container that an ephemeral one joins, and the mounts that it may not have.
fn ephemeral_target(container: &FieldValue<'_>, others: &BTreeSet<&str>, errors: &mut FieldErrors) {
    let target = container.get("targetContainerName");
    if !target.is_empty() && !others.contains(target.str()) {
        errors.push(FieldError::not_found(target.path(), target.value));
    }
    for mount in container.get("volumeMounts").items() {
        for field in ["subPath", "subPathExpr"] {
            if !mount.get(field).is_empty() {
                mount.get(field).report_forbidden(errors, "cannot be set for an Ephemeral Container");
            }
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

fn unique_host_ports(container: &FieldValue<'_>, seen: &mut BTreeSet<String>, errors: &mut FieldErrors) {
    for port in container.get("ports").items() {
        let Some(host) = port.get("hostPort").int().filter(|host| *host != 0) else { continue };
        let claim = format!("{}/{}/{host}", port.get("protocol").str(), port.get("hostIP").str());
        if !seen.insert(claim.clone()) {
            errors.push(FieldError::duplicate(port.get("hostPort").path(), &Value::from(claim.as_str())));
        }
    }
}

/// Reports errors about a number, which is shown as one.
pub(super) fn report_invalid_number(at: &FieldValue<'_>, wrong: Vec<String>, errors: &mut FieldErrors) {
    for detail in wrong {
        at.report_invalid(errors, &detail);
    }
}

/// Whose resources are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResourceOwner {
    Container,
    Pod,
}

/// Quantities must not be negative, and requests not above limits.
pub(super) fn requirements(
    resources: &FieldValue<'_>,
    owner: ResourceOwner,
    claims: &BTreeSet<&str>,
    errors: &mut FieldErrors,
) {
    let limits = resources.get("limits");
    let requests = resources.get("requests");
    for list in [&limits, &requests] {
        for (name, amount) in list.entries() {
            resource_amount(amount.value, &amount.path(), name, owner, errors);
        }
    }
    for (name, amount) in requests.entries() {
        above_limit(&requests, name, amount.value, limits.value.get(name), errors);
    }
    let has = |wanted: fn(&str) -> bool| {
        limits.map().into_iter().chain(requests.map()).flatten().any(|(name, _)| wanted(name))
    };
    if has(|name| name.starts_with("hugepages-")) && !has(|name| ["cpu", "memory"].contains(&name)) {
        resources.report_forbidden(errors, "HugePages require cpu or memory");
    }
    claim_names(&resources.get("claims"), claims, errors);
}

/// Validates references to the pod's claims. A claim is referenced as a whole, or by its requests.
fn claim_names(list: &FieldValue<'_>, known: &BTreeSet<&str>, errors: &mut FieldErrors) {
    let mut whole = BTreeSet::new();
    let mut parts = BTreeSet::new();
    for claim in list.items() {
        let name = claim.get("name");
        let name = name.str();
        if name.is_empty() {
            claim.report_required(errors, "");
            continue;
        }
        let request = claim.get("request");
        let part = (name.to_owned(), request.str().to_owned());
        let repeated = if whole.contains(name) || (request.is_empty() && holds_part(&parts, name)) {
            Some(name.to_owned())
        } else if parts.contains(&part) {
            Some(format!("{name}/{}", request.str()))
        } else {
            None
        };
        if !request.is_empty() && !whole.contains(name) {
            request.report_invalid_each(errors, names::label(request.str()));
        }
        if let Some(repeated) = repeated {
            errors.push(FieldError::duplicate(claim.path(), &repeated.into()));
        }
        if request.is_empty() {
            whole.insert(name.to_owned());
        } else {
            parts.insert(part);
        }
        if !known.contains(name) {
            let among = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {}", known.iter().copied().collect::<Vec<_>>().join(", "))
            };
            let mut error = FieldError::not_found(claim.path(), &name.into());
            error.message.push_str(": must be one of the names in pod.spec.resourceClaims");
            error.message.push_str(&among);
            errors.push(error);
        }
    }
}

/// Whether any request of a claim is in an ordered set of them.
fn holds_part(parts: &BTreeSet<(String, String)>, claim: &str) -> bool {
    parts.range((claim.to_owned(), String::new())..).next().is_some_and(|(of, _)| of == claim)
}

/// Validates one amount of a resource and the name of the resource. Errors are reported at `at`.
pub(super) fn resource_amount(amount: &Value, at: &str, name: &str, owner: ResourceOwner, errors: &mut FieldErrors) {
    resource_name(at, name, owner, errors);
    let quantity = Quantity::from_value(amount);
    if quantity.is_some_and(Quantity::is_negative) {
        errors.push(FieldError::invalid(at, amount, "must be greater than or equal to 0"));
    }
    if name.contains('/') && quantity.is_some_and(|quantity| !quantity.is_integer()) {
        errors.push(FieldError::invalid(at, amount, "must be an integer"));
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

fn resource_name(at: &str, name: &str, owner: ResourceOwner, errors: &mut FieldErrors) {
    let value = Value::from(name);
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(at, &value, detail));
    let wrong = names::qualified(name);
    if !wrong.is_empty() {
        return wrong.iter().for_each(|detail| refuse(detail));
    }
    let is_of_container = STANDARD_RESOURCES.contains(&name) || name.starts_with("hugepages-");
    let is_standard = is_of_container || name.contains('/') || OTHER_STANDARD_RESOURCES.contains(&name);
    if !is_standard {
        refuse("must be a standard resource type or fully qualified");
    }
    match owner {
        ResourceOwner::Pod if is_standard && !["cpu", "memory"].contains(&name) && !name.starts_with("hugepages-") => {
            errors.push(FieldError::not_supported(at, &value, &["cpu", "hugepages-", "memory"]));
        }
        ResourceOwner::Container if !name.contains('/') && !is_of_container => {
            refuse("must be a standard resource for containers");
        }
        ResourceOwner::Container
            if name.contains('/')
                && !name.contains("kubernetes.io/")
                && (name.starts_with("requests.") || !names::qualified(&format!("requests.{name}")).is_empty()) =>
        {
            refuse("doesn't follow extended resource name standard");
        }
        _ => {}
    }
}
