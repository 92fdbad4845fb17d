//! The addresses and node ports of Services are unique.

use std::{collections::HashSet, net::Ipv4Addr};

use futures_util::future::join_all;
use k8s_openapi::{
    api::{
        core::v1::{Service, ServicePort, ServiceSpec},
        discovery::v1::EndpointSlice,
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kubewake_apiserver::server::Options;
use serde_json::json;

use crate::support::{World, named, refused, soon};

fn service(name: &str, ip: Option<&str>) -> Service {
    let ports = vec![ServicePort { port: 80, ..ServicePort::default() }];
    let spec = ServiceSpec { cluster_ip: ip.map(str::to_owned), ports: Some(ports), ..ServiceSpec::default() };
    Service { metadata: named(name), spec: Some(spec), ..Service::default() }
}

fn ip_of(service: &Service) -> &str {
    service.spec.as_ref().unwrap().cluster_ip.as_deref().unwrap()
}

fn node_port_of(service: &Service) -> i32 {
    service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0].node_port.unwrap()
}

fn services(world: &World) -> Api<Service> {
    Api::default_namespaced(world.client.clone())
}

#[tokio::test]
async fn what_a_service_has_is_refused_to_others_and_given_to_none() {
    let world = World::new().await;
    let api = services(&world);
    let create = PostParams::default();
    // The first one to be allocated.
    api.create(&create, &service("mine", Some("10.0.0.2"))).await.unwrap();
    let refusal = refused(api.create(&create, &service("yours", Some("10.0.0.2"))).await);
    let words = "failed to allocate IP 10.0.0.2: provided IP is already allocated";
    assert!(refusal.code == 422 && refusal.message.contains(words), "{refusal:?}");
    assert_eq!(ip_of(&api.create(&create, &service("next", None)).await.unwrap()), "10.0.0.3");

    let mut open = service("open", None);
    open.spec.as_mut().unwrap().type_ = Some("NodePort".into());
    let port = node_port_of(&api.create(&create, &open).await.unwrap());
    let ask = json!({ "spec": { "type": "NodePort", "ports": [{ "port": 80, "nodePort": port }] } });
    let refusal = refused(api.patch("next", &PatchParams::default(), &Patch::Merge(&ask)).await);
    assert!(refusal.message.contains("provided port is already allocated"), "{refusal:?}");

    api.delete("mine", &DeleteParams::default()).await.unwrap();
    api.create(&create, &service("yours", Some("10.0.0.2"))).await.unwrap();
}

#[tokio::test]
async fn a_restart_forgets_no_address() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options { data_dir: Some(folder.path().to_owned()), ..Options::default() };
    let world = World::with(options()).await;
    let create = PostParams::default();
    let mut known = HashSet::new();
    for name in ["a", "b"] {
        let made = services(&world).create(&create, &service(name, None)).await.unwrap();
        known.insert(ip_of(&made).to_owned());
    }
    world.server.stop().await;

    let world = World::with(options()).await;
    for name in ["c", "d"] {
        let made = services(&world).create(&create, &service(name, None)).await.unwrap();
        assert!(known.insert(ip_of(&made).to_owned()), "{} was given before", ip_of(&made));
    }
    let refusal = refused(services(&world).create(&create, &service("e", Some("10.0.0.2"))).await);
    assert!(refusal.message.contains("already allocated"), "{refusal:?}");
}

#[tokio::test]
async fn of_many_who_ask_for_an_address_one_gets_it() {
    let world = World::new().await;
    let api = services(&world);
    let asking = (0..20).map(|number| {
        let api = &api;
        async move { api.create(&PostParams::default(), &service(&format!("s{number}"), Some("10.0.0.9"))).await }
    });
    let answers = soon(join_all(asking)).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    let left = api.list(&Default::default()).await.unwrap();
    assert_eq!(left.items.len(), 2, "`kubernetes` and one: the others are not stored");
}

#[tokio::test]
async fn when_all_addresses_are_taken_the_next_is_refused_until_one_is_free() {
    let world = World::new().await;
    let api = services(&world);
    let create = PostParams::default();
    // 10.0.0.0/24 without the network address, the first one and the broadcast address.
    let mut given = HashSet::new();
    for number in 0..253 {
        let made = api.create(&create, &service(&format!("s{number}"), None)).await.unwrap();
        assert!(given.insert(ip_of(&made).to_owned()));
    }
    let refusal = refused(api.create(&create, &service("late", None)).await);
    assert!(refusal.message.contains("range is full"), "{refusal:?}");
    let freed = ip_of(&api.get("s100").await.unwrap()).to_owned();
    api.delete("s100", &DeleteParams::default()).await.unwrap();
    assert_eq!(ip_of(&api.create(&create, &service("late", None)).await.unwrap()), freed);
}

#[tokio::test]
async fn the_server_is_a_service_itself_wherever_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let range = (Ipv4Addr::new(127, 9, 240, 0), 20);
    let options = || Options { data_dir: Some(folder.path().to_owned()), service_range: range, ..Options::default() };
    for _ in 0..2 {
        let world = World::with(options()).await;
        let port = IntOrString::Int(world.server.address().port().into());
        let own = services(&world).get("kubernetes").await.unwrap();
        assert_eq!(ip_of(&own), "127.9.240.1");
        assert_eq!(own.spec.unwrap().ports.unwrap()[0].target_port, Some(port.clone()));
        let slices: Api<EndpointSlice> = Api::default_namespaced(world.client.clone());
        let slice = slices.get("kubernetes").await.unwrap();
        assert_eq!(slice.ports.unwrap()[0].port.map(IntOrString::Int), Some(port));
        assert_eq!(slice.endpoints[0].addresses, ["127.0.0.1"]);
        world.server.stop().await;
    }
}
