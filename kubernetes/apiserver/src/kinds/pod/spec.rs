//! Validates a pod spec, in a Pod or in a template.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use serde_json::Value;

use super::{
    container::{ContainerType, ResourceOwner, containers, report_invalid_number, requirements, resource_amount},
    scheduling, security,
    volume::{self, VolumeIndex},
};
use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, metadata, names},
};

/// Limits of the configuration of name resolution.
const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCH_PATHS: usize = 32;
const MAX_SEARCH_LIST_BYTES: usize = 2048;
/// The longest host name of a pod, in bytes.
const MAX_HOST_NAME_BYTES: usize = 64;

/// What the containers of a pod have in common.
#[derive(Debug)]
pub(super) struct PodContext<'a> {
    pub spec: FieldValue<'a>,
    pub volumes: VolumeIndex<'a>,
    /// The names of the pod's claims for devices.
    pub claims: BTreeSet<&'a str>,
}

/// Validates the template of another kind: its labels and annotations, and its spec.
pub(in crate::kinds) fn validate_template(template: &FieldValue<'_>, errors: &mut FieldErrors) {
    let meta = template.get("metadata");
    metadata::labels(&meta.get("labels"), errors);
    metadata::annotations(&meta.get("annotations"), errors);
    validate(&template.get("spec"), errors);
    if !template.get("spec").get("ephemeralContainers").is_empty() {
        let ephemeral = "ephemeral containers not allowed in pod template";
        template.get("spec").get("ephemeralContainers").report_forbidden(errors, ephemeral);
    }
}

