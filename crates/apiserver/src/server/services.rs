//! Where Services are, as their objects say.

use serde_json::Value;

use crate::{
    api::{GroupResource, ObjectKey},
    client::{Address, NoService, Services},
    store::Store,
};

/// Looks into the store: a Service is at its cluster IP. Whoever gives Services other addresses answers in its place.
#[derive(Clone, Debug)]
pub struct StoredServices(pub Store);

impl Services for StoredServices {
    fn address(&self, namespace: &str, name: &str, port: u16) -> Result<Address, NoService> {
        let key = ObjectKey::new(GroupResource::new("", "services"), namespace, name);
        let stored = self.0.get(&key).ok_or_else(|| NoService::Absent(name.to_owned()))?;
        find(&stored.value(), name, port)
    }
}

fn find(service: &Value, name: &str, port: u16) -> Result<Address, NoService> {
    let text = |pointer: &str| service.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/type") == "ExternalName" {
        return Ok(Address::Tcp(text("/spec/externalName").to_owned(), port));
    }
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let mut numbers = ports.filter_map(|one| one.get("port")?.as_u64());
    if !numbers.any(|number| number == u64::from(port)) {
        return Err(NoService::Port { name: name.to_owned(), port });
    }
    match text("/spec/clusterIP") {
        "" | "None" => Err(NoService::Address(name.to_owned())),
        address => Ok(Address::Tcp(address.to_owned(), port)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_service_is_at_its_cluster_ip_if_it_has_the_port() {
        let service = json!({ "spec": { "clusterIP": "127.1.2.3", "ports": [{ "port": 4317 }] } });
        assert_eq!(find(&service, "c", 4317), Ok(Address::Tcp("127.1.2.3".into(), 4317)));
        assert_eq!(find(&service, "c", 80), Err(NoService::Port { name: "c".into(), port: 80 }));
    }

    #[test]
    fn a_service_without_an_address_is_nowhere_and_an_external_one_elsewhere() {
        let headless = json!({ "spec": { "clusterIP": "None", "ports": [{ "port": 1 }] } });
        assert_eq!(find(&headless, "c", 1), Err(NoService::Address("c".into())));
        let external = json!({ "spec": { "type": "ExternalName", "externalName": "example.com" } });
        assert_eq!(find(&external, "c", 443), Ok(Address::Tcp("example.com".into(), 443)));
    }
}
