//! What to write so that the slices say what they should, with as little change as can be. Pure.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointPort, EndpointSlice},
};
use kube::{ResourceExt, api::ObjectMeta};

use super::{MANAGED_BY, SERVICE, US, wanted::Group};
use crate::controller::owner;

/// How many endpoints a slice has at most, as kube-controller-manager is told by default.
const MOST: usize = 100;

/// The label of slices of Services that have no address.
const HEADLESS: &str = "service.kubernetes.io/headless";

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// A slice as it should be, and as it is if there is one.
struct Filled {
    held: Option<Arc<EndpointSlice>>,
    ports: Vec<EndpointPort>,
    endpoints: Vec<Endpoint>,
}

/// Brings what is wanted and what is there together.
pub(super) fn plan(service: &Service, groups: Vec<Group>, mut held: Vec<Arc<EndpointSlice>>) -> Plan {
    let mut filled = Vec::new();
    for group in groups {
        let same = held.extract_if(.., |slice| ports(slice) == group.ports).collect();
        filled.extend(fill(group, same));
    }
    if filled.iter().all(|slice| slice.endpoints.is_empty()) {
        // Whoever looks for the slices of a Service sees that it has no endpoints, and not that nobody has looked yet.
        filled.push(Filled { held: None, ports: Vec::new(), endpoints: Vec::new() });
    }
    // A slice that is no longer needed becomes one that is.
    let (needed, empty): (Vec<_>, Vec<_>) =
        filled.into_iter().partition(|slice| !slice.endpoints.is_empty() || slice.held.is_none());
    held.extend(empty.into_iter().filter_map(|slice| slice.held));
    let mut spare = held.into_iter();
    let mut plan = Plan::default();
    for mut slice in needed {
        slice.held = slice.held.or_else(|| spare.next());
        add(&mut plan, service, slice);
    }
    plan.delete = spare.collect();
    plan
}

/// Each endpoint stays where it is; new ones go to the fullest slices that have room, and then to new ones.
fn fill(group: Group, held: Vec<Arc<EndpointSlice>>) -> Vec<Filled> {
    let mut wanted: BTreeMap<_, _> = group.endpoints.into_iter().map(|endpoint| (id(&endpoint), endpoint)).collect();
    let ports = group.ports;
    let keep = |slice: Arc<EndpointSlice>| {
        let endpoints = slice.endpoints.iter().filter_map(|endpoint| wanted.remove(&id(endpoint))).collect();
        Filled { held: Some(slice), ports: ports.clone(), endpoints }
    };
    let mut slices: Vec<Filled> = held.into_iter().map(keep).collect();
    slices.sort_by_key(|slice| Reverse(slice.endpoints.len()));
    let mut new = wanted.into_values().peekable();
    for slice in &mut slices {
        let room = MOST.saturating_sub(slice.endpoints.len());
        slice.endpoints.extend(new.by_ref().take(room));
    }
    while new.peek().is_some() {
        slices.push(Filled { held: None, ports: ports.clone(), endpoints: new.by_ref().take(MOST).collect() });
    }
    slices
}

/// By name, so that what is new is in order; and by uid, as a name may be used again.
fn id(endpoint: &Endpoint) -> (String, String) {
    let pod = endpoint.target_ref.as_ref();
    let text = |text: Option<&String>| text.cloned().unwrap_or_default();
    (text(pod.and_then(|pod| pod.name.as_ref())), text(pod.and_then(|pod| pod.uid.as_ref())))
}

fn add(plan: &mut Plan, service: &Service, slice: Filled) {
    let labels = labels(service);
    let owners = vec![owner::reference(service)];
    let ports_wanted = Some(slice.ports).filter(|ports| !ports.is_empty());
    let Some(held) = slice.held else {
        let metadata = ObjectMeta {
            generate_name: Some(format!("{}-", service.name_any())),
            namespace: service.namespace(),
            labels: Some(labels),
            owner_references: Some(owners),
            ..ObjectMeta::default()
        };
        let (endpoints, address_type) = (slice.endpoints, "IPv4".to_owned());
        return plan.create.push(EndpointSlice { metadata, address_type, endpoints, ports: ports_wanted });
    };
    let mut new = EndpointSlice::clone(&held);
    new.metadata.labels = Some(labels);
    new.metadata.owner_references = Some(owners);
    new.endpoints = slice.endpoints;
    if ports(&held) != ports_wanted.as_deref().unwrap_or_default() {
        new.ports = ports_wanted;
    }
    if new != *held {
        plan.update.push(new);
    }
}

fn ports(slice: &EndpointSlice) -> &[EndpointPort] {
    slice.ports.as_deref().unwrap_or_default()
}

/// The Service's own, and ours.
fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels().clone();
    labels.remove(HEADLESS);
    if service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE.to_owned(), service.name_any());
    labels.insert(MANAGED_BY.to_owned(), US.to_owned());
    labels
}
