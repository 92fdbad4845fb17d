//! Resolves the addresses of Services.

use std::net::IpAddr;

use serde_json::Value;

use crate::{
    api::{GroupResource, ObjectKey},
    client::{DialAddress, ServiceAddressResolver},
    store::{ListQuery, ObjectStore},
};

/// Lower ports are privileged.
const FIRST_UNPRIVILEGED_PORT: u16 = 1024;

/// Services with this label are served only by the proxy that it names, so that only their `clusterIP` works.
const PROXY_NAME_LABEL_POINTER: &str = "/metadata/labels/service.kubernetes.io~1service-proxy-name";

/// Services are reached at their `clusterIP`. For a privileged port a ready endpoint is used, as by a
/// kube-apiserver that routes to endpoints: webhooks are behind 443 everywhere, and a cluster on one machine
/// seldom runs as root.
impl ServiceAddressResolver for ObjectStore {
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<DialAddress, String> {
        let key = ObjectKey::new(GroupResource::new("", "services"), namespace, name);
        let service = self.get(&key).ok_or_else(|| format!("service {name:?} not found"))?.value();
        let text = |pointer: &str| service.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let address = match (text("/spec/type"), text("/spec/clusterIP")) {
            ("ExternalName", _) => return Ok(DialAddress::Tcp(text("/spec/externalName").to_owned(), port)),
            (_, "" | "None") => return Err("cannot route to service with ClusterIP \"None\"".to_owned()),
            (_, address) => address.parse::<IpAddr>().map_err(|error| format!("{address:?}: {error}"))?,
        };
        let mut ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
        let number = |port: &Value| port.get("port").and_then(Value::as_u64);
        let Some(known) = ports.find(|known| number(known) == Some(u64::from(port))) else {
            return Err(format!("no service port {port} found for service {name:?}"));
        };
        let is_ours = port < FIRST_UNPRIVILEGED_PORT && text(PROXY_NAME_LABEL_POINTER).is_empty();
        let endpoint = is_ours.then(|| endpoint(self, namespace, name, known.get("name"))).flatten();
        Ok(endpoint.unwrap_or_else(|| DialAddress::Tcp(address.to_string(), port)))
    }
}

/// A ready endpoint of a Service's port. None without EndpointSlices, or if none is ready.
fn endpoint(store: &ObjectStore, namespace: &str, service: &str, port: Option<&Value>) -> Option<DialAddress> {
    let slices = GroupResource::new("discovery.k8s.io", "endpointslices");
    let query = ListQuery { namespace: Some(namespace.into()), ..ListQuery::default() };
    let slices = store.list(&slices, &query).ok()?.items;
    slices.iter().find_map(|slice| ready_in(&slice.value(), service, port))
}

fn ready_in(slice: &Value, service: &str, port: Option<&Value>) -> Option<DialAddress> {
    let owner = slice.pointer("/metadata/labels/kubernetes.io~1service-name");
    if owner.and_then(Value::as_str) != Some(service) {
        return None;
    }
    let name = |port: Option<&Value>| port.and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut ports = slice.get("ports").and_then(Value::as_array).into_iter().flatten();
    let number = ports.find(|known| name(known.get("name")) == name(port))?.get("port")?.as_u64()?;
    let mut endpoints = slice.get("endpoints").and_then(Value::as_array).into_iter().flatten();
    // An endpoint without the condition is ready.
    let is_ready = |endpoint: &&Value| endpoint.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true);
    let address = endpoints.find(is_ready)?.pointer("/addresses/0")?.as_str()?;
    Some(DialAddress::Tcp(address.to_owned(), u16::try_from(number).ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_endpoint_is_one_that_is_ready_at_the_port_of_that_name() {
        let slice = json!({
            "metadata": { "labels": { "kubernetes.io/service-name": "hook" } },
            "ports": [{ "name": "metrics", "port": 8888 }, { "name": "webhook", "port": 9443 }],
            "endpoints": [
                { "addresses": ["127.1.0.1"], "conditions": { "ready": false } },
                { "addresses": ["127.1.0.2"], "conditions": { "ready": true } }
            ]
        });
        let found = |service, port: &str| ready_in(&slice, service, Some(&json!(port)));
        assert_eq!(found("hook", "webhook"), Some(DialAddress::Tcp("127.1.0.2".into(), 9443)));
        assert_eq!((found("other", "webhook"), found("hook", "none")), (None, None));
    }
}
