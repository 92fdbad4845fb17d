//! Validates Services.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use crate::{
    api::{
        ObjectKey,
        field::{FieldError, FieldErrorType, FieldErrors},
    },
    kinds::{
        field_value::FieldValue,
        json_object::{list_at, text_at},
        metadata, names, network, pod,
        service_allocator::{ServiceAllocation, ServiceAllocator},
    },
};

const FOR_LOAD_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

/// The rules of every Service.
pub(super) fn service(object: &Value, errors: &mut FieldErrors) {
    let root = FieldValue::root(object);
    let spec = root.get("spec");
    let kind = spec.get("type");
    kind.require_one_of(errors, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    if spec.get("ports").is_empty() && !is_headless(&spec) && kind.str() != "ExternalName" {
        spec.get("ports").report_required(errors, "");
    }
    by_type(&spec, errors);
    ports(&spec, errors);
    metadata::labels(&spec.get("selector"), errors);
    affinity(&spec, errors);
    if kind.str() != "ExternalName" {
        cluster_ips(&spec, errors);
    }
    for ip in spec.get("externalIPs").items() {
        match ip.str().parse::<IpAddr>() {
            Ok(_) => network::endpoint_ip(&ip, network::LoopbackEndpoints::Refused, errors),
            Err(_) => ip_address(&ip, errors),
        }
    }
    traffic(&spec, errors);
}

fn is_headless(spec: &FieldValue<'_>) -> bool {
    spec.get("clusterIP").str() == "None"
}

fn by_type(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let kind = spec.get("type");
    match kind.str() {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {} services", kind.str());
            errors.push(FieldError::invalid("spec.clusterIPs[0]", &json!("None"), &detail));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !spec.get(field).is_empty() {
                    spec.get(field).report_forbidden(errors, "may not be set for ExternalName services");
                }
            }
            let name = spec.get("externalName");
            let host = name.str().strip_suffix('.').unwrap_or(name.str());
            if host.is_empty() {
                name.report_required(errors, "");
            } else {
                for detail in names::subdomain(host) {
                    errors.push(FieldError::invalid(name.path(), &json!(host), &detail));
                }
            }
        }
        _ => {}
    }
    if kind.str() != "LoadBalancer" {
        for (field, shown) in
            [("loadBalancerSourceRanges", "LoadBalancerSourceRanges"), ("allocateLoadBalancerNodePorts", "")]
        {
            if !spec.get(field).is_empty() {
                let shown = if shown.is_empty() { field } else { shown };
                spec.get(shown).report_forbidden(errors, FOR_LOAD_BALANCERS);
            }
        }
        if spec.get("loadBalancerClass").is_set() {
            spec.get("loadBalancerClass").report_forbidden(errors, FOR_LOAD_BALANCERS);
        }
    }
}

fn ports(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let list = spec.get("ports");
    let mut seen_names = Vec::new();
    let mut seen_ports = Vec::new();
    let mut seen_node_ports = Vec::new();
    for port in list.items() {
        port_itself(&port, list.len() > 1, errors);
        let text = |field: &str| port.value.get(field).and_then(Value::as_str).unwrap_or_default();
        if !text("name").is_empty() && seen_names.contains(&text("name")) {
            port.get("name").report_duplicate(errors);
        }
        seen_names.push(text("name"));
        let number = |field: &str| port.get(field).int().unwrap_or(0);
        let node_port = (text("protocol"), number("nodePort"));
        if node_port.1 != 0 {
            if spec.get("type").str() == "ClusterIP" {
                port.get("nodePort").report_forbidden(errors, "may not be used when `type` is 'ClusterIP'");
            }
            if seen_node_ports.contains(&node_port) {
                port.get("nodePort").report_duplicate(errors);
            }
            seen_node_ports.push(node_port);
        }
        let key = (text("protocol"), number("port"));
        if seen_ports.contains(&key) {
            duplicate_port(&port, key, errors);
        }
        seen_ports.push(key);
    }
}

/// kube-apiserver shows a whole port of its own type here, most of it empty.
fn duplicate_port(port: &FieldValue<'_>, (protocol, number): (&str, i64), errors: &mut FieldErrors) {
    let shown = format!(
        "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
    );
    let kind = crate::api::field::FieldErrorType::Duplicate;
    errors.push(FieldError::new(port.path(), kind, format!("Duplicate value: {shown}")));
}

