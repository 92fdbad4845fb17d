use serde_json::{Value, json};

use super::*;

fn service(spec: Value) -> Service {
    serde_json::from_value(json!({ "metadata": { "name": "web", "namespace": "here" }, "spec": spec })).unwrap()
}

fn slice(ports: Value, endpoints: Value) -> Arc<EndpointSlice> {
    let slice =
        json!({ "metadata": { "name": "web-1" }, "addressType": "IPv4", "ports": ports, "endpoints": endpoints });
    Arc::new(serde_json::from_value(slice).unwrap())
}

fn texts(addresses: &[SocketAddr]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

fn only(mut routes: Vec<ServiceRoute>) -> ServiceRoute {
    assert_eq!(routes.len(), 1, "{routes:?}");
    routes.remove(0)
}

#[test]
fn a_port_leads_from_the_address_of_the_service_to_its_endpoints() {
    let service = service(json!({ "clusterIP": "127.16.240.2", "clusterIPs": ["127.16.240.2"], "ports": [
        { "name": "a", "port": 80 }, { "name": "b", "port": 81, "protocol": "TCP" },
    ] }));
    let ready =
        json!([{ "addresses": ["127.16.0.2"] }, { "addresses": ["127.16.0.3"], "conditions": { "ready": true } }]);
    let slices = [
        slice(json!([{ "name": "a", "port": 8080 }, { "name": "b", "port": 9090, "protocol": "TCP" }]), ready),
        slice(
            json!([{ "name": "a", "port": 8081 }, { "name": "b", "port": 1, "protocol": "UDP" }]),
            json!([{ "addresses": ["127.16.0.4"] }]),
        ),
    ];
    let routes = service_routes(&service, &slices, &[]);
    assert_eq!(texts(&routes[0].addresses), ["127.16.240.2:80"]);
    assert_eq!(texts(&routes[0].backends), ["127.16.0.2:8080", "127.16.0.3:8080", "127.16.0.4:8081"]);
    assert_eq!(texts(&routes[1].addresses), ["127.16.240.2:81"]);
    assert_eq!(texts(&routes[1].backends), ["127.16.0.2:9090", "127.16.0.3:9090"]);
}

#[test]
fn ports_of_nodes_are_on_every_node_and_on_localhost() {
    let service = service(
        json!({ "type": "NodePort", "clusterIP": "127.16.240.2", "ports": [{ "port": 80, "nodePort": 30000 }] }),
    );
    let nodes: [IpAddr; 2] = ["127.16.0.1", "127.16.16.1"].map(|ip| ip.parse().unwrap());
    let addresses = only(service_routes(&service, &[], &nodes)).addresses;
    assert_eq!(texts(&addresses), ["127.16.240.2:80", "127.0.0.1:30000", "127.16.0.1:30000", "127.16.16.1:30000"]);
}

#[test]
fn who_is_not_ready_gets_nothing_unless_it_is_the_last_that_serves() {
    let service = service(json!({ "clusterIP": "127.16.240.2", "ports": [{ "port": 80 }] }));
    let backends = |endpoints: Value| {
        let route = only(service_routes(&service, &[slice(json!([{ "name": "", "port": 80 }]), endpoints)], &[]));
        texts(&route.backends)
    };
    let ready = json!({ "addresses": ["127.16.0.2"], "conditions": { "ready": true, "serving": true } });
    let not_ready = json!({ "addresses": ["127.16.0.3"], "conditions": { "ready": false, "serving": false, "terminating": false } });
    let ending =
        json!({ "addresses": ["127.16.0.4"], "conditions": { "ready": false, "serving": true, "terminating": true } });
    let ended =
        json!({ "addresses": ["127.16.0.5"], "conditions": { "ready": false, "serving": false, "terminating": true } });
    assert_eq!(backends(json!([ready, not_ready, ending, ended])), ["127.16.0.2:80"]);
    assert_eq!(backends(json!([not_ready, ending, ended])), ["127.16.0.4:80"]);
    assert_eq!(backends(json!([not_ready, ended])), [""; 0]);
}

#[test]
fn services_without_an_address_are_not_served() {
    for spec in [
        json!({ "clusterIP": "None", "clusterIPs": ["None"], "ports": [{ "port": 80 }] }),
        json!({ "type": "ExternalName", "externalName": "example.org", "ports": [{ "port": 80 }] }),
        json!({ "ports": [{ "port": 80 }] }),
    ] {
        assert_eq!(service_routes(&service(spec), &[], &[]), []);
    }
}

#[test]
fn what_is_not_tcp_is_complained_about() {
    let service =
        service(json!({ "clusterIP": "127.16.240.2", "ports": [{ "name": "dns", "port": 53, "protocol": "UDP" }] }));
    let route = only(service_routes(&service, &[], &[]));
    assert_eq!(route.complaint.unwrap(), "Port dns is not served: this cluster forwards TCP, and not UDP");
    assert!(route.addresses.is_empty());
}

#[test]
fn only_internal_addresses_of_nodes_count() {
    let addresses_given = json!([
        { "type": "InternalIP", "address": "127.16.0.1" },
        { "type": "Hostname", "address": "node-0" },
        { "type": "ExternalIP", "address": "192.0.2.1" },
    ]);
    let node = json!({ "metadata": { "name": "n" }, "status": { "addresses": addresses_given } });
    let node: Node = serde_json::from_value(node).unwrap();
    assert_eq!(node_addresses(&node), ["127.16.0.1".parse::<IpAddr>().unwrap()]);
}

#[test]
fn service_of_another_proxy_has_no_routes() {
    let mut service = service(json!({ "clusterIP": "127.16.240.2", "ports": [{ "port": 80 }] }));
    assert_eq!(service_routes(&service, &[], &[]).len(), 1);
    service.labels_mut().insert(PROXY_NAME_LABEL.to_owned(), "late".to_owned());
    assert_eq!(service_routes(&service, &[], &[]), []);
}
