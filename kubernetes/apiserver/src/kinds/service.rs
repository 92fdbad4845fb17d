//! Service: its defaults, the allocation of addresses and node ports, and its updates.
//!
//! The cluster is single-stack IPv4. A Service without a selector and without an address nevertheless counts as
//! dual-stack, as in kube-apiserver, since its endpoints are not known.

mod validate;
mod warnings;

use std::{net::Ipv4Addr, sync::Arc};

use serde_json::{Value, json};

use super::{
    json_object::{
        JsonObject, keep_all_but_status, made, nested_object_mut, object_items_mut, object_member_mut, restore_field,
        set, set_if_absent, set_text_if_empty, text, text_at,
    },
    service_allocator::ServiceAllocator,
};
use crate::{
    api::field::FieldErrors,
    registry::{NameRule, Strategy},
    store::Stored,
};

#[derive(Clone, Debug)]
pub struct ServiceStrategy {
    addresses: Arc<ServiceAllocator>,
}

impl ServiceStrategy {
    pub fn new(addresses: Arc<ServiceAllocator>) -> Self {
        Self { addresses }
    }
}

impl Strategy for ServiceStrategy {
    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::service(object)
    }

    fn default(&self, object: &mut Value) {
        if let Some(status) = made(object, "status") {
            set_if_absent(status, "loadBalancer", json!({}));
        }
        let Some(spec) = made(object, "spec") else { return };
        set_text_if_empty(spec, "type", "ClusterIP");
        affinity(spec);
        object_items_mut(spec, "ports").for_each(port);
        if is_external(spec) {
            set_text_if_empty(spec, "externalTrafficPolicy", "Cluster");
        }
        if text(spec, "type") != "ExternalName" {
            set_text_if_empty(spec, "internalTrafficPolicy", "Cluster");
        }
        if text(spec, "type") == "LoadBalancer" {
            set_if_absent(spec, "allocateLoadBalancerNodePorts", true);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"loadBalancer": {}}));
        let owner = namespace_and_name(object);
        if let Some(spec) = object_member_mut(object, "spec") {
            one_list_of_ips(spec);
            self.allocate(spec, &owner);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        if subresource == "status" {
            return keep_all_but_status(new, old);
        }
        restore_field(new, old, "status");
        let Some(before) = old.get("spec").and_then(Value::as_object) else { return };
        let owner = namespace_and_name(new);
        let Some(spec) = object_member_mut(new, "spec") else { return };
        let kind = text(spec, "type").to_owned();
        keep_allocated(spec, before);
        drop_with_type(spec, before);
        follow_the_single_ip(spec, before);
        self.allocate(spec, &owner);
        if kind != "LoadBalancer" {
            set(new, "status", json!({"loadBalancer": {}}));
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        validate::service(object, errors);
        validate::claims(object, None, None, &self.addresses, errors);
    }

    fn validate_stored(&self, stored: &Stored, errors: &mut FieldErrors) {
        validate::claims(&stored.value(), None, Some(&stored.key), &self.addresses, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource == "status" {
            return;
        }
        validate::change(new, old, errors);
        validate::service(new, errors);
        validate::claims(new, Some(old), None, &self.addresses, errors);
    }

    fn names(&self) -> NameRule {
        NameRule::Label1035
    }

    fn create_on_update(&self) -> bool {
        true
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        let field = path.strip_prefix("spec.")?;
        Some(text_at(object, &["spec", field]).to_owned())
    }
}

fn namespace_and_name(service: &Value) -> [String; 2] {
    ["namespace", "name"].map(|field| text_at(service, &["metadata", field]).to_owned())
}

impl ServiceStrategy {
    /// Allocates the address and node ports that the type needs and the writer did not set.
    fn allocate(&self, spec: &mut JsonObject, [namespace, name]: &[String; 2]) {
        if text(spec, "type") == "ExternalName" {
            return;
        }
        // An address of the other family is refused by validation.
        let first = spec.get("ipFamilies").and_then(Value::as_array).and_then(|families| families.first());
        if text(spec, "clusterIP").is_empty()
            && first.is_none_or(|family| family == "IPv4")
            && let Some(ip) = self.addresses.allocate_ip(namespace, name)
        {
            set_ip(spec, ip);
        }
        families(spec);
        if needs_node_ports(spec) {
            for port in object_items_mut(spec, "ports") {
                if port.get("nodePort").and_then(Value::as_i64).unwrap_or(0) == 0
                    && let Some(number) = self.addresses.allocate_node_port()
                {
                    port.insert("nodePort".to_owned(), number.into());
                }
            }
        }
        if needs_health_port(spec)
            && spec.get("healthCheckNodePort").is_none()
            && let Some(number) = self.addresses.allocate_node_port()
        {
            spec.insert("healthCheckNodePort".to_owned(), number.into());
        }
    }
}

fn affinity(spec: &mut JsonObject) {
    set_text_if_empty(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            let told = nested_object_mut(spec, "sessionAffinityConfig")
                .and_then(|config| nested_object_mut(config, "clientIP"))
                .is_some_and(|client| client.contains_key("timeoutSeconds"));
            if !told {
                spec.insert("sessionAffinityConfig".to_owned(), json!({"clientIP": {"timeoutSeconds": 10800}}));
            }
        }
        _ => {}
    }
}