fn port_itself(port: &FieldValue<'_>, needs_name: bool, errors: &mut FieldErrors) {
    let name = port.get("name");
    if name.is_empty() {
        if needs_name {
            name.report_required(errors, "");
        }
    } else {
        name.report_invalid_each(errors, names::label(name.str()));
    }
    let number = port.get("port").int().unwrap_or(0);
    for detail in names::port_number(number) {
        errors.push(FieldError::invalid(port.get("port").path(), &json!(number), &detail));
    }
    port.get("protocol").require_one_of(errors, &["SCTP", "TCP", "UDP"]);
    pod::port(&port.get("targetPort"), errors);
    let app = port.get("appProtocol");
    if app.is_set() {
        app.report_invalid_each(errors, names::qualified(app.str()));
    }
}

fn affinity(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let affinity = spec.get("sessionAffinity");
    affinity.require_one_of(errors, &["ClientIP", "None"]);
    let config = spec.get("sessionAffinityConfig");
    let client = config.get("clientIP");
    let seconds = client.get("timeoutSeconds");
    if affinity.str() == "ClientIP" && !seconds.int().is_some_and(|seconds| (1..=86400).contains(&seconds)) {
        seconds.report_invalid(errors, "must be greater than 0 and less than 86400");
    }
    if affinity.str() == "None" && config.is_set() {
        config.report_forbidden(errors, "must not be set when session affinity is None");
    }
}

fn cluster_ips(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let one = spec.get("clusterIP");
    let all = spec.get("clusterIPs");
    match (one.str(), all.items().next().map(|first| first.value)) {
        ("", Some(_)) => all.report_invalid(errors, "must be empty when `clusterIP` is not specified"),
        ("", None) => {}
        (_, None) => all.report_required(errors, ""),
        (one, Some(first)) if first != one => all.report_invalid(errors, "first value must match `clusterIP`"),
        _ => {}
    }
    let families = spec.get("ipFamilies");
    let mut seen = std::collections::BTreeSet::new();
    for family in families.items() {
        family.require_one_of(errors, &["IPv4", "IPv6"]);
        if !seen.insert(family.str().to_owned()) {
            family.report_duplicate(errors);
        }
    }
    let policy = spec.get("ipFamilyPolicy");
    if policy.is_set() {
        policy.require_one_of(errors, &["PreferDualStack", "RequireDualStack", "SingleStack"]);
    }
    let before = errors.len();
    for (index, ip) in all.items().enumerate() {
        match ip.str() {
            "None" if index == 0 && all.len() > 1 => {
                all.report_invalid(errors, "'None' must be the first and only value");
            }
            "None" if index == 0 => {}
            _ => ip_address(&ip, errors),
        }
    }
    let has_invalid = errors.len() > before;
    if all.len() > 2 {
        all.report_invalid(errors, "may only hold up to 2 values");
    }
    if has_invalid {
        return;
    }
    if !is_headless(spec) {
        family_of_each(&all, &families, errors);
    }
    // A Service without addresses of its own may name any family.
    let is_free = is_headless(spec) && spec.get("selector").is_empty();
    if errors.len() == before && !is_free {
        only_ipv4(spec, errors);
    }
}

/// At most one address of each family, in the order in which the families are given.
fn family_of_each(all: &FieldValue<'_>, families: &FieldValue<'_>, errors: &mut FieldErrors) {
    let is_v6 = |ip: &FieldValue<'_>| ip.str().contains(':');
    if all.len() > 1 && (all.len() > 2 || all.items().all(|ip| is_v6(&ip)) || !all.items().any(|ip| is_v6(&ip))) {
        all.report_invalid(errors, "may specify no more than one IP for each IP family");
    }
    for (index, (ip, family)) in all.items().zip(families.items()).enumerate() {
        if (family.str() == "IPv6") != is_v6(&ip) {
            let detail = format!("expected an {} value as indicated by `ipFamilies[{index}]`", family.str());
            ip.report_invalid(errors, &detail);
        }
    }
}

/// Refuses what needs IPv6, which Services do not have here.
fn only_ipv4(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let families = spec.get("ipFamilies");
    let all = spec.get("clusterIPs");
    for ip in all.items().skip(families.len()).filter(|ip| ip.str().contains(':')) {
        errors.push(FieldError::invalid(ip.path(), all.value, "IPv6 is not configured on this cluster"));
    }
    let policy = spec.get("ipFamilyPolicy");
    if policy.str() == "RequireDualStack" {
        policy.report_invalid(errors, "this cluster is not configured for dual-stack services");
    }
    for family in families.items().filter(|family| family.str() == "IPv6") {
        family.report_invalid(errors, "not configured on this cluster");
    }
}

