//! NetworkPolicy.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::number;
use crate::{
    api::field::FieldErrors,
    kinds::{
        field_value::FieldValue,
        json_object::{
            bump_generation_if_anything_changed, init_generation, made, object_items_mut, set_if_absent,
            set_text_if_empty,
        },
        pod, selector,
    },
    registry::Strategy,
};

#[derive(Clone, Copy, Debug)]
pub struct NetworkPolicyStrategy;

impl Strategy for NetworkPolicyStrategy {
    fn default(&self, object: &mut Value) {
        let Some(spec) = made(object, "spec") else { return };
        set_if_absent(spec, "podSelector", json!({}));
        for rules in ["ingress", "egress"] {
            for rule in object_items_mut(spec, rules) {
                object_items_mut(rule, "ports").for_each(|port| set_text_if_empty(port, "protocol", "TCP"));
            }
        }
        let some = |field: &str| spec.get(field).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        if !some("policyTypes") {
            let types = if some("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            spec.insert("policyTypes".to_owned(), types);
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
            return types.report_invalid(errors, "may not specify more than two policyTypes");
        }
        types.items().for_each(|kind| kind.require_one_of(errors, &["Ingress", "Egress"]));
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
    }
}

fn policy_port(port: &FieldValue<'_>, errors: &mut FieldErrors) {
    port.get("protocol").require_one_of(errors, &["TCP", "UDP", "SCTP"]);
    let first = port.get("port");
    let last = port.get("endPort");
    if first.is_set() {
        pod::port(&first, errors);
    }
    if !last.is_set() {
        return;
    }
    match first.value {
        Value::Null => last.report_invalid(errors, "may not be specified when `port` is not specified"),
        Value::String(_) => last.report_invalid(errors, "may not be specified when `port` is non-numeric"),
        _ if last.int() < first.int() => {
            last.report_invalid_as(errors, &first.value.to_string(), "must be greater than or equal to `port`");
        }
        _ => number(&last, errors),
    }
}

fn peer(peer: &FieldValue<'_>, errors: &mut FieldErrors) {
    let pods = peer.get("podSelector");
    let namespaces = peer.get("namespaceSelector");
    let block = peer.get("ipBlock");
    selector::validate(&pods, errors);
    selector::validate(&namespaces, errors);
    let selects = pods.is_set() || namespaces.is_set();
    if block.is_set() {
        let cidr = block.get("cidr");
        if cidr.require(errors, "") && !is_cidr(cidr.str()) {
            cidr.report_invalid(errors, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        }
    }
    match (selects, block.is_set()) {
        (false, false) => peer.report_required(errors, "must specify a peer"),
        (true, true) => peer.report_forbidden(errors, "may not specify both ipBlock and another peer"),
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
