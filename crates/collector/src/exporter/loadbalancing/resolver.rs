//! Resolvers: keep the list of peers current.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Weak,
};

use kubewake_config::model::{DnsResolver, PeerResolver, ServiceResolver};
use serde::Deserialize;
use tokio::task::AbortHandle;

use super::LoadBalancer;
use crate::{
    core::{ResolverFault, ResolverKind},
    kubernetes::{
        self, AccessSource, ApiClient, ApiError, ClusterAccess, ObjectEvent, ObjectMetadata, WatchQuery, WatchedObject,
        or_default,
    },
};

/// Pause before the API server is looked up again.
const CONNECT_RETRY_INTERVAL: std::time::Duration = std::time::Duration::from_secs(10);

/// Sets the balancer's peers, now or as soon as they are known, and after each change.
pub(super) fn start_resolver(resolver: PeerResolver, balancer: Weak<LoadBalancer>) -> Option<AbortHandle> {
    match resolver {
        PeerResolver::Static(peers) => {
            balancer.upgrade()?.set_peers(ResolverKind::Static, peers);
            None
        }
        PeerResolver::Dns(settings) => Some(tokio::spawn(resolve_dns(settings, balancer)).abort_handle()),
        PeerResolver::Kubernetes(settings) => Some(tokio::spawn(resolve_service(settings, balancer)).abort_handle()),
    }
}

async fn resolve_dns(settings: DnsResolver, balancer: Weak<LoadBalancer>) {
    let mut ticks = tokio::time::interval(settings.interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let found =
            tokio::time::timeout(settings.timeout, tokio::net::lookup_host((&*settings.hostname, settings.port)));
        let found = found.await;
        let Some(balancer) = balancer.upgrade() else { return };
        let name = &settings.hostname;
        let failed = |fault, error: String| balancer.report_resolver_failure(ResolverKind::Dns, fault, &error);
        match found {
            Err(_) => failed(ResolverFault::NoAnswer, format!("{name}: no answer within {:?}", settings.timeout)),
            Ok(Err(error)) => failed(ResolverFault::Failed, format!("{name}: {error}")),
            Ok(Ok(addresses)) => match addresses.map(|address| address.to_string()).collect::<Vec<_>>() {
                none if none.is_empty() => failed(ResolverFault::Empty, format!("{name} has no address")),
                peers => balancer.set_peers(ResolverKind::Dns, peers),
            },
        }
    }
}

