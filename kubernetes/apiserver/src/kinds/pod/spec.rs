//! Validates a pod spec, in a Pod or in a template.

use std::net::IpAddr;

use serde_json::Value;

use super::{
    container::{ContainerType, containers, report_invalid_number},
    env::field_ref,
};
use crate::{
    api::field::{FieldError, FieldErrors},
    kinds::{field_value::FieldValue, metadata, names, selector},
};

pub(super) type VolumeNames<'a> = Vec<&'a str>;

/// The fields of a volume that are not a source.
const NOT_A_SOURCE: [&str; 1] = ["name"];

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
    let all = spec.get("volumes");
    let volumes = self::volumes(&all, errors);
    let mut seen = Vec::new();
    let lists = [spec.get("containers"), spec.get("initContainers"), spec.get("ephemeralContainers")];
    for (list, sort) in lists.iter().zip([ContainerType::Main, ContainerType::Init, ContainerType::Ephemeral]) {
        containers(list, sort, &volumes, &mut seen, errors);
    }
    host_network(spec, errors);
    spec.get("restartPolicy").require_one_of(errors, &["Always", "OnFailure", "Never"]);
    spec.get("dnsPolicy").require_one_of(errors, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    metadata::labels(&spec.get("nodeSelector"), errors);
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
    tolerations(&spec.get("tolerations"), errors);
    topology(&spec.get("topologySpreadConstraints"), errors);
    affinity(&spec.get("affinity"), errors);
    dns_config(spec, errors);
    user_ids(&spec.get("securityContext"), &["runAsUser", "runAsGroup", "fsGroup"], errors);
    host_aliases(&spec.get("hostAliases"), errors);
    for gate in spec.get("readinessGates").items() {
        let condition = gate.get("conditionType");
        condition.report_invalid_each(errors, names::qualified(condition.str()));
    }
    scheduling_gates(&spec.get("schedulingGates"), errors);
    let system = spec.get("os");
    if system.is_set() && system.get("name").require(errors, "") {
        let name = system.get("name");
        if !["linux", "windows"].contains(&name.str()) {
            errors.push(FieldError::not_supported(system.path(), name.value, &["linux", "windows"]));
        }
    }
}

fn host_aliases(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    for alias in list.items() {
        let ip = alias.get("ip");
        let hosts = alias.get("hostnames");
        if ip.str().parse::<IpAddr>().is_err() {
            ip.report_invalid_each(
                errors,
                vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
            );
        }
        for host in hosts.items() {
            host.report_invalid_each(errors, names::subdomain(host.str()));
        }
    }
}

fn scheduling_gates(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    let mut seen: Vec<&str> = Vec::new();
    for gate in list.items() {
        let name = gate.value.get("name").and_then(Value::as_str).unwrap_or_default();
        for wrong in names::qualified(name) {
            errors.push(FieldError::invalid(gate.path(), &name.into(), &wrong));
        }
        if seen.contains(&name) {
            errors.push(FieldError::duplicate(gate.path(), &name.into()));
        }
        seen.push(name);
    }
}

fn volumes<'a>(all: &'a FieldValue<'a>, errors: &mut FieldErrors) -> VolumeNames<'a> {
    let mut seen: VolumeNames<'a> = Vec::new();
    for volume in all.items() {
        let text = volume.value.get("name").and_then(Value::as_str).unwrap_or_default();
        let name = volume.get("name");
        if name.require(errors, "") {
            name.report_invalid_each(errors, names::label(text));
            if seen.contains(&text) {
                name.report_duplicate(errors);
            }
        }
        seen.push(text);
        source(&volume, errors);
    }
    seen
}

fn source(volume: &FieldValue<'_>, errors: &mut FieldErrors) {
    let given = volume
        .map()
        .into_iter()
        .flatten()
        .filter(|(name, source)| !NOT_A_SOURCE.contains(&name.as_str()) && !source.is_null());
    let mut given = given.map(|(name, _)| name.as_str());
    if given.next().is_none() {
        volume.report_required(errors, "must specify a volume type");
    }
    for more in given {
        volume.get(more).report_forbidden(errors, "may not specify more than 1 volume type");
    }
    let required =
        [("secret", "secretName"), ("configMap", "name"), ("persistentVolumeClaim", "claimName"), ("hostPath", "path")];
    for (kind, field) in required {
        if volume.get(kind).is_set() {
            volume.get(kind).get(field).require(errors, "");
        }
    }
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        files(&volume.get(kind), errors);
        for part in volume.get(kind).get("sources").items() {
            ["secret", "configMap", "downwardAPI"].iter().for_each(|kind| files(&part.get(kind), errors));
        }
    }
}

