//! The desired endpoints of a Service. Pure.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        core::v1::{ContainerPort, Pod, Service, ServicePort},
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort},
    },
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{Resource, ResourceExt};

use crate::controller::pods;

/// Endpoints with the same ports. Pods differ in their ports when a Service names its target ports.
#[derive(Debug, PartialEq)]
pub(super) struct EndpointGroup {
    pub(super) ports: Vec<EndpointPort>,
    pub(super) endpoints: Vec<Endpoint>,
}

/// Whether this controller manages the Service's endpoints.
pub(super) fn is_managed(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    let selects = spec.and_then(|spec| spec.selector.as_ref()).is_some_and(|selector| !selector.is_empty());
    selects && spec.and_then(|spec| spec.type_.as_deref()) != Some("ExternalName")
}

/// Whether the Service selects a pod of its namespace.
pub(super) fn selects(service: &Service, pod: &Pod) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let selector = selector.filter(|selector| !selector.is_empty());
    selector.is_some_and(|selector| selector.iter().all(|(label, value)| pod.labels().get(label) == Some(value)))
}

/// The pod's address, which is known once it starts.
pub(super) fn address(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.pod_ip.as_deref().filter(|ip| !ip.is_empty())
}

/// All endpoints, grouped by their ports.
pub(super) fn endpoint_groups(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointGroup> {
    let mut groups: Vec<EndpointGroup> = Vec::new();
    for pod in pods.iter().filter(|pod| selects(service, pod)) {
        let Some(endpoint) = endpoint(service, pod) else { continue };
        let ports = ports(service, pod);
        match groups.iter_mut().find(|group| group.ports == ports) {
            Some(group) => group.endpoints.push(endpoint),
            None => groups.push(EndpointGroup { ports, endpoints: vec![endpoint] }),
        }
    }
    groups
}

/// The endpoint of a pod that has an address and has not ended.
fn endpoint(service: &Service, pod: &Pod) -> Option<Endpoint> {
    let address = address(pod).filter(|_| !matches!(pods::phase(pod), "Succeeded" | "Failed"))?;
    let service_spec = service.spec.as_ref()?;
    let spec = pod.spec.as_ref()?;
    let serving = pods::is_ready(pod);
    let terminating = pod.meta().deletion_timestamp.is_some();
    let ready = service_spec.publish_not_ready_addresses == Some(true) || (serving && !terminating);
    let named = spec.subdomain.as_ref() == service.meta().name.as_ref();
    // As in kube-controller-manager, the reference has no version.
    let target = pod.object_ref(&());
    Some(Endpoint {
        addresses: vec![address.to_owned()],
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hostname: spec.hostname.clone().filter(|hostname| named && !hostname.is_empty()),
        node_name: spec.node_name.clone(),
        target_ref: Some(k8s_openapi::api::core::v1::ObjectReference {
            api_version: None,
            resource_version: None,
            ..target
        }),
        ..Endpoint::default()
    })
}

/// The Service's ports on a pod, without named ports that the pod does not have.
fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let ports = ports.filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            protocol: Some(protocol(port.protocol.as_deref()).to_owned()),
            port: Some(target_port(port, pod)?),
            app_protocol: port.app_protocol.clone(),
        })
    });
    ports.collect()
}

fn protocol(given: Option<&str>) -> &str {
    given.unwrap_or("TCP")
}

fn target_port(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        None | Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let same = |held: &&ContainerPort| {
                held.name.as_ref() == Some(name)
                    && protocol(held.protocol.as_deref()) == protocol(port.protocol.as_deref())
            };
            container_ports(pod).find(same).map(|held| held.container_port)
        }
    }
}

/// The ports of containers, then those of sidecars.
fn container_ports(pod: &Pod) -> impl Iterator<Item = &ContainerPort> {
    let spec = pod.spec.iter();
    let sidecars = spec.clone().flat_map(|spec| spec.init_containers.iter().flatten());
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let containers = spec.flat_map(|spec| spec.containers.iter()).chain(sidecars);
    containers.flat_map(|container| container.ports.iter().flatten())
}
