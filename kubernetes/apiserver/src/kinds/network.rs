//! Networking: Endpoints and EndpointSlice here, Ingress and NetworkPolicy below.

mod ingress;
mod policy;

use std::net::IpAddr;

use serde_json::{Value, json};

pub use self::{
    ingress::{IngressClassStrategy, IngressStrategy},
    policy::NetworkPolicyStrategy,
};
use super::{
    ServiceAllocator,
    field_value::FieldValue,
    json_object::{
        bump_generation_if_anything_changed, init_generation, object_items_mut, set_if_absent, set_text_if_empty,
    },
    names,
};
use crate::{
    api::field::{FieldError, FieldErrors},
    registry::Strategy,
};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Whether endpoints may be loopback addresses, which kube-apiserver refuses. A cluster whose pods are
/// processes of one machine has no others, and its Services have such addresses, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopbackEndpoints {
    Refused,
    Allowed,
}

impl LoopbackEndpoints {
    /// Depends on the range of Service addresses.
    pub fn for_services(services: &ServiceAllocator) -> Self {
        if services.network().is_loopback() { Self::Allowed } else { Self::Refused }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct EndpointsStrategy(pub LoopbackEndpoints);

#[derive(Clone, Copy, Debug)]
pub struct EndpointSliceStrategy(pub LoopbackEndpoints);

impl Strategy for EndpointsStrategy {
    fn default(&self, object: &mut Value) {
        let Some(endpoints) = object.as_object_mut() else { return };
        for subset in object_items_mut(endpoints, "subsets") {
            object_items_mut(subset, "ports").for_each(|port| set_text_if_empty(port, "protocol", "TCP"));
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        for subset in root.get("subsets").items() {
            if subset.get("addresses").is_empty() && subset.get("notReadyAddresses").is_empty() {
                subset.report_required(errors, "must specify `addresses` or `notReadyAddresses`");
            }
            for list in ["addresses", "notReadyAddresses"] {
                for address in subset.get(list).items() {
                    let address = address.get("ip");
                    ip(&address, errors);
                    endpoint_ip(&address, self.0, errors);
                }
            }
            let ports = subset.get("ports");
            for port in ports.items() {
                if ports.len() > 1 {
                    port.get("name").require(errors, "");
                }
                number(&port.get("port"), errors);
                port.get("protocol").require_one_of(errors, &PROTOCOLS);
            }
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
    }

    fn create_on_update(&self) -> bool {
        true
    }
}

impl Strategy for EndpointSliceStrategy {
    fn default(&self, object: &mut Value) {
        let Some(slice) = object.as_object_mut() else { return };
        for field in ["endpoints", "ports"] {
            slice.entry(field).or_insert(Value::Null);
        }
        object_items_mut(slice, "endpoints").for_each(|endpoint| set_if_absent(endpoint, "conditions", json!({})));
        for port in object_items_mut(slice, "ports") {
            set_if_absent(port, "name", "");
            set_text_if_empty(port, "protocol", "TCP");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        init_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        bump_generation_if_anything_changed(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let kind = root.get("addressType");
        if kind.require(errors, "") {
            kind.require_one_of(errors, &["FQDN", "IPv4", "IPv6"]);
        }
        for endpoint in root.get("endpoints").items() {
            let addresses = endpoint.get("addresses");
            addresses.require(errors, "must contain at least 1 address");
            for address in addresses.items() {
                validate_address(&address, kind.str(), self.0, errors);
            }
        }
        let mut seen: Vec<&str> = Vec::new();
        for port in root.get("ports").items() {
            let name = port.value.get("name").and_then(Value::as_str).unwrap_or_default();
            if seen.contains(&name) {
                port.get("name").report_duplicate(errors);
            } else if !name.is_empty() {
                port.get("name").report_invalid_each(errors, names::label(name));
            }
            seen.push(name);
            port.get("protocol").require_one_of(errors, &PROTOCOLS);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        root.get("addressType").require_unchanged(errors, &old_root.get("addressType"));
    }
}

fn validate_address(address: &FieldValue<'_>, family: &str, loopback: LoopbackEndpoints, errors: &mut FieldErrors) {
    let parsed = address.str().parse::<IpAddr>();
    match (family, parsed) {
        ("IPv4" | "IPv6", Err(_)) => {
            ip(address, errors);
            endpoint_ip(address, loopback, errors);
        }
        ("IPv4", Ok(IpAddr::V6(_))) => address.report_invalid(errors, "must be an IPv4 address"),
        ("IPv6", Ok(IpAddr::V4(_))) => address.report_invalid(errors, "must be an IPv6 address"),
        ("FQDN", _) => address.report_invalid_each(errors, names::subdomain(address.str())),
        ("IPv4" | "IPv6", Ok(_)) => endpoint_ip(address, loopback, errors),
        _ => {}
    }
}

/// The address of an endpoint must not be of the machine itself or link-local.
pub(super) fn endpoint_ip(at: &FieldValue<'_>, loopback: LoopbackEndpoints, errors: &mut FieldErrors) {
    let Ok(ip) = at.str().parse::<IpAddr>() else {
        return at.report_invalid_each(errors, vec!["must be a valid IP address".to_owned()]);
    };
    let (link_local, local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), matches!(ip.octets(), [224, 0, 0, _])),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), matches!(ip.octets(), [0xff, scope, ..] if scope & 0x0f == 2)),
    };
    let wrong = [
        (ip.is_unspecified(), format!("may not be unspecified ({})", at.str())),
        (
            ip.is_loopback() && loopback == LoopbackEndpoints::Refused,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned(),
        ),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()),
    ];
    at.report_invalid_each(errors, wrong.into_iter().filter_map(|(is_wrong, why)| is_wrong.then_some(why)).collect());
}

fn ip(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    if at.str().parse::<IpAddr>().is_err() {
        at.report_invalid_each(
            errors,
            vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
        );
    }
}

fn number(at: &FieldValue<'_>, errors: &mut FieldErrors) {
    let port = at.int().unwrap_or(0);
    for detail in names::port_number(port) {
        errors.push(FieldError::invalid(at.path(), &json!(port), &detail));
    }
}
