//! Endpoints, EndpointSlice, Ingress, IngressClass and NetworkPolicy.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{
    at::At,
    names,
    object::{
        each, fill, fill_text, first_generation, keep, keep_all_but_status, made, next_generation_of_all, part, set,
        sub,
    },
    pod, selector,
};
use crate::{
    api::field::{Error, Errors},
    registry::Strategy,
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Rules of Endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints;

/// Rules of EndpointSlice.
#[derive(Clone, Copy, Debug)]
pub struct Slice;

/// Rules of Ingress.
#[derive(Clone, Copy, Debug)]
pub struct Ingress;

/// Rules of IngressClass.
#[derive(Clone, Copy, Debug)]
pub struct IngressClass;

/// Rules of NetworkPolicy.
#[derive(Clone, Copy, Debug)]
pub struct Policy;

impl Strategy for Endpoints {
    fn default(&self, object: &mut Value) {
        let Some(endpoints) = object.as_object_mut() else { return };
        for subset in each(endpoints, "subsets") {
            each(subset, "ports").for_each(|port| fill_text(port, "protocol", "TCP"));
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        for subset in root.get("subsets").items() {
            if subset.get("addresses").is_empty() && subset.get("notReadyAddresses").is_empty() {
                subset.required(errors, "must specify `addresses` or `notReadyAddresses`");
            }
            for list in ["addresses", "notReadyAddresses"] {
                for address in subset.get(list).items() {
                    ip(&address.get("ip"), errors);
                }
            }
            let ports = subset.get("ports");
            for port in ports.items() {
                if ports.len() > 1 {
                    port.get("name").require(errors, "");
                }
                number(&port.get("port"), errors);
                port.get("protocol").one_of(errors, &PROTOCOLS);
            }
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
    }

    fn create_on_update(&self) -> bool {
        true
    }
}

impl Strategy for Slice {
    fn default(&self, object: &mut Value) {
        let Some(slice) = object.as_object_mut() else { return };
        for field in ["endpoints", "ports"] {
            slice.entry(field).or_insert(Value::Null);
        }
        each(slice, "endpoints").for_each(|endpoint| fill(endpoint, "conditions", json!({})));
        for port in each(slice, "ports") {
            fill(port, "name", "");
            fill_text(port, "protocol", "TCP");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        next_generation_of_all(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let kind = root.get("addressType");
        if kind.require(errors, "") {
            kind.one_of(errors, &["FQDN", "IPv4", "IPv6"]);
        }
        for endpoint in root.get("endpoints").items() {
            let addresses = endpoint.get("addresses");
            addresses.require(errors, "must contain at least 1 address");
            for address in addresses.items() {
                of_family(&address, kind.str(), errors);
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for port in root.get("ports").items() {
            let name = port.value.get("name").and_then(Value::as_str).unwrap_or_default();
            if seen.contains(&name) {
                port.get("name").duplicate(errors);
            } else if !name.is_empty() {
                port.get("name").invalid_each(errors, names::label(name));
            }
            seen.push(name);
            port.get("protocol").one_of(errors, &PROTOCOLS);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
        let (root, old_root) = (At::root(new), At::root(old));
        root.get("addressType").immutable(errors, &old_root.get("addressType"));
    }
}

fn of_family(address: &At<'_>, family: &str, errors: &mut Errors) {
    let parsed = address.str().parse::<IpAddr>();
    match (family, parsed) {
        ("IPv4" | "IPv6", Err(_)) => ip(address, errors),
        ("IPv4", Ok(IpAddr::V6(_))) => address.invalid(errors, "must be an IPv4 address"),
        ("IPv6", Ok(IpAddr::V4(_))) => address.invalid(errors, "must be an IPv6 address"),
        ("FQDN", _) => address.invalid_each(errors, names::subdomain(address.str())),
        _ => {}
    }
}

fn ip(at: &At<'_>, errors: &mut Errors) {
    if at.str().parse::<IpAddr>().is_err() {
        at.invalid_each(errors, vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]);
    }
}

fn number(at: &At<'_>, errors: &mut Errors) {
    let port = at.int().unwrap_or(0);
    for detail in names::port_number(port) {
        errors.push(Error::invalid(at.path(), &json!(port), &detail));
    }
}

impl Strategy for Ingress {
    fn default(&self, object: &mut Value) {
        made(object, "spec");
        if let Some(status) = made(object, "status") {
            fill(status, "loadBalancer", json!({}));
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"loadBalancer": {}}));
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        if subresource == "status" {
            return keep_all_but_status(new, old);
        }
        keep(new, old, "status");
        next_generation_of_all(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        let (rules, backend) = (spec.get("rules"), spec.get("defaultBackend"));
        if rules.is_empty() && !backend.is_set() {
            spec.invalid_as(errors, "[]", "either `defaultBackend` or `rules` must be specified");
        }
        if backend.is_set() {
            self::backend(&backend, errors);
        }
        let class = spec.get("ingressClassName");
        if class.is_set() {
            class.invalid_each(errors, names::subdomain(class.str()));
        }
        for rule in rules.items() {
            self::rule(&rule, errors);
        }
        for tls in spec.get("tls").items() {
            tls.get("hosts").items().for_each(|host| self::host(&host, errors));
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource != "status" {
            self.validate_create(new, errors);
        }
    }
}

fn host(host: &At<'_>, errors: &mut Errors) {
    let check = if host.str().contains('*') { names::wildcard_subdomain } else { names::subdomain };
    host.invalid_each(errors, check(host.str()));
}

fn rule(rule: &At<'_>, errors: &mut Errors) {
    let host = rule.get("host");
    if !host.is_empty() {
        if host.str().parse::<IpAddr>().is_ok() {
            host.invalid(errors, "must be a DNS name, not an IP address");
        }
        self::host(&host, errors);
    }
    let http = rule.get("http");
    if !http.is_set() {
        return;
    }
    http.get("paths").require(errors, "");
    for path in http.get("paths").items() {
        let (kind, text) = (path.get("pathType"), path.get("path"));
        if !kind.is_set() {
            kind.required(errors, "pathType must be specified");
        } else {
            kind.one_of(errors, &["Exact", "ImplementationSpecific", "Prefix"]);
        }
        let needs_path = ["Exact", "Prefix"].contains(&kind.str());
        if (needs_path || !text.is_empty()) && !text.str().starts_with('/') {
            text.invalid_each(errors, vec!["must be an absolute path".to_owned()]);
        }
        self::backend(&path.get("backend"), errors);
    }
}

fn backend(backend: &At<'_>, errors: &mut Errors) {
    let (service, resource) = (backend.get("service"), backend.get("resource"));
    match (service.is_set(), resource.is_set()) {
        (true, true) => return backend.invalid_as(errors, "\"\"", "cannot set both resource and service backends"),
        (false, false) => return backend.invalid_as(errors, "\"\"", "resource or service backend is required"),
        (false, true) => return,
        (true, false) => {}
    }
    let name = service.get("name");
    if name.require(errors, "") {
        name.invalid_each(errors, names::label_1035(name.str()));
    }
    let port = service.get("port");
    let (by_name, by_number) = (port.get("name"), port.get("number"));
    match (!by_name.is_empty(), by_number.int().unwrap_or(0) != 0) {
        (true, true) => backend.invalid_as(errors, "\"\"", "cannot set both port name & port number"),
        (true, false) => by_name.invalid_each(errors, names::port_name(by_name.str())),
        (false, true) => number(&by_number, errors),
        (false, false) => backend.required(errors, "port name or number is required"),
    }
}

impl Strategy for IngressClass {
    fn default(&self, object: &mut Value) {
        if let Some(parameters) = part(object, "spec").and_then(|spec| sub(spec, "parameters")) {
            fill_text(parameters, "scope", "Cluster");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        next_generation_of_all(new, old);
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        let (root, old_root) = (At::root(new), At::root(old));
        let (spec, old_spec) = (root.get("spec"), old_root.get("spec"));
        spec.get("controller").immutable(errors, &old_spec.get("controller"));
    }
}

impl Strategy for Policy {
    fn default(&self, object: &mut Value) {
        let Some(spec) = made(object, "spec") else { return };
        fill(spec, "podSelector", json!({}));
        for rules in ["ingress", "egress"] {
            for rule in each(spec, rules) {
                each(rule, "ports").for_each(|port| fill_text(port, "protocol", "TCP"));
            }
        }
        let some = |field: &str| spec.get(field).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !some("policyTypes") {
            let types = if some("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            spec.insert("policyTypes".to_owned(), types);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        next_generation_of_all(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        selector::validate(&spec.get("podSelector"), errors);
        for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
            for rule in spec.get(rules).items() {
                rule.get("ports").items().for_each(|port| policy_port(&port, errors));
                rule.get(peers).items().for_each(|peer| self::peer(&peer, errors));
            }
        }
        let types = spec.get("policyTypes");
        if types.len() > 2 {
            return types.invalid(errors, "may not specify more than two policyTypes");
        }
        types.items().for_each(|kind| kind.one_of(errors, &["Ingress", "Egress"]));
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
    }
}

fn policy_port(port: &At<'_>, errors: &mut Errors) {
    port.get("protocol").one_of(errors, &["TCP", "UDP", "SCTP"]);
    let (first, last) = (port.get("port"), port.get("endPort"));
    if first.is_set() {
        pod::port(&first, errors);
    }
    if !last.is_set() {
        return;
    }
    match first.value {
        Value::Null => last.invalid(errors, "may not be specified when `port` is not specified"),
        Value::String(_) => last.invalid(errors, "may not be specified when `port` is non-numeric"),
        _ if last.int() < first.int() => {
            last.invalid_as(errors, &first.value.to_string(), "must be greater than or equal to `port`");
        }
        _ => number(&last, errors),
    }
}

fn peer(peer: &At<'_>, errors: &mut Errors) {
    let (pods, namespaces, block) = (peer.get("podSelector"), peer.get("namespaceSelector"), peer.get("ipBlock"));
    selector::validate(&pods, errors);
    selector::validate(&namespaces, errors);
    let selects = pods.is_set() || namespaces.is_set();
    if block.is_set() {
        let cidr = block.get("cidr");
        if cidr.require(errors, "") && !is_cidr(cidr.str()) {
            cidr.invalid(errors, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        }
    }
    match (selects, block.is_set()) {
        (false, false) => peer.required(errors, "must specify a peer"),
        (true, true) => peer.forbidden(errors, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}
