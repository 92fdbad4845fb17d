//! The routes of Services: addresses and their endpoints. Pure.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use k8s_openapi::api::{
    core::v1::{Node, Service, ServicePort, ServiceSpec},
    discovery::v1::{Endpoint, EndpointSlice},
};
use kube::ResourceExt;

use crate::{controller::endpoints::SERVICE_NAME_LABEL, key::NamespacedKey};

/// The label of a Service that another proxy handles, as with kube-proxy.
const PROXY_NAME_LABEL: &str = "service.kubernetes.io/service-proxy-name";

/// One port of a Service.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServiceRoute {
    /// The name of the port in messages: its name, or its number if it has none.
    pub(super) name: String,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) backends: Vec<SocketAddr>,
    /// The reason why the port is not served.
    pub(super) complaint: Option<String>,
}

/// The Service that a slice belongs to.
pub(super) fn service_of(slice: &EndpointSlice) -> Option<NamespacedKey> {
    let name = slice.labels().get(SERVICE_NAME_LABEL)?;
    Some(NamespacedKey::new(slice.namespace().unwrap_or_default(), name))
}

pub(super) fn node_addresses(node: &Node) -> Vec<IpAddr> {
    let addresses = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
    addresses
        .filter(|address| address.type_ == "InternalIP")
        .filter_map(|address| address.address.parse().ok())
        .collect()
}

/// All ports of a Service with its slices, on nodes with these addresses.
pub(super) fn service_routes(service: &Service, slices: &[Arc<EndpointSlice>], nodes: &[IpAddr]) -> Vec<ServiceRoute> {
    let Some(spec) = service.spec.as_ref().filter(|spec| spec.type_.as_deref() != Some("ExternalName")) else {
        return Vec::new();
    };
    if service.labels().contains_key(PROXY_NAME_LABEL) {
        return Vec::new();
    }
    let own = service_addresses(spec);
    if own.is_empty() {
        return Vec::new();
    }
    let nodes: BTreeSet<IpAddr> = nodes.iter().copied().chain([Ipv4Addr::LOCALHOST.into()]).collect();
    let route = |port: &ServicePort| {
        let name = port.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| port.port.to_string());
        if let Some(protocol) = port.protocol.as_deref().filter(|protocol| *protocol != "TCP") {
            let complaint = format!("Port {name} is not served: this cluster forwards TCP, and not {protocol}");
            return ServiceRoute { name, complaint: Some(complaint), ..ServiceRoute::default() };
        }
        let at = |addresses: &mut dyn Iterator<Item = IpAddr>, port: Option<u16>| -> Vec<SocketAddr> {
            addresses.flat_map(|ip| port.map(|port| SocketAddr::new(ip, port))).collect()
        };
        let mut addresses = at(&mut own.iter().copied(), checked_port(port.port));
        addresses.extend(at(&mut nodes.iter().copied(), port.node_port.and_then(checked_port)));
        ServiceRoute { name, addresses, backends: port_backends(port, slices), complaint: None }
    };
    spec.ports.iter().flatten().map(route).collect()
}

fn checked_port(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|port| *port > 0)
}

/// The addresses of the Service; none if it is headless.
fn service_addresses(spec: &ServiceSpec) -> Vec<IpAddr> {
    let all = spec.cluster_ips.iter().flatten().chain(&spec.cluster_ip);
    let all: BTreeSet<IpAddr> = all.filter_map(|ip| ip.parse().ok()).collect();
    all.into_iter().collect()
}

/// The ready endpoints of a port; without any, the terminating ones that still serve.
fn port_backends(port: &ServicePort, slices: &[Arc<EndpointSlice>]) -> Vec<SocketAddr> {
    let mut ready = BTreeSet::new();
    let mut ending = BTreeSet::new();
    for slice in slices {
        let same = |name: Option<&String>| name.map_or("", String::as_str) == port.name.as_deref().unwrap_or_default();
        let ports = slice.ports.iter().flatten().filter(|held| same(held.name.as_ref()));
        let ports = ports.filter(|held| held.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
        for number in ports.filter_map(|held| held.port.and_then(checked_port)) {
            for endpoint in &slice.endpoints {
                let list = match endpoint_state(endpoint) {
                    EndpointState::Ready => &mut ready,
                    EndpointState::TerminatingServing => &mut ending,
                    EndpointState::NotServing => continue,
                };
                let ips = endpoint.addresses.iter().filter_map(|ip| ip.parse().ok());
                list.extend(ips.map(|ip| SocketAddr::new(ip, number)));
            }
        }
    }
    if ready.is_empty() { ending.into_iter().collect() } else { ready.into_iter().collect() }
}

enum EndpointState {
    Ready,
    TerminatingServing,
    NotServing,
}

/// Missing conditions count as ready.
fn endpoint_state(endpoint: &Endpoint) -> EndpointState {
    let said = endpoint.conditions.as_ref();
    let ready = said.and_then(|said| said.ready).unwrap_or(true);
    let serving = said.and_then(|said| said.serving).unwrap_or(ready);
    match (ready, serving && said.and_then(|said| said.terminating) == Some(true)) {
        (true, _) => EndpointState::Ready,
        (false, true) => EndpointState::TerminatingServing,
        (false, false) => EndpointState::NotServing,
    }
}

#[cfg(test)]
mod tests;
