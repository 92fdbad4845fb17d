//! Where the peers are, all the time.

use std::{collections::BTreeMap, net::IpAddr, sync::Weak};

use kubewake_config::model::{DnsResolver, Resolver, ServiceResolver};
use serde::Deserialize;
use tokio::task::AbortHandle;

use super::Balancer;
use crate::{
    core::{ResolverFault, ResolverKind},
    kubernetes::{self, Access, AccessSource, ApiError, Client, Event, Metadata, Object, Query, or_default},
};

/// How long to wait before the API server is looked for again.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Tells the balancer its peers, now or as soon as they are known, and whenever they change.
pub(super) fn start(resolver: Resolver, balancer: Weak<Balancer>) -> Option<AbortHandle> {
    match resolver {
        Resolver::Static(peers) => {
            balancer.upgrade()?.set_peers(ResolverKind::Static, peers);
            None
        }
        Resolver::Dns(settings) => Some(tokio::spawn(by_name(settings, balancer)).abort_handle()),
        Resolver::Kubernetes(settings) => Some(tokio::spawn(by_service(settings, balancer)).abort_handle()),
    }
}

async fn by_name(settings: DnsResolver, balancer: Weak<Balancer>) {
    let mut ticks = tokio::time::interval(settings.interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let found =
            tokio::time::timeout(settings.timeout, tokio::net::lookup_host((&*settings.hostname, settings.port)));
        let found = found.await;
        let Some(balancer) = balancer.upgrade() else { return };
        let name = &settings.hostname;
        let failed = |fault, error: String| balancer.cannot_resolve(ResolverKind::Dns, fault, &error);
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

/// What is needed of an `EndpointSlice`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EndpointSlice {
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    #[serde(deserialize_with = "or_default")]
    addresses: Vec<String>,
    hostname: Option<String>,
    #[serde(deserialize_with = "or_default")]
    conditions: Conditions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Conditions {
    /// Unknown counts as ready, as Kubernetes says.
    ready: Option<bool>,
}

impl Object for EndpointSlice {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

async fn by_service(settings: ServiceResolver, balancer: Weak<Balancer>) {
    loop {
        let access = Access::find(&AccessSource::Usual);
        let client = access
            .as_ref()
            .map_err(|error| error.0.clone())
            .and_then(|access| Client::new(access).map_err(|error| error.0));
        match client {
            Ok(client) => {
                let own = access.ok().and_then(|access| access.namespace);
                let namespace = settings.namespace.clone().or(own).unwrap_or_else(|| "default".into());
                return follow(&settings, &namespace, &client, &balancer).await;
            }
            Err(error) => match balancer.upgrade() {
                None => return,
                Some(balancer) => balancer.cannot_resolve(ResolverKind::Kubernetes, ResolverFault::Failed, &error),
            },
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Follows the slices of a Service.
pub(super) async fn follow(settings: &ServiceResolver, namespace: &str, client: &Client, balancer: &Weak<Balancer>) {
    let query = Query {
        labels: format!("kubernetes.io/service-name={}", settings.name),
        duration: settings.timeout,
        ..Query::all(format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"))
    };
    let mut slices = Slices::default();
    kubernetes::watch(client, &query, |event: Event<EndpointSlice>| {
        let Some(balancer) = balancer.upgrade() else { return false };
        match event {
            Event::Failed(error) => {
                balancer.cannot_resolve(ResolverKind::Kubernetes, fault(&error), &error.to_string());
            }
            event => {
                if slices.apply(event, settings, namespace) {
                    balancer.set_peers(ResolverKind::Kubernetes, slices.peers());
                }
            }
        }
        true
    })
    .await;
}

fn fault(error: &ApiError) -> ResolverFault {
    match error {
        ApiError::Refused { status, .. } if !status.is_server_error() => ResolverFault::Refused,
        ApiError::Refused { .. } | ApiError::Connection(_) => ResolverFault::NoAnswer,
        ApiError::Expired | ApiError::Answer(_) | ApiError::Token(_) | ApiError::Access(_) => ResolverFault::Failed,
    }
}

/// The peers in each slice.
#[derive(Default)]
struct Slices {
    known: BTreeMap<String, Vec<String>>,
    /// Those of a list that is not complete.
    listed: Option<BTreeMap<String, Vec<String>>>,
}

impl Slices {
    /// Notes an event; whether the peers may be others now.
    fn apply(&mut self, event: Event<EndpointSlice>, settings: &ServiceResolver, namespace: &str) -> bool {
        match event {
            Event::Begin => self.listed = Some(BTreeMap::new()),
            Event::Complete => self.known = self.listed.take().unwrap_or_default(),
            Event::Applied(slice) => {
                let peers = slice.endpoints.iter().flat_map(|endpoint| peers(endpoint, settings, namespace)).collect();
                self.listed.as_mut().unwrap_or(&mut self.known).insert(slice.metadata.name, peers);
            }
            Event::Deleted(slice) => drop(self.known.remove(&slice.metadata.name)),
            Event::Resumed | Event::Failed(_) => {}
        }
        self.listed.is_none()
    }

    fn peers(&self) -> Vec<String> {
        self.known.values().flatten().cloned().collect()
    }
}

/// The peers of an endpoint: none while it is not ready, so that what comes finds it able to take it.
fn peers(endpoint: &Endpoint, settings: &ServiceResolver, namespace: &str) -> Vec<String> {
    if endpoint.conditions.ready == Some(false) {
        return Vec::new();
    }
    let hosts: Vec<String> = match (settings.return_hostnames, &endpoint.hostname) {
        (true, Some(name)) => vec![format!("{name}.{}.{namespace}", settings.name)],
        // It gets its name in a moment.
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
        let (name, timeout) = ("tier".into(), Duration::from_secs(60));
        ServiceResolver { name, namespace: None, ports: vec![1, 2], timeout, return_hostnames }
    }

    #[test]
    fn ready_endpoints_are_peers_at_each_port_until_they_are_gone() {
        let (mut slices, settings) = (Slices::default(), settings(false));
        let mut apply = |event| slices.apply(event, &settings, "n").then(|| slices.peers());
        assert_eq!(apply(Event::Begin), None);
        let first = r#"{"metadata":{"name":"s1"},"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}},
            {"addresses":["10.0.0.2"],"conditions":{"ready":false}},{"addresses":["fd00::1"],"conditions":{}}]}"#;
        assert_eq!(apply(Event::Applied(slice(first))), None, "the list is not complete");
        let all = ["10.0.0.1:1", "10.0.0.1:2", "[fd00::1]:1", "[fd00::1]:2"].map(str::to_owned).to_vec();
        assert_eq!(apply(Event::Complete), Some(all.clone()));
        let second = r#"{"metadata":{"name":"s2"},"endpoints":null}"#;
        assert_eq!(apply(Event::Applied(slice(second))), Some(all));
        assert_eq!(apply(Event::Deleted(slice(first))), Some(Vec::new()));
    }

    #[test]
    fn a_stateful_set_has_peers_by_name() {
        let (mut slices, settings) = (Slices::default(), settings(true));
        let text = r#"{"metadata":{"name":"s"},"endpoints":[{"addresses":["10.0.0.1"],"hostname":"tier-0"},
            {"addresses":["10.0.0.2"]}]}"#;
        slices.apply(Event::Applied(slice(text)), &settings, "n");
        assert_eq!(slices.peers(), ["tier-0.tier.n:1", "tier-0.tier.n:2"]);
    }
}
