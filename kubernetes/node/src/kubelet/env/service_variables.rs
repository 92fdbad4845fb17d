//! Variables with the addresses of Services: Kubernetes' own, and those of Docker links.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;

use super::{EnvVariables, TooLong};
use crate::kubelet::node_facts::NodeFacts;

struct ServicePortRef<'a> {
    name: Option<&'a str>,
    number: u16,
    protocol: &'a str,
}

/// The Service of the API server. The object has the address that it would have on another cluster.
const API_SERVER_SERVICE: &str = "kubernetes";

/// Adds the Services of the pod's namespace, unless the pod disables them, and the real address of the API
/// server.
pub(super) fn add_service_variables(
    pod: &Pod,
    node: &NodeFacts,
    services: &[Arc<Service>],
    variables: &mut EnvVariables,
) -> Result<(), TooLong> {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    for service in services.iter().filter(|service| wanted && service.name_any() != API_SERVER_SERVICE) {
        add_service(service, variables)?;
    }
    let port = ServicePortRef { name: Some("https"), number: node.api_server.port(), protocol: "TCP" };
    add_ports(API_SERVER_SERVICE, &node.api_server.ip().to_string(), &[port], variables)
}

fn add_service(service: &Service, variables: &mut EnvVariables) -> Result<(), TooLong> {
    let Some(spec) = &service.spec else { return Ok(()) };
    let address = spec.cluster_ip.as_deref().unwrap_or_default();
    if address.is_empty() || address == "None" {
        return Ok(());
    }
    let ports = spec.ports.iter().flatten().filter_map(|port| {
        let number = u16::try_from(port.port).ok()?;
        let name = port.name.as_deref().filter(|name| !name.is_empty());
        Some(ServicePortRef { name, number, protocol: port.protocol.as_deref().unwrap_or("TCP") })
    });
    add_ports(&service.name_any(), address, &ports.collect::<Vec<_>>(), variables)
}

fn add_ports(
    service: &str,
    address: &str,
    ports: &[ServicePortRef<'_>],
    variables: &mut EnvVariables,
) -> Result<(), TooLong> {
    let prefix = variable_name(service);
    let Some(first) = ports.first() else { return Ok(()) };
    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let url = |port: &ServicePortRef<'_>| format!("{}://{host}:{}", port.protocol.to_lowercase(), port.number);
    let mut set = |suffix: &str, value: String| variables.set(format!("{prefix}_{suffix}"), value);
    set("SERVICE_HOST", address.to_owned())?;
    set("SERVICE_PORT", first.number.to_string())?;
    set("PORT", url(first))?;
    for port in ports {
        if let Some(name) = port.name {
            set(&format!("SERVICE_PORT_{}", variable_name(name)), port.number.to_string())?;
        }
        let link = format!("PORT_{}_{}", port.number, port.protocol.to_uppercase());
        set(&link, url(port))?;
        set(&format!("{link}_PROTO"), port.protocol.to_lowercase())?;
        set(&format!("{link}_PORT"), port.number.to_string())?;
        set(&format!("{link}_ADDR"), address.to_owned())?;
    }
    Ok(())
}

/// Converts a name such as `my-service` to a part of a variable name.
fn variable_name(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}
