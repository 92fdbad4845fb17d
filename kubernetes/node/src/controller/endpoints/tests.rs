use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};

use super::*;
use crate::{controller, informers::InformerSet};

fn service(spec: Value) -> Service {
    let metadata = json!({ "name": "web", "namespace": "default", "uid": "s", "labels": { "team": "blue" } });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
}

fn web(ports: Value) -> Service {
    service(json!({ "selector": { "app": "web" }, "clusterIP": "127.16.240.2", "ports": ports }))
}

/// A ready pod, at an address that ends in its number.
fn pod(number: u32) -> Pod {
    let metadata = json!({
        "name": format!("web-{number:04}"), "namespace": "default", "uid": format!("u{number}"),
        "labels": { "app": "web", "more": "of-it" },
    });
    let ports =
        json!([{ "name": "http", "containerPort": 8080 }, { "name": "dns", "containerPort": 53, "protocol": "UDP" }]);
    let spec = json!({ "nodeName": "node-0", "containers": [{ "name": "c", "ports": ports }] });
    let status = json!({
        "phase": "Running", "podIP": format!("10.16.{}.{}", number / 200, 2 + number % 200),
        "conditions": [{ "type": "Ready", "status": "True" }],
    });
    serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status })).unwrap()
}

fn changed(mut pod: Pod, change: impl FnOnce(&mut Pod)) -> Pod {
    change(&mut pod);
    pod
}

fn groups(service: &Service, pods: impl IntoIterator<Item = Pod>) -> Vec<desired_endpoints::EndpointGroup> {
    desired_endpoints::endpoint_groups(service, &pods.into_iter().map(Arc::new).collect::<Vec<_>>())
}

fn only(service: &Service, pod: Pod) -> (Vec<EndpointPort>, Endpoint) {
    let mut groups = groups(service, [pod]);
    assert_eq!(groups.len(), 1);
    let mut group = groups.remove(0);
    (group.ports, group.endpoints.remove(0))
}

fn conditions(service: &Service, pod: Pod) -> [Option<bool>; 3] {
    let conditions = only(service, pod).1.conditions.unwrap();
    [conditions.ready, conditions.serving, conditions.terminating]
}

fn not_ready(pod: Pod) -> Pod {
    changed(pod, |pod| pod.status.as_mut().unwrap().conditions = None)
}

fn going(pod: Pod) -> Pod {
    changed(pod, |pod| {
        pod.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap())
    })
}

#[test]
fn a_pod_is_an_endpoint() {
    let (ports, endpoint) = only(&web(json!([{ "port": 80, "targetPort": 8080 }])), pod(0));
    assert_eq!(serde_json::to_value(ports).unwrap(), json!([{ "name": "", "port": 8080, "protocol": "TCP" }]));
    let expected = json!({
        "addresses": ["10.16.0.2"],
        "conditions": { "ready": true, "serving": true, "terminating": false },
        "nodeName": "node-0",
        "targetRef": { "kind": "Pod", "namespace": "default", "name": "web-0000", "uid": "u0" },
    });
    assert_eq!(serde_json::to_value(endpoint).unwrap(), expected);
}

#[test]
fn conditions_say_who_takes_requests() {
    let usual = web(json!([]));
    assert_eq!(conditions(&usual, pod(0)), [true, true, false].map(Some));
    assert_eq!(conditions(&usual, not_ready(pod(0))), [false, false, false].map(Some));
    assert_eq!(conditions(&usual, going(pod(0))), [false, true, true].map(Some));
    assert_eq!(conditions(&usual, going(not_ready(pod(0)))), [false, false, true].map(Some));
    let all = service(json!({ "selector": { "app": "web" }, "publishNotReadyAddresses": true }));
    assert_eq!(conditions(&all, not_ready(pod(0))), [true, false, false].map(Some));
    assert_eq!(conditions(&all, going(pod(0))), [true, true, true].map(Some));
}

