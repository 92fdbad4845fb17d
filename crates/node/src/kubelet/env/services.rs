//! Variables that say where Services are: Kubernetes' own, and those of Docker's links.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;

use super::{TooLong, Variables};
use crate::kubelet::facts::NodeFacts;

struct Port<'a> {
    name: Option<&'a str>,
    number: u16,
    protocol: &'a str,
}

/// The name of the API server's Service. The object of this name has the address that a cluster would have it at.
const API_SERVER: &str = "kubernetes";

/// Of the Services of the pod's namespace, unless it does not want them, and of the API server, where it really is.
pub(super) fn add(
    pod: &Pod,
    node: &NodeFacts,
    services: &[Arc<Service>],
    variables: &mut Variables,
) -> Result<(), TooLong> {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    for service in services.iter().filter(|service| wanted && service.name_any() != API_SERVER) {
        add_service(service, variables)?;
    }
    let port = Port { name: Some("https"), number: node.api_server.port(), protocol: "TCP" };
    add_ports(API_SERVER, &node.api_server.ip().to_string(), &[port], variables)
}

fn add_service(service: &Service, variables: &mut Variables) -> Result<(), TooLong> {
    let Some(spec) = &service.spec else { return Ok(()) };
    let address = spec.cluster_ip.as_deref().unwrap_or_default();
    if address.is_empty() || address == "None" {
        return Ok(());
    }
    let ports = spec.ports.iter().flatten().filter_map(|port| {
        let number = u16::try_from(port.port).ok()?;
        let name = port.name.as_deref().filter(|name| !name.is_empty());
        Some(Port { name, number, protocol: port.protocol.as_deref().unwrap_or("TCP") })
    });
    add_ports(&service.name_any(), address, &ports.collect::<Vec<_>>(), variables)
}

fn add_ports(service: &str, address: &str, ports: &[Port<'_>], variables: &mut Variables) -> Result<(), TooLong> {
    let prefix = variable(service);
    let Some(first) = ports.first() else { return Ok(()) };
    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let url = |port: &Port<'_>| format!("{}://{host}:{}", port.protocol.to_lowercase(), port.number);
    let mut set = |suffix: &str, value: String| variables.set(format!("{prefix}_{suffix}"), value);
    set("SERVICE_HOST", address.to_owned())?;
    set("SERVICE_PORT", first.number.to_string())?;
    set("PORT", url(first))?;
    for port in ports {
        if let Some(name) = port.name {
            set(&format!("SERVICE_PORT_{}", variable(name)), port.number.to_string())?;
        }
        let link = format!("PORT_{}_{}", port.number, port.protocol.to_uppercase());
        set(&link, url(port))?;
        set(&format!("{link}_PROTO"), port.protocol.to_lowercase())?;
        set(&format!("{link}_PORT"), port.number.to_string())?;
        set(&format!("{link}_ADDR"), address.to_owned())?;
    }
    Ok(())
}

/// `my-service` as a part of a variable's name.
fn variable(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}
