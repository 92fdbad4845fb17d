//! `default/kubernetes`: the Service of the API server itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::{Value, json};

use super::bootstrap::set_create_metadata;
use crate::{
    api::{GroupResource, ObjectKey, meta::MetaAccessor},
    server_state::ServerState,
    store::WriteError,
};

/// Writes the Service with its endpoints, and corrects those of a server that listened elsewhere.
pub async fn write(core: &ServerState, network: Ipv4Addr, listens: SocketAddr) -> Result<(), WriteError> {
    let service = Ipv4Addr::from(u32::from(network) + 1);
    let address = if listens.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { listens.ip() };
    create_or_update(core, GroupResource::new("", "services"), own_service(service, listens.port())).await?;
    create_or_update(core, GroupResource::new("", "endpoints"), endpoints(address, listens.port())).await?;
    create_or_update(core, GroupResource::new("discovery.k8s.io", "endpointslices"), slice(address, listens.port()))
        .await
}

fn own_service(address: Ipv4Addr, port: u16) -> Value {
    json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{ "name": "https", "protocol": "TCP", "port": 443, "targetPort": port }],
        },
        "status": { "loadBalancer": {} },
    })
}

fn endpoints(address: IpAddr, port: u16) -> Value {
    let port = json!({ "name": "https", "port": port, "protocol": "TCP" });
    json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "endpointslice.kubernetes.io/skip-mirror": "true" },
        },
        "subsets": [{ "addresses": [{ "ip": address }], "ports": [port] }],
    })
}

fn slice(address: IpAddr, port: u16) -> Value {
    json!({
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "kubernetes.io/service-name": "kubernetes" },
        },
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }],
        "ports": [{ "name": "https", "port": port, "protocol": "TCP" }],
    })
}

/// Creates the object, or replaces the existing one except for its metadata.
async fn create_or_update(core: &ServerState, resource: GroupResource, object: Value) -> Result<(), WriteError> {
    let key = ObjectKey::new(resource, object.namespace(), object.name());
    let Some(held) = core.store.get(&key) else {
        return core.store.create(key, set_create_metadata(core, object)).await.map(drop);
    };
    let mut wanted = held.value();
    if let (Some(wanted), Value::Object(object)) = (wanted.as_object_mut(), object) {
        wanted.extend(object.into_iter().filter(|(field, _)| field != "metadata"));
    }
    if wanted == held.value() {
        return Ok(());
    }
    core.store.update(&key, held.revision, wanted).await.map(drop)
}