#[test]
fn pods_without_an_address_or_that_have_ended_are_no_endpoints() {
    let status = |field: &'static str, value: Value| {
        changed(pod(0), |pod| {
            let mut status = serde_json::to_value(&pod.status).unwrap();
            status[field] = value;
            pod.status = serde_json::from_value(status).unwrap();
        })
    };
    let others = changed(pod(1), |pod| pod.metadata.labels = None);
    let none =
        [status("podIP", json!("")), status("phase", json!("Failed")), status("phase", json!("Succeeded")), others];
    assert_eq!(groups(&web(json!([])), none), []);
}

#[test]
fn ports_are_found_by_name_and_protocol_in_each_pod() {
    let ports = json!([
        { "name": "a", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "http" },
        { "name": "b", "port": 53, "targetPort": "dns", "protocol": "UDP" },
        { "name": "c", "port": 54, "targetPort": "dns", "protocol": "TCP" },
        { "name": "d", "port": 55 },
    ]);
    let other = changed(pod(1), |pod| {
        let spec = pod.spec.as_mut().unwrap();
        let sidecar =
            json!([{ "name": "s", "restartPolicy": "Always", "ports": [{ "name": "http", "containerPort": 9090 }] }]);
        spec.init_containers = serde_json::from_value(sidecar).unwrap();
        spec.containers[0].ports = None;
    });
    let groups = groups(&web(ports), [pod(0), other, pod(2)]);
    let numbers = |group: &desired_endpoints::EndpointGroup| -> Vec<(String, i32)> {
        group.ports.iter().map(|port| (port.name.clone().unwrap(), port.port.unwrap())).collect()
    };
    let named =
        |ports: &[(&str, i32)]| ports.iter().map(|(name, port)| ((*name).to_owned(), *port)).collect::<Vec<_>>();
    assert_eq!(numbers(&groups[0]), named(&[("a", 8080), ("b", 53), ("d", 55)]));
    assert_eq!(numbers(&groups[1]), named(&[("a", 9090), ("d", 55)]));
    assert_eq!((groups[0].endpoints.len(), groups[1].endpoints.len()), (2, 1));
    assert_eq!(groups[0].ports[0].app_protocol.as_deref(), Some("http"));
}

#[test]
fn a_pod_with_a_name_in_the_services_domain_keeps_it() {
    let named = |subdomain: &str| {
        let pod = changed(pod(0), |pod| {
            let spec = pod.spec.as_mut().unwrap();
            spec.hostname = Some("first".to_owned());
            spec.subdomain = Some(subdomain.to_owned());
        });
        only(&web(json!([])), pod).1.hostname
    };
    assert_eq!(named("web"), Some("first".to_owned()));
    assert_eq!(named("other"), None);
}

/// Slices as a server would store them.
#[derive(Default)]
struct Held(Vec<EndpointSlice>, usize);

impl Held {
    /// Updates the slices; returns how many were created, updated and deleted.
    fn follow(&mut self, service: &Service, pods: impl IntoIterator<Item = Pod>) -> [usize; 3] {
        let held = self.0.iter().cloned().map(Arc::new).collect();
        let plan = plan::plan_slices(service, groups(service, pods), held);
        let counts = [plan.create.len(), plan.update.len(), plan.delete.len()];
        for mut slice in plan.create {
            self.1 += 1;
            slice.metadata.name = Some(format!("{}{}", slice.metadata.generate_name.as_ref().unwrap(), self.1));
            self.0.push(slice);
        }
        for slice in plan.update {
            let held = self.0.iter_mut().find(|held| held.name_any() == slice.name_any()).unwrap();
            *held = slice;
        }
        self.0.retain(|held| !plan.delete.iter().any(|slice| slice.name_any() == held.name_any()));
        counts
    }

    fn sizes(&self) -> Vec<usize> {
        self.0.iter().map(|slice| slice.endpoints.len()).collect()
    }
}