fn port(port: &mut JsonObject) {
    set_text_if_empty(port, "protocol", "TCP");
    let target = port.get("targetPort");
    if target.is_none_or(|target| target.is_null() || *target == 0 || *target == "") {
        let number = port.get("port").cloned().unwrap_or(json!(0));
        port.insert("targetPort".to_owned(), number);
    }
}

/// `clusterIP` and the first of `clusterIPs` are the same.
fn one_list_of_ips(spec: &mut JsonObject) {
    let ip = text(spec, "clusterIP").to_owned();
    let has = |spec: &JsonObject| spec.get("clusterIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !ip.is_empty() && !has(spec) {
        spec.insert("clusterIPs".to_owned(), json!([ip]));
    }
}

fn set_ip(spec: &mut JsonObject, ip: Ipv4Addr) {
    spec.insert("clusterIP".to_owned(), ip.to_string().into());
    spec.insert("clusterIPs".to_owned(), json!([ip.to_string()]));
}

fn families(spec: &mut JsonObject) {
    let headless = text(spec, "clusterIP") == "None";
    let selects = spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    if headless && !selects {
        set_text_if_empty(spec, "ipFamilyPolicy", "RequireDualStack");
        if text(spec, "ipFamilyPolicy") != "SingleStack" {
            set_if_absent(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
        }
    }
    set_text_if_empty(spec, "ipFamilyPolicy", "SingleStack");
    set_if_absent(spec, "ipFamilies", json!(["IPv4"]));
}

/// Keeps allocations that an update omits, if the type still needs them.
fn keep_allocated(spec: &mut JsonObject, before: &JsonObject) {
    if text(spec, "type") != "ExternalName" && text(before, "type") != "ExternalName" {
        if text(spec, "clusterIP").is_empty() {
            copy(spec, before, "clusterIP");
        }
        for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if spec.get(field).is_none_or(Value::is_null) {
                copy(spec, before, field);
            }
        }
    }
    if needs_node_ports(spec) && needs_node_ports(before) {
        let known: Vec<(String, Value)> = before
            .get("ports")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|port| Some((text_at(port, &["name"]).to_owned(), port.get("nodePort")?.clone())))
            .collect();
        for port in object_items_mut(spec, "ports") {
            let name = text(port, "name").to_owned();
            if let Some((_, number)) = known.iter().find(|(known, _)| *known == name) {
                set_if_absent(port, "nodePort", number.clone());
            }
        }
    }
    if needs_health_port(spec) && needs_health_port(before) {
        copy(spec, before, "healthCheckNodePort");
    }
}

/// Drops fields that the old type needed and the new one does not, unless the writer changed them too.
fn drop_with_type(spec: &mut JsonObject, before: &JsonObject) {
    let drop_same = |spec: &mut JsonObject, field: &str| {
        if spec.get(field) == before.get(field) {
            spec.remove(field);
        }
    };
    if text(spec, "type") == "ExternalName" && text(before, "type") != "ExternalName" {
        ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"].iter().for_each(|field| drop_same(spec, field));
        drop_same(spec, "internalTrafficPolicy");
    }
    if needs_node_ports(before) && !needs_node_ports(spec) {
        object_items_mut(spec, "ports").for_each(|port| drop(port.remove("nodePort")));
    }
    if text(before, "type") == "LoadBalancer" && text(spec, "type") != "LoadBalancer" {
        ["allocateLoadBalancerNodePorts", "healthCheckNodePort", "loadBalancerClass"]
            .iter()
            .for_each(|field| drop_same(spec, field));
    }
    if is_external(before) && !is_external(spec) {
        drop_same(spec, "externalTrafficPolicy");
    }
}

/// A change of `clusterIP` alone also changes the list.
fn follow_the_single_ip(spec: &mut JsonObject, before: &JsonObject) {
    let changed = text(spec, "clusterIP") != text(before, "clusterIP");
    if changed && spec.get("clusterIPs") == before.get("clusterIPs") && !text(spec, "clusterIP").is_empty() {
        let ip = text(spec, "clusterIP").to_owned();
        spec.insert("clusterIPs".to_owned(), json!([ip]));
    }
    one_list_of_ips(spec);
}

fn copy(spec: &mut JsonObject, before: &JsonObject, field: &str) {
    if let Some(value) = before.get(field) {
        spec.insert(field.to_owned(), value.clone());
    }
}

fn is_external(spec: &JsonObject) -> bool {
    let outside = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|ips| !ips.is_empty());
    let kind = text(spec, "type");
    ["NodePort", "LoadBalancer"].contains(&kind) || (kind == "ClusterIP" && outside)
}

fn needs_node_ports(spec: &JsonObject) -> bool {
    let allocates = spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool).unwrap_or(true);
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => allocates,
        _ => false,
    }
}

fn needs_health_port(spec: &JsonObject) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}
