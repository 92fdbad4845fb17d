//! Services, endpoints, ingresses, network policies.

use std::{net::Ipv4Addr, sync::Arc};

use serde_json::{Value, json};

use super::{bare, create, patch};
use crate::{
    api::{GroupResource, GroupVersion, ObjectKey},
    kinds::{ServiceAllocation, ServiceAllocator, catalog_with},
};

fn service(name: &str, spec: Value) -> Result<Value, Vec<String>> {
    create("v1", "Service", json!({"metadata": {"name": name}, "spec": spec}))
}

#[test]
fn a_headless_service_has_no_address() {
    let made = service("s", json!({"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]})).unwrap();
    let spec = json!({
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}], "selector": {"a": "b"}, "clusterIP": "None",
        "clusterIPs": ["None"], "type": "ClusterIP", "sessionAffinity": "None", "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
    });
    assert_eq!(bare(made), json!({"metadata": {"name": "s"}, "spec": spec, "status": {"loadBalancer": {}}}));
    let blind = service("s", json!({"clusterIP": "None", "ports": [{"port": 80}]})).unwrap();
    assert_eq!(blind.pointer("/spec/ipFamilies"), Some(&json!(["IPv4", "IPv6"])));
    assert_eq!(blind.pointer("/spec/ipFamilyPolicy"), Some(&json!("RequireDualStack")));
}

#[test]
fn an_external_name_has_nothing_else() {
    let made = service("x", json!({"type": "ExternalName", "externalName": "example.com"})).unwrap();
    let spec = json!({"type": "ExternalName", "sessionAffinity": "None", "externalName": "example.com"});
    assert_eq!(made.get("spec"), Some(&spec));
    assert_eq!(service("bad", json!({"ports": []})).unwrap_err(), ["spec.ports: Required value"]);
}

#[test]
fn addresses_are_given_in_turn_and_stay() {
    let addresses = Arc::new(ServiceAllocator::new(Ipv4Addr::new(10, 1, 2, 0), 29));
    let other = ObjectKey::new(GroupResource::new("", "services"), "default", "other");
    let taken = ServiceAllocation::Ip(Ipv4Addr::new(10, 1, 2, 3));
    addresses.ask(Box::new(move |claim| (*claim == taken).then(|| other.clone())));
    let given: Vec<_> =
        (0..6).map(|number| addresses.allocate_ip("default", &format!("s{number}")).unwrap().octets()[3]).collect();
    assert_eq!(given, [2, 4, 5, 6, 2, 4], "neither the first, nor what is taken, nor the last");
    let catalog = catalog_with(&addresses);
    let strategy = &catalog.get(&GroupVersion::new("", "v1"), "services").unwrap().strategy;
    let mut old =
        json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"name": "a", "port": 80}]}});
    strategy.default(&mut old);
    strategy.prepare_create(&mut old);
    assert_eq!(old.pointer("/spec/clusterIP"), Some(&json!("10.1.2.5")));
    assert_eq!(old.pointer("/spec/ports/0/nodePort"), Some(&json!(30000)));
    let mut new =
        json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"name": "a", "port": 81}]}});
    strategy.default(&mut new);
    strategy.prepare_update(&mut new, &old, "");
    assert_eq!(new.pointer("/spec/clusterIP"), Some(&json!("10.1.2.5")), "kept by whoever does not say");
    assert_eq!(new.pointer("/spec/ports/0/nodePort"), Some(&json!(30000)));
}

#[test]
fn recreated_service_gets_its_last_address_while_that_is_free() {
    let addresses = ServiceAllocator::new(Ipv4Addr::new(10, 1, 2, 0), 24);
    let first = addresses.allocate_ip("shop", "web");
    assert_ne!(addresses.allocate_ip("shop", "db"), first);
    assert_eq!(addresses.allocate_ip("shop", "web"), first);
    assert_ne!(addresses.allocate_ip("other", "web"), first);
    let (taken, holder) =
        (ServiceAllocation::Ip(first.unwrap()), ObjectKey::new(GroupResource::new("", "services"), "other", "x"));
    addresses.ask(Box::new(move |claim| (*claim == taken).then(|| holder.clone())));
    assert_ne!(addresses.allocate_ip("shop", "web"), first, "another Service has it now");
}

#[test]
fn an_address_cannot_change_or_come_from_elsewhere() {
    let old = service("s", json!({"ports": [{"port": 80}], "clusterIP": "10.0.0.9"})).unwrap();
    let moved = patch("v1", "Service", &old, &json!({"spec": {"clusterIP": "10.0.0.10"}})).unwrap_err();
    assert_eq!(moved, ["spec.clusterIPs[0]: Invalid value: [\"10.0.0.10\"]: may not change once set"]);
    let far = service("s", json!({"ports": [{"port": 80}], "clusterIP": "1.2.3.4"})).unwrap_err();
    let words = "spec.clusterIPs: Invalid value: [\"1.2.3.4\"]: failed to allocate IP 1.2.3.4: the provided IP (1.2.3.4) is not in \
                 the valid range. The range of valid IPs is 10.0.0.0/24";
    assert_eq!(far, [words]);
    let outside =
        patch("v1", "Service", &old, &json!({"spec": {"type": "ExternalName", "externalName": "e.com"}})).unwrap();
    assert_eq!(outside.pointer("/spec/clusterIP"), None);
}

#[test]
fn ports_of_a_service_are_checked() {
    let wrong =
        service("s", json!({"ports": [{"port": 0}, {"port": 80, "name": "A", "nodePort": 30000}]})).unwrap_err();
    let name = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
                alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let expected = [
        "spec.ports[0].name: Required value".to_owned(),
        "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive".to_owned(),
        "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive".to_owned(),
        format!("spec.ports[1].name: Invalid value: \"A\": {name}"),
        "spec.ports[1].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'".to_owned(),
    ];
    assert_eq!(wrong, expected);
}

#[test]
fn slices_and_policies_have_their_defaults() {
    let slice = json!({"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}]});
    let made = bare(create("discovery.k8s.io/v1", "EndpointSlice", slice).unwrap());
    let expected = json!({
        "metadata": {"name": "e", "generation": 1}, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {}}], "ports": [{"name": "", "protocol": "TCP", "port": 80}],
    });
    assert_eq!(made, expected);
    let policy =
        json!({"metadata": {"name": "n"}, "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}});
    let made = bare(create("networking.k8s.io/v1", "NetworkPolicy", policy).unwrap());
    let spec = json!({"podSelector": {}, "ingress": [{"ports": [{"protocol": "TCP", "port": 80}]}], "policyTypes": ["Ingress"]});
    assert_eq!(made, json!({"metadata": {"name": "n", "generation": 1}, "spec": spec}));
}

#[test]
fn an_ingress_leads_somewhere() {
    let ingress = |spec| create("networking.k8s.io/v1", "Ingress", json!({"metadata": {"name": "i"}, "spec": spec}));
    let path = json!({"path": "x", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {}}}});
    let wrong = ingress(json!({"rules": [{"http": {"paths": [path]}}]})).unwrap_err();
    let at = "spec.rules[0].http.paths[0]";
    let words = [
        format!("{at}.path: Invalid value: \"x\": must be an absolute path"),
        format!("{at}.backend: Required value: port name or number is required"),
    ];
    assert_eq!(wrong, words);
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let good = ingress(json!({"defaultBackend": backend})).unwrap();
    assert_eq!(good.get("status"), Some(&json!({"loadBalancer": {}})));
}