/// The fields of an `EndpointSlice` that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EndpointSlice {
    metadata: ObjectMetadata,
    #[serde(deserialize_with = "or_default")]
    endpoints: Vec<SliceEndpoint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SliceEndpoint {
    #[serde(deserialize_with = "or_default")]
    addresses: Vec<String>,
    hostname: Option<String>,
    #[serde(deserialize_with = "or_default")]
    conditions: EndpointConditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EndpointConditions {
    /// Unknown counts as ready, by the Kubernetes API.
    ready: Option<bool>,
    /// Ready, apart from termination. Unknown counts as the value of `ready`.
    serving: Option<bool>,
    terminating: Option<bool>,
}

impl WatchedObject for EndpointSlice {
    fn metadata(&self) -> &ObjectMetadata {
        &self.metadata
    }
}

async fn resolve_service(settings: ServiceResolver, balancer: Weak<LoadBalancer>) {
    loop {
        let access = ClusterAccess::discover(&AccessSource::Inferred, &settings.service_account);
        let client = access
            .as_ref()
            .map_err(|error| error.0.clone())
            .and_then(|access| ApiClient::new(access).map_err(|error| error.0));
        match client {
            Ok(client) => {
                let own = access.ok().and_then(|access| access.namespace);
                let namespace = settings.namespace.clone().or(own).unwrap_or_else(|| "default".into());
                return watch_endpoint_slices(&settings, &namespace, &client, &balancer).await;
            }
            Err(error) => match balancer.upgrade() {
                None => return,
                Some(balancer) => {
                    balancer.report_resolver_failure(ResolverKind::Kubernetes, ResolverFault::Failed, &error)
                }
            },
        }
        tokio::time::sleep(CONNECT_RETRY_INTERVAL).await;
    }
}

/// Watches the EndpointSlices of a Service. An empty list is no proof that there are no endpoints: slices are
/// deleted together with the Service, while its pods, which were deleted with it, still terminate. Known peers
/// stay until others are listed. A terminating endpoint stays as long as it serves and none is ready, and is
/// never added: it may belong to a deleted tier, and deliver to another next tier.
pub(super) async fn watch_endpoint_slices(
    settings: &ServiceResolver,
    namespace: &str,
    client: &ApiClient,
    balancer: &Weak<LoadBalancer>,
) {
    let query = WatchQuery {
        labels: format!("kubernetes.io/service-name={}", settings.name),
        duration: settings.timeout,
        ..WatchQuery::all(format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"))
    };
    let mut slices = PeersBySlice::default();
    kubernetes::watch(client, &query, |event: ObjectEvent<EndpointSlice>| {
        let Some(balancer) = balancer.upgrade() else { return false };
        match event {
            ObjectEvent::Failed(error) => {
                balancer.report_resolver_failure(ResolverKind::Kubernetes, resolver_fault(&error), &error.to_string());
            }
            event => {
                if slices.apply(event, settings, namespace) {
                    let ready = slices.ready();
                    if ready.is_empty() {
                        balancer.keep_peers(ResolverKind::Kubernetes, &slices.terminating());
                    } else {
                        balancer.set_peers(ResolverKind::Kubernetes, ready);
                    }
                }
            }
        }
        true
    })
    .await;
}

fn resolver_fault(error: &ApiError) -> ResolverFault {
    match error {
        ApiError::Refused { status, .. } if !status.is_server_error() => ResolverFault::Refused,
        ApiError::Refused { .. } | ApiError::Connection(_) => ResolverFault::NoAnswer,
        ApiError::Expired | ApiError::Answer(_) | ApiError::Token(_) | ApiError::Access(_) => ResolverFault::Failed,
    }
}

#[derive(Default)]
struct PeersBySlice {
    known: BTreeMap<String, SlicePeers>,
    /// The slices of a list that is not complete.
    listed: Option<BTreeMap<String, SlicePeers>>,
}

#[derive(Default)]
struct SlicePeers {
    ready: Vec<String>,
    /// Endpoints that are terminating and still serve.
    terminating: Vec<String>,
}

impl SlicePeers {
    fn from_slice(slice: &EndpointSlice, settings: &ServiceResolver, namespace: &str) -> Self {
        let mut peers = Self::default();
        for endpoint in &slice.endpoints {
            let EndpointConditions { ready, serving, terminating } = endpoint.conditions;
            let is_ready = ready != Some(false);
            let list = match (is_ready, serving.unwrap_or(is_ready) && terminating == Some(true)) {
                (true, _) => &mut peers.ready,
                (false, true) => &mut peers.terminating,
                (false, false) => continue,
            };
            list.extend(endpoint_addresses(endpoint, settings, namespace));
        }
        peers
    }
}

impl PeersBySlice {
    /// Handles an event; returns whether the peers may have changed.
    fn apply(&mut self, event: ObjectEvent<EndpointSlice>, settings: &ServiceResolver, namespace: &str) -> bool {
        match event {
            ObjectEvent::ListStarted => self.listed = Some(BTreeMap::new()),
            ObjectEvent::ListCompleted => self.known = self.listed.take().unwrap_or_default(),
            ObjectEvent::Applied(slice) => {
                let peers = SlicePeers::from_slice(&slice, settings, namespace);
                self.listed.as_mut().unwrap_or(&mut self.known).insert(slice.metadata.name, peers);
            }
            ObjectEvent::Deleted(slice) => drop(self.known.remove(&slice.metadata.name)),
            ObjectEvent::Resumed | ObjectEvent::Failed(_) => {}
        }
        self.listed.is_none()
    }

    fn ready(&self) -> Vec<String> {
        self.known.values().flat_map(|peers| &peers.ready).cloned().collect()
    }

    /// The endpoints that are terminating and still serve.
    fn terminating(&self) -> BTreeSet<&str> {
        self.known.values().flat_map(|peers| &peers.terminating).map(String::as_str).collect()
    }
}

/// The addresses of an endpoint.
fn endpoint_addresses(endpoint: &SliceEndpoint, settings: &ServiceResolver, namespace: &str) -> Vec<String> {
    let hosts: Vec<String> = match (settings.return_hostnames, &endpoint.hostname) {
        (true, Some(name)) => vec![format!("{name}.{}.{namespace}", settings.name)],
        // The name follows in a moment.
        (true, None) => Vec::new(),
        (false, _) => endpoint.addresses.iter().map(|address| bracketed(address)).collect(),
    };
    hosts.iter().flat_map(|host| settings.ports.iter().map(move |port| format!("{host}:{port}"))).collect()
}

fn bracketed(address: &str) -> String {
    match address.parse() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn slice(text: &str) -> EndpointSlice {
        serde_json::from_str(text).unwrap()
    }

    fn settings(return_hostnames: bool) -> ServiceResolver {
        let name = "tier".into();
        let timeout = Duration::from_secs(60);
        ServiceResolver {
            name,
            namespace: None,
            ports: vec![1, 2],
            timeout,
            return_hostnames,
            service_account: Default::default(),
        }
    }

    #[test]
    fn ready_endpoints_are_peers_at_each_port_until_they_are_gone() {
        let mut slices = PeersBySlice::default();
        let settings = settings(false);
        let mut apply = |event| slices.apply(event, &settings, "n").then(|| slices.ready());
        assert_eq!(apply(ObjectEvent::ListStarted), None);
        let first = r#"{"metadata":{"name":"s1"},"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}},
            {"addresses":["10.0.0.2"],"conditions":{"ready":false}},{"addresses":["fd00::1"],"conditions":{}}]}"#;
        assert_eq!(apply(ObjectEvent::Applied(slice(first))), None, "the list is not complete");
        let all = ["10.0.0.1:1", "10.0.0.1:2", "[fd00::1]:1", "[fd00::1]:2"].map(str::to_owned).to_vec();
        assert_eq!(apply(ObjectEvent::ListCompleted), Some(all.clone()));
        let second = r#"{"metadata":{"name":"s2"},"endpoints":null}"#;
        assert_eq!(apply(ObjectEvent::Applied(slice(second))), Some(all));
        assert_eq!(apply(ObjectEvent::Deleted(slice(first))), Some(Vec::new()));
    }

    #[test]
    fn terminating_endpoints_that_serve_are_known_apart_from_ready_ones() {
        let mut slices = PeersBySlice::default();
        let settings = ServiceResolver { ports: vec![1], ..settings(false) };
        let text = r#"{"metadata":{"name":"s1"},"endpoints":[
            {"addresses":["10.0.0.1"],"conditions":{"ready":false,"serving":true,"terminating":true}},
            {"addresses":["10.0.0.2"],"conditions":{"ready":false,"serving":false,"terminating":true}},
            {"addresses":["10.0.0.3"],"conditions":{"ready":false,"serving":true,"terminating":false}},
            {"addresses":["10.0.0.4"],"conditions":{"ready":false,"terminating":true}},
            {"addresses":["10.0.0.5"],"conditions":{"ready":true,"serving":true,"terminating":true}}]}"#;
        slices.apply(ObjectEvent::Applied(slice(text)), &settings, "n");
        assert_eq!(slices.terminating(), BTreeSet::from(["10.0.0.1:1"]));
        // As for a Service that publishes addresses which are not ready.
        assert_eq!(slices.ready(), ["10.0.0.5:1"]);
    }

    #[test]
    fn a_stateful_set_has_peers_by_name() {
        let mut slices = PeersBySlice::default();
        let settings = settings(true);
        let text = r#"{"metadata":{"name":"s"},"endpoints":[{"addresses":["10.0.0.1"],"hostname":"tier-0"},
            {"addresses":["10.0.0.2"]}]}"#;
        slices.apply(ObjectEvent::Applied(slice(text)), &settings, "n");
        assert_eq!(slices.ready(), ["tier-0.tier.n:1", "tier-0.tier.n:2"]);
    }
}
