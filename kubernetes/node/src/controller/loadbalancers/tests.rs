use serde_json::json;

use super::*;
use crate::testing::TestCluster;

fn addresses(service: &Service) -> Vec<String> {
    let ingress = service.status.iter().filter_map(|status| status.load_balancer.as_ref()?.ingress.as_ref()).flatten();
    ingress.filter_map(|ingress| ingress.ip.clone()).collect()
}

#[tokio::test]
async fn a_load_balancer_is_the_address_of_its_service() {
    let mut world = TestCluster::new().await;
    world.start::<LoadBalancerController>();
    let spec = json!({ "type": "LoadBalancer", "ports": [{ "port": 8080 }] });
    let made: Service = world.make(json!({ "metadata": { "name": "web" }, "spec": spec })).await;
    let own = made.spec.unwrap().cluster_ip.unwrap();
    world.until("web", |service: &Service| addresses(service) == [own.as_str()]).await;
    world.event("EnsuredLoadBalancer", "Ensured load balancer").await;
    // A Service of another type loses its load balancer.
    world.patch::<Service>("web", json!({ "spec": { "type": "ClusterIP" } })).await;
    world.until("web", |service: &Service| addresses(service).is_empty()).await;
}

#[test]
fn load_balancers_of_others_and_services_without_one_are_left_alone() {
    for (spec, ours) in [
        (json!({ "type": "LoadBalancer", "clusterIP": "127.16.240.2" }), true),
        (json!({ "type": "LoadBalancer", "clusterIP": "127.16.240.2", "loadBalancerClass": "example.org/lb" }), false),
        (json!({ "type": "NodePort", "clusterIP": "127.16.240.2" }), false),
        (json!({ "type": "LoadBalancer" }), false),
    ] {
        let service: Service = serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": spec })).unwrap();
        assert_eq!(ingress(&service).is_some(), ours, "{spec}");
    }
}