#[test]
fn a_slice_has_at_most_a_hundred_endpoints_and_keeps_them() {
    let web = web(json!([{ "port": 80 }]));
    let mut held = Held::default();
    assert_eq!(held.follow(&web, (0..250).map(pod)), [3, 0, 0]);
    assert_eq!(held.sizes(), [100, 100, 50]);
    assert_eq!(held.follow(&web, (0..250).map(pod)), [0, 0, 0]);
    // The new endpoint takes the place of the deleted one, in the fullest slice with room.
    assert_eq!(held.follow(&web, (1..251).map(pod)), [0, 1, 0]);
    assert_eq!(held.sizes(), [100, 100, 50]);
    // Endpoints are not moved to reduce the number of slices; an empty slice is deleted.
    assert_eq!(held.follow(&web, (101..251).map(pod)), [0, 2, 0]);
    assert_eq!(held.sizes(), [1, 99, 50]);
    assert_eq!(held.follow(&web, (200..251).map(pod)), [0, 0, 1]);
    assert_eq!(held.sizes(), [1, 50]);
    // A changed pod is updated in its slice.
    assert_eq!(held.follow(&web, (200..250).map(pod).chain([not_ready(pod(250))])), [0, 1, 0]);
}

#[test]
fn a_service_without_pods_has_an_empty_slice() {
    let web = web(json!([{ "port": 80 }]));
    let mut held = Held::default();
    assert_eq!(held.follow(&web, []), [1, 0, 0]);
    assert_eq!((held.sizes(), held.0[0].ports.as_ref()), (vec![0], None));
    assert_eq!(held.follow(&web, []), [0, 0, 0]);
    assert_eq!(held.follow(&web, [pod(0)]), [0, 1, 0]);
    assert_eq!(held.follow(&web, []), [0, 1, 0]);
    assert_eq!(held.sizes(), [0]);
}

#[test]
fn a_slice_of_old_ports_becomes_one_of_new_ports() {
    let mut held = Held::default();
    held.follow(&web(json!([{ "port": 80 }])), (0..150).map(pod));
    assert_eq!(held.follow(&web(json!([{ "port": 81 }])), (0..150).map(pod)), [0, 2, 0]);
    assert_eq!(held.sizes(), [100, 50]);
    assert!(held.0.iter().all(|slice| slice.ports.as_ref().unwrap()[0].port == Some(81)));
}

#[test]
fn a_slice_says_whose_it_is() {
    let headless = service(json!({ "selector": { "app": "web" }, "clusterIP": "None" }));
    let mut held = Held::default();
    held.follow(&headless, [pod(0)]);
    let metadata = serde_json::to_value(&held.0[0].metadata).unwrap();
    let expected = json!({
        "team": "blue",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "service.kubernetes.io/headless": "",
    });
    assert_eq!(metadata["labels"], expected);
    assert_eq!(metadata["ownerReferences"][0]["kind"], "Service");
    assert_eq!(metadata["ownerReferences"][0]["uid"], "s");
    assert_eq!(held.0[0].ports, None);
    // Labels follow those of the Service.
    let mut changed = headless.clone();
    changed.metadata.labels = None;
    assert_eq!(held.follow(&changed, [pod(0)]), [0, 1, 0]);
    assert!(!held.0[0].labels().contains_key("team"));
}

/// A cluster with only this controller.
struct World {
    _server: ApiServer,
    client: Client,
    _tasks: JoinSet<()>,
    changes: mpsc::UnboundedReceiver<()>,
}

impl World {
    async fn new() -> Self {
        let server = ApiServer::start(Options::default()).await.unwrap();
        let client = server.client().unwrap();
        let views = InformerSet::default();
        let mut tasks = JoinSet::new();
        views.start_all(&client, &mut tasks).await;
        controller::start::<EndpointSliceController>(&client, &views, &mut tasks);
        let (told, changes) = mpsc::unbounded_channel();
        views.endpoint_slices.on_change(move |_| told.send(()).unwrap_or_default());
        Self { _server: server, client, _tasks: tasks, changes }
    }

