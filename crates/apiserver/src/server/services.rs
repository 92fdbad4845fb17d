//! Where a Service is reached.

use std::net::IpAddr;

use serde_json::Value;

use crate::{
    api::{GroupResource, ObjectKey},
    client::{Address, Services},
    store::Store,
};

/// Services are at their `clusterIP`.
impl Services for Store {
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<Address, String> {
        let key = ObjectKey::new(GroupResource::new("", "services"), namespace, name);
        let service = self.get(&key).ok_or_else(|| format!("service {name:?} not found"))?.value();
        let text = |pointer: &str| service.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let address = match (text("/spec/type"), text("/spec/clusterIP")) {
            ("ExternalName", _) => return Ok(Address::Tcp(text("/spec/externalName").to_owned(), port)),
            (_, "" | "None") => return Err("cannot route to service with ClusterIP \"None\"".to_owned()),
            (_, address) => address.parse::<IpAddr>().map_err(|error| format!("{address:?}: {error}"))?,
        };
        let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
        let mut numbers = ports.filter_map(|port| port.get("port").and_then(Value::as_u64));
        match numbers.any(|known| known == u64::from(port)) {
            true => Ok(Address::Tcp(address.to_string(), port)),
            false => Err(format!("no service port {port} found for service {name:?}")),
        }
    }
}