/// Validates the files of a volume: modes, keys and paths.
fn files(source: &FieldValue<'_>, errors: &mut FieldErrors) {
    mode(&source.get("defaultMode"), errors);
    for item in source.get("items").items() {
        mode(&item.get("mode"), errors);
        let field = item.get("fieldRef");
        let by_key = !field.is_set() && !item.get("resourceFieldRef").is_set();
        if by_key {
            item.get("key").require(errors, "");
        }
        field_ref(&field, errors);
        let path = item.get("path");
        if path.require(errors, "") {
            if path.str().starts_with('/') {
                path.report_invalid(errors, "must be a relative path");
            }
            if path.str().split('/').any(|part| part == "..") {
                path.report_invalid(errors, "must not contain '..'");
            }
            if path.str().starts_with("..") && !path.str().starts_with("../") {
                path.report_invalid(errors, "must not start with '..'");
            }
        }
    }
}

fn mode(mode: &FieldValue<'_>, errors: &mut FieldErrors) {
    if mode.int().is_some_and(|bits| !(0..=0o777).contains(&bits)) {
        mode.report_invalid(errors, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

fn host_network(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !spec.get("hostNetwork").is_true() {
        return;
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get(list).items() {
            for port in container.get("ports").items() {
                let inside = port.get("containerPort");
                let outside = port.get("hostPort");
                if outside.is_set() && inside.value != outside.value {
                    outside.report_invalid(errors, "must match `containerPort` when `hostNetwork` is true");
                }
            }
        }
    }
}

fn tolerations(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    for toleration in list.items() {
        let key = toleration.get("key");
        let operator = toleration.get("operator");
        let value = toleration.get("value");
        let effect = toleration.get("effect");
        if !key.is_empty() {
            key.report_invalid_each(errors, names::qualified(key.str()));
        } else if operator.str() != "Exists" {
            let words = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            operator.report_invalid_each(errors, vec![words.to_owned()]);
        }
        if toleration.get("tolerationSeconds").is_set() && effect.str() != "NoExecute" {
            effect.report_invalid_each(
                errors,
                vec!["effect must be 'NoExecute' when `tolerationSeconds` is set".to_owned()],
            );
        }
        match operator.str() {
            "" | "Equal" => {
                let wrong = names::label_value(value.str());
                if !wrong.is_empty() {
                    operator.report_invalid_as(errors, &value.value.to_string(), &wrong.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                operator.report_invalid_as(
                    errors,
                    &value.value.to_string(),
                    "value must be empty when `operator` is 'Exists'",
                );
            }
            "Exists" => {}
            _ => operator.require_one_of(errors, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            effect.require_one_of(errors, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

fn topology(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    for constraint in list.items() {
        let skew = constraint.get("maxSkew");
        if skew.int().unwrap_or(0) < 1 {
            skew.report_invalid_as(errors, &skew.int().unwrap_or(0).to_string(), "must be greater than zero");
        }
        constraint.get("topologyKey").require(errors, "can not be empty");
        constraint.get("whenUnsatisfiable").require_one_of(errors, &["DoNotSchedule", "ScheduleAnyway"]);
        selector::validate(&constraint.get("labelSelector"), errors);
    }
}

fn affinity(affinity: &FieldValue<'_>, errors: &mut FieldErrors) {
    for sort in ["podAffinity", "podAntiAffinity"] {
        let terms = affinity.get(sort);
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution").items() {
            pod_term(&term, errors);
        }
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution").items() {
            let weight = weighted.get("weight");
            if !(1..=100).contains(&weight.int().unwrap_or(0)) {
                weight.report_invalid_as(errors, &weight.int().unwrap_or(0).to_string(), "must be in the range 1-100");
            }
            pod_term(&weighted.get("podAffinityTerm"), errors);
        }
    }
    let node = affinity.get("nodeAffinity");
    let required = node.get("requiredDuringSchedulingIgnoredDuringExecution");
    if required.is_set() && required.get("nodeSelectorTerms").is_empty() {
        required.get("nodeSelectorTerms").report_required(errors, "must have at least one node selector term");
    }
}

fn pod_term(term: &FieldValue<'_>, errors: &mut FieldErrors) {
    selector::validate(&term.get("labelSelector"), errors);
    selector::validate(&term.get("namespaceSelector"), errors);
    let key = term.get("topologyKey");
    if key.require(errors, "can not be empty") {
        key.report_invalid_each(errors, names::qualified(key.str()));
    }
}

fn dns_config(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let config = spec.get("dnsConfig");
    if spec.get("dnsPolicy").str() != "None" {
        return;
    }
    if !config.is_set() {
        return config.report_required(errors, "must provide `dnsConfig` when `dnsPolicy` is None");
    }
    let words = "must provide at least one DNS nameserver when `dnsPolicy` is None";
    config.get("nameservers").require(errors, words);
}

/// Validates the users and groups of a security context.
pub(super) fn user_ids(context: &FieldValue<'_>, fields: &[&str], errors: &mut FieldErrors) {
    for field in fields {
        let id = context.get(field);
        if let Some(number) = id.int() {
            report_invalid_number(&id, names::in_range(number, 0, i64::from(i32::MAX)), errors);
        }
    }
}
