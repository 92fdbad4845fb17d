//! Networking: Endpoints and EndpointSlice here, Ingress and NetworkPolicy below.

mod ingress;
mod policy;

use std::net::IpAddr;

use serde_json::{Value, json};

pub use self::{
    ingress::{Ingress, IngressClass},
    policy::Policy,
};
use super::{
    at::At,
    names,
    object::{each, fill, fill_text, first_generation, next_generation_of_all},
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