    async fn slices(&self) -> Vec<EndpointSlice> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), "default");
        let ours = ListParams::default().labels("kubernetes.io/service-name=web");
        slices.list(&ours).await.unwrap().items
    }

    async fn until(&mut self, holds: impl Fn(&[EndpointSlice]) -> bool) -> Vec<EndpointSlice> {
        loop {
            let slices = self.slices().await;
            if holds(&slices) {
                return slices;
            }
            self.changes.recv().await.unwrap();
        }
    }

    async fn run(&self, number: u32) {
        let mut bare = pod(number);
        bare.metadata.uid = None;
        let status = bare.status.take();
        bare.spec.as_mut().unwrap().containers[0].image = Some("i".to_owned());
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        pods.create(&PostParams::default(), &bare).await.unwrap();
        let status = Patch::Merge(json!({ "status": status }));
        pods.patch_status(&bare.name_any(), &PatchParams::default(), &status).await.unwrap();
    }
}

fn addresses(slices: &[EndpointSlice]) -> Vec<String> {
    slices.iter().flat_map(|slice| &slice.endpoints).flat_map(|endpoint| endpoint.addresses.clone()).collect()
}

#[tokio::test]
async fn slices_follow_pods_and_services() {
    let mut world = World::new().await;
    let services: Api<Service> = Api::namespaced(world.client.clone(), "default");
    world.run(1).await;
    let made = json!({
        "metadata": { "name": "web" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": "http" }] },
    });
    services.create(&PostParams::default(), &serde_json::from_value(made).unwrap()).await.unwrap();
    world.until(|slices| addresses(slices) == ["10.16.0.3"]).await;
    world.run(2).await;
    world.until(|slices| addresses(slices) == ["10.16.0.3", "10.16.0.4"]).await;

    let relabel = Patch::Merge(json!({ "metadata": { "labels": { "app": "other" } } }));
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "default");
    pods.patch("web-0001", &PatchParams::default(), &relabel).await.unwrap();
    let slices = world.until(|slices| addresses(slices) == ["10.16.0.4"]).await;

    // Deletions and changes by others are repaired.
    let api: Api<EndpointSlice> = Api::namespaced(world.client.clone(), "default");
    api.delete(&slices[0].name_any(), &DeleteParams::default()).await.unwrap();
    let slices = world.until(|slices| addresses(slices) == ["10.16.0.4"]).await;
    let wrong = Patch::Merge(json!({ "ports": [{ "port": 9 }] }));
    api.patch(&slices[0].name_any(), &PatchParams::default(), &wrong).await.unwrap();
    world.until(|slices| slices.iter().all(|slice| slice.ports.as_ref().unwrap()[0].port == Some(8080))).await;

    services.delete("web", &DeleteParams::default()).await.unwrap();
    world.until(<[_]>::is_empty).await;
}

#[tokio::test]
async fn services_without_a_selector_are_left_to_others() {
    let mut world = World::new().await;
    let services: Api<Service> = Api::namespaced(world.client.clone(), "default");
    for (name, selector) in [("by-hand", json!({})), ("web", json!({ "app": "web" }))] {
        let made = json!({ "metadata": { "name": name }, "spec": { "selector": selector, "ports": [{ "port": 80 }] } });
        services.create(&PostParams::default(), &serde_json::from_value(made).unwrap()).await.unwrap();
    }
    world.until(|slices| slices.len() == 1).await;
    let all: Api<EndpointSlice> = Api::namespaced(world.client.clone(), "default");
    let all = all.list(&ListParams::default().labels("kubernetes.io/service-name=by-hand")).await.unwrap();
    assert!(all.items.is_empty());
}