fn ip_address(ip: &FieldValue<'_>, errors: &mut FieldErrors) {
    if ip.str().parse::<IpAddr>().is_err() {
        ip.report_invalid(errors, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

fn traffic(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let outside = spec.get("externalTrafficPolicy");
    let kind = spec.get("type");
    let external = ["NodePort", "LoadBalancer"].contains(&kind.str())
        || (kind.str() == "ClusterIP" && !spec.get("externalIPs").is_empty());
    if !external && !outside.is_empty() {
        outside.report_invalid(errors, "may only be set for externally-accessible services");
    } else if external {
        outside.require_one_of(errors, &["Cluster", "Local"]);
    }
    let inside = spec.get("internalTrafficPolicy");
    if inside.is_set() {
        inside.require_one_of(errors, &["Cluster", "Local"]);
    }
    let health = spec.get("healthCheckNodePort");
    let needs = kind.str() == "LoadBalancer" && outside.str() == "Local";
    if !needs && health.int().unwrap_or(0) != 0 {
        let words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        health.report_invalid(errors, words);
    }
    let distribution = spec.get("trafficDistribution");
    if distribution.is_set() {
        distribution.require_one_of(errors, &["PreferClose", "PreferSameNode", "PreferSameZone"]);
    }
}

/// An address must stay as long as the type needs one.
pub(super) fn change(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let kind = |object: &Value| text_at(object, &["spec", "type"]) == "ExternalName";
    let headless = |object: &Value| text_at(object, &["spec", "clusterIP"]) == "None";
    if kind(new) || kind(old) || (headless(new) && headless(old)) {
        return;
    }
    let now = list_at(new, &["spec", "clusterIPs"]);
    let before = list_at(old, &["spec", "clusterIPs"]);
    let shown = json!(now);
    for (index, ip) in before.iter().enumerate() {
        match now.get(index) {
            Some(same) if same == ip => {}
            None if index > 0 => {}
            None => {
                errors.push(FieldError::invalid("spec.clusterIPs[0]", &shown, "primary clusterIP can not be unset"))
            }
            Some(_) => {
                errors.push(FieldError::invalid(
                    format!("spec.clusterIPs[{index}]"),
                    &shown,
                    "may not change once set",
                ));
            }
        }
    }
}

/// A requested address or port must be in its range, and free or the Service's own already.
pub(super) fn claims(
    new: &Value,
    old: Option<&Value>,
    own: Option<&ObjectKey>,
    addresses: &ServiceAllocator,
    errors: &mut FieldErrors,
) {
    let taken = |claim: &ServiceAllocation| addresses.holder(claim).is_some_and(|holder| own != Some(&holder));
    let ips = list_at(new, &["spec", "clusterIPs"]);
    // No address is allocated for a Service that is refused for its families.
    let is_other_family = list_at(new, &["spec", "ipFamilies"]).first().is_some_and(|family| family == "IPv6");
    if ips.is_empty() && !is_other_family && text_at(new, &["spec", "type"]) != "ExternalName" {
        let message = "Internal error: failed to allocate a serviceIP: range is full";
        errors.push(FieldError::new("spec.clusterIPs", FieldErrorType::Internal, message));
    }
    let kept = old.map_or(&[][..], |old| list_at(old, &["spec", "clusterIPs"]));
    for ip in ips.iter().filter(|ip| !kept.contains(ip)) {
        let Some(ip) = ip.as_str().and_then(|ip| ip.parse::<Ipv4Addr>().ok()) else { continue };
        let why = if !addresses.contains(ip) {
            format!("the provided IP ({ip}) is not in the valid range. The range of valid IPs is {addresses}")
        } else if taken(&ServiceAllocation::Ip(ip)) {
            "provided IP is already allocated".to_owned()
        } else {
            continue;
        };
        errors.push(FieldError::invalid("spec.clusterIPs", &json!(ips), &format!("failed to allocate IP {ip}: {why}")));
    }
    let had = |port: i64| {
        let ports = old.map_or(&[][..], |old| list_at(old, &["spec", "ports"]));
        ports.iter().any(|old| old.get("nodePort").and_then(Value::as_i64) == Some(port))
    };
    for (index, port) in list_at(new, &["spec", "ports"]).iter().enumerate() {
        let Some(number) = port.get("nodePort").and_then(Value::as_i64).filter(|number| *number != 0) else { continue };
        let why = if !ServiceAllocator::contains_port(number) {
            "provided port is not in the valid range. The range of valid ports is 30000-32767"
        } else if !had(number) && u16::try_from(number).is_ok_and(|port| taken(&ServiceAllocation::NodePort(port))) {
            "provided port is already allocated"
        } else {
            continue;
        };
        errors.push(FieldError::invalid(format!("spec.ports[{index}].nodePort"), &json!(number), why));
    }
}