pub(in crate::kinds) fn validate(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let volumes = volume::volumes(&spec.get("volumes"), errors);
    let claims = resource_claims(&spec.get("resourceClaims"), errors);
    let context = PodContext { spec: *spec, volumes, claims };
    let mut seen = BTreeSet::new();
    for (list, sort) in [
        ("containers", ContainerType::Main),
        ("initContainers", ContainerType::Init),
        ("ephemeralContainers", ContainerType::Ephemeral),
    ] {
        containers(&spec.get(list), sort, &context, &mut seen, errors);
    }
    pod_resources(spec, errors);
    host_network(spec, errors);
    spec.get("restartPolicy").require_one_of(errors, &["Always", "OnFailure", "Never"]);
    spec.get("dnsPolicy").require_one_of(errors, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    metadata::labels(&spec.get("nodeSelector"), errors);
    security::pod_context(spec, errors);
    scheduling::validate(spec, errors);
    dns_config(spec, errors);
    for gate in spec.get("readinessGates").items() {
        let condition = gate.get("conditionType");
        condition.report_invalid_each(errors, names::qualified(condition.str()));
    }
    security::host_users(spec, errors);
    host_name(spec, errors);
    for (field, check) in [
        ("serviceAccountName", names::subdomain as fn(&str) -> Vec<String>),
        ("nodeName", names::subdomain),
        ("priorityClassName", names::subdomain),
        ("runtimeClassName", names::subdomain),
        ("hostname", names::label),
        ("subdomain", names::label),
    ] {
        let at = spec.get(field);
        if !at.is_empty() {
            at.report_invalid_each(errors, check(at.str()));
        }
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if let Some(seconds) = deadline.int() {
        report_invalid_number(&deadline, names::in_range(seconds, 1, i64::from(i32::MAX)), errors);
    }
    host_aliases(&spec.get("hostAliases"), errors);
    let preemption = spec.get("preemptionPolicy");
    if preemption.is_set() && preemption.require(errors, "") {
        preemption.require_one_of(errors, &["PreemptLowerPriority", "Never"]);
    }
    overhead(&spec.get("overhead"), errors);
    security::operating_system(spec, errors);
    file_volumes(spec, errors);
}

/// The host name that replaces a pod's own.
fn host_name(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let name = spec.get("hostnameOverride");
    if !name.is_set() {
        return;
    }
    for (field, detail) in [
        ("setHostnameAsFQDN", "may not be specified when setHostnameAsFQDN is true"),
        ("hostNetwork", "may not be specified when hostNetwork is true"),
    ] {
        if spec.get(field).is_true() {
            name.report_forbidden(errors, detail);
        }
    }
    if name.str().len() > MAX_HOST_NAME_BYTES {
        errors.push(FieldError::too_long(name.path(), MAX_HOST_NAME_BYTES));
    }
    name.report_invalid_each(errors, names::subdomain(name.str()));
}

/// What a pod needs beside its containers, in the form of limits.
fn overhead(overhead: &FieldValue<'_>, errors: &mut FieldErrors) {
    for (name, amount) in overhead.entries() {
        resource_amount(
            amount.value,
            &format!("{}.limits[{name}]", overhead.path()),
            name,
            ResourceOwner::Container,
            errors,
        );
    }
}

/// Environment variables from files need a volume that can hold them.
fn file_volumes(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let volumes = spec.value.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let volumes: BTreeMap<&str, &Value> =
        volumes.map(|volume| (volume.get("name").and_then(Value::as_str).unwrap_or_default(), volume)).collect();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in spec.get(list).items() {
            for variable in container.get("env").items() {
                let from = variable.get("valueFrom");
                let file = from.get("fileKeyRef");
                let name = file.get("volumeName");
                if !file.is_set() {
                    continue;
                }
                match volumes.get(name.str()) {
                    None => errors.push(FieldError::not_found(name.path(), &name.str().into())),
                    Some(volume) if volume.get("emptyDir").is_none_or(Value::is_null) => {
                        name.report_invalid(errors, "referenced volume must be of type emptyDir");
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

fn ip_address(ip: &FieldValue<'_>, errors: &mut FieldErrors) {
    if ip.str().parse::<IpAddr>().is_err() {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        ip.report_invalid_each(errors, vec![detail.to_owned()]);
    }
}

fn host_aliases(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    for alias in list.items() {
        let ip = alias.get("ip");
        let hosts = alias.get("hostnames");
        ip_address(&ip, errors);
        for host in hosts.items() {
            host.report_invalid_each(errors, names::subdomain(host.str()));
        }
    }
}

fn host_network(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for container in spec.get("containers").items() {
        for port in container.get("ports").items() {
            let inside = port.get("containerPort");
            let outside = port.get("hostPort");
            if outside.is_set() && inside.value != outside.value {
                outside.report_invalid(errors, "must match `containerPort` when `hostNetwork` is true");
            }
        }
    }
}

fn dns_config(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let config = spec.get("dnsConfig");
    let servers = config.get("nameservers");
    if spec.get("dnsPolicy").str() == "None" {
        if !config.is_set() {
            return config.report_required(errors, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        if !servers.require(errors, detail) {
            return;
        }
    }
    if servers.len() > MAX_NAMESERVERS {
        servers.report_invalid(errors, &format!("must not have more than {MAX_NAMESERVERS} nameservers"));
    }
    for server in servers.items() {
        ip_address(&server, errors);
    }
    let searches = config.get("searches");
    if searches.len() > MAX_SEARCH_PATHS {
        searches.report_invalid(errors, &format!("must not have more than {MAX_SEARCH_PATHS} search paths"));
    }
    let length = searches.items().map(|search| search.str().len().saturating_add(1)).sum::<usize>();
    if length.saturating_sub(1) > MAX_SEARCH_LIST_BYTES {
        let limit = format!("must not have more than {MAX_SEARCH_LIST_BYTES} characters (including spaces)");
        searches.report_invalid(errors, &format!("{limit} in the search list"));
    }
    for search in searches.items().filter(|search| search.str() != ".") {
        let name = search.str().strip_suffix('.').unwrap_or(search.str());
        for wrong in names::subdomain_with_underscore(name) {
            errors.push(FieldError::invalid(search.path(), &name.into(), &wrong));
        }
    }
    for option in config.get("options").items() {
        if option.get("name").is_empty() {
            option.report_required(errors, "must not be empty");
        }
    }
}

/// The resources of the pod as a whole: CPU, memory and huge pages.
fn pod_resources(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let resources = spec.get("resources");
    if resources.is_set() {
        if resources.get("claims").is_set() {
            resources.get("claims").report_forbidden(errors, "claims may not be set for Resources at pod-level");
        }
        requirements(&resources, ResourceOwner::Pod, &BTreeSet::new(), errors);
    }
}

/// The claims of a pod for devices. Returns their names.
fn resource_claims<'a>(list: &FieldValue<'a>, errors: &mut FieldErrors) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    let items: &'a [Value] = list.value.as_array().map_or(&[], Vec::as_slice);
    for (claim, value) in list.items().zip(items) {
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
        let at = claim.get("name");
        if at.require(errors, "") {
            if names.contains(name) {
                at.report_duplicate(errors);
            } else {
                at.report_invalid_each(errors, self::names::label(name));
                names.insert(name);
            }
        }
        let sources = [claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")];
        let wrong = match sources.iter().filter(|source| source.is_set()).count() {
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            1 => "",
            _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        };
        if !wrong.is_empty() {
            let [own, template] = &sources;
            let shown = format!(
                "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
                Value::from(name),
                own.value,
                template.value
            );
            claim.report_invalid_as(errors, &shown, wrong);
        }
        for source in sources.iter().filter(|source| source.is_set()) {
            source.report_invalid_each(errors, self::names::subdomain(source.str()));
        }
    }
    names
}
