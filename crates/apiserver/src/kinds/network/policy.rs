//! NetworkPolicy.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::number;
use crate::{
    api::field::Errors,
    kinds::{
        at::At,
        object::{each, fill, fill_text, first_generation, made, next_generation_of_all},
        pod, selector,
    },
    registry::Strategy,
};

/// Rules of NetworkPolicy.
#[derive(Clone, Copy, Debug)]
pub struct Policy;

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
