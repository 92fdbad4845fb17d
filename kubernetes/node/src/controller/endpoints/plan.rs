//! The writes that bring the slices to the desired endpoints with the fewest changes. Pure.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use k8s_openapi::api::{
    core::v1::Service,
    discovery::v1::{Endpoint, EndpointPort, EndpointSlice},
};
use kube::{ResourceExt, api::ObjectMeta};

use super::{MANAGED_BY_LABEL, MANAGED_BY_VALUE, SERVICE_NAME_LABEL, desired_endpoints::EndpointGroup};
use crate::controller::owner_reference;

/// The most endpoints of a slice: kube-controller-manager's default.
const MAX_ENDPOINTS_PER_SLICE: usize = 100;

/// The label of slices of headless Services.
const HEADLESS_LABEL: &str = "service.kubernetes.io/headless";

/// The writes of a sync.
#[derive(Debug, Default)]
pub(super) struct EndpointSlicePlan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// The desired content of a slice, and the existing slice if there is one.
struct SliceContents {
    existing: Option<Arc<EndpointSlice>>,
    ports: Vec<EndpointPort>,
    endpoints: Vec<Endpoint>,
}

/// Matches the desired endpoints with the existing slices.
pub(super) fn plan_slices(
    service: &Service,
    groups: Vec<EndpointGroup>,
    mut held: Vec<Arc<EndpointSlice>>,
) -> EndpointSlicePlan {
    let mut filled = Vec::new();
    for group in groups {
        let same = held.extract_if(.., |slice| ports(slice) == group.ports).collect();
        filled.extend(distribute_endpoints(group, same));
    }
    if filled.iter().all(|slice| slice.endpoints.is_empty()) {
        // An empty slice shows that the Service has no endpoints, as opposed to not being synced yet.
        filled.push(SliceContents { existing: None, ports: Vec::new(), endpoints: Vec::new() });
    }
    // Slices that are no longer needed are reused for new ones.
    let (needed, empty): (Vec<_>, Vec<_>) =
        filled.into_iter().partition(|slice| !slice.endpoints.is_empty() || slice.existing.is_none());
    held.extend(empty.into_iter().filter_map(|slice| slice.existing));
    let mut spare = held.into_iter();
    let mut plan = EndpointSlicePlan::default();
    for mut slice in needed {
        slice.existing = slice.existing.or_else(|| spare.next());
        add_slice(&mut plan, service, slice);
    }
    plan.delete = spare.collect();
    plan
}

/// Existing endpoints keep their slice. New ones go to the fullest slices with room, then to new slices.
fn distribute_endpoints(group: EndpointGroup, held: Vec<Arc<EndpointSlice>>) -> Vec<SliceContents> {
    let mut wanted: BTreeMap<_, _> =
        group.endpoints.into_iter().map(|endpoint| (endpoint_identity(&endpoint), endpoint)).collect();
    let ports = group.ports;
    let keep = |slice: Arc<EndpointSlice>| {
        let endpoints =
            slice.endpoints.iter().filter_map(|endpoint| wanted.remove(&endpoint_identity(endpoint))).collect();
        SliceContents { existing: Some(slice), ports: ports.clone(), endpoints }
    };
    let mut slices: Vec<SliceContents> = held.into_iter().map(keep).collect();
    slices.sort_by_key(|slice| Reverse(slice.endpoints.len()));
    let mut new = wanted.into_values().peekable();
    for slice in &mut slices {
        let room = MAX_ENDPOINTS_PER_SLICE.saturating_sub(slice.endpoints.len());
        slice.endpoints.extend(new.by_ref().take(room));
    }
    while new.peek().is_some() {
        slices.push(SliceContents {
            existing: None,
            ports: ports.clone(),
            endpoints: new.by_ref().take(MAX_ENDPOINTS_PER_SLICE).collect(),
        });
    }
    slices
}

/// By name for a stable order, and by uid as a name may be used again.
fn endpoint_identity(endpoint: &Endpoint) -> (String, String) {
    let pod = endpoint.target_ref.as_ref();
    let text = |text: Option<&String>| text.cloned().unwrap_or_default();
    (text(pod.and_then(|pod| pod.name.as_ref())), text(pod.and_then(|pod| pod.uid.as_ref())))
}

fn add_slice(plan: &mut EndpointSlicePlan, service: &Service, slice: SliceContents) {
    let labels = labels(service);
    let owners = vec![owner_reference::controller_reference(service)];
    let ports_wanted = Some(slice.ports).filter(|ports| !ports.is_empty());
    let Some(held) = slice.existing else {
        let metadata = ObjectMeta {
            generate_name: Some(format!("{}-", service.name_any())),
            namespace: service.namespace(),
            labels: Some(labels),
            owner_references: Some(owners),
            ..ObjectMeta::default()
        };
        let endpoints = slice.endpoints;
        let address_type = "IPv4".to_owned();
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

/// The labels of the Service and of this controller.
fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels().clone();
    labels.remove(HEADLESS_LABEL);
    if service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        labels.insert(HEADLESS_LABEL.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME_LABEL.to_owned(), service.name_any());
    labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGED_BY_VALUE.to_owned());
    labels
}
