//! EndpointSlices: the addresses of a Service's pods, and which of them are ready.
//!
//! *Guaranteed*: every Service with a selector has at least one slice. Every selected pod with an address that
//! has not ended is in exactly one of them, with conditions as kube-controller-manager sets them. An endpoint
//! stays in its slice, and nothing unchanged is written. *Not done*: the `Endpoints` API, deprecated since
//! 1.33; zones and hints, as the cluster is one machine; IPv6.

mod desired_endpoints;
mod plan;

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Namespace, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Resource, ResourceExt};

use self::plan::EndpointSlicePlan;
use super::{ControllerContext, ResourceController, pods, write_through};
use crate::{
    error::{ClusterError, Result},
    informer::InformerChange,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

/// The label with the name of a slice's Service.
pub const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// The label with the controller that manages a slice.
const MANAGED_BY_LABEL: &str = "endpointslice.kubernetes.io/managed-by";

/// Our value of that label.
const MANAGED_BY_VALUE: &str = "endpointslice-controller.k8s.io";

#[derive(Debug)]
pub struct EndpointSliceController {
    context: ControllerContext,
}

impl ResourceController for EndpointSliceController {
    const NAME: &'static str = "endpoint-slice-controller";

    fn new(context: ControllerContext) -> Self {
        Self { context }
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let views = &self.context.informers;
        let to = queue.clone();
        views.services.on_change(move |change| {
            change.new.iter().for_each(|service| to.add(NamespacedKey::from_object(&**service)));
        });
        let to = queue.clone();
        views.endpoint_slices.on_change(move |change| {
            change.latest().into_iter().filter_map(|slice| service_of(slice)).for_each(|key| to.add(key));
        });
        let to = queue.clone();
        let services = Arc::downgrade(&views.services);
        views.pods.on_change(move |change| {
            let Some(pod) = change.latest().filter(|_| affects_endpoints(change)) else { return };
            let services = services.upgrade().map(|view| view.in_namespace(&pod.namespace().unwrap_or_default()));
            let touched = |service: &Service| {
                [&change.old, &change.new].into_iter().flatten().any(|pod| desired_endpoints::selects(service, pod))
            };
            let services = services.into_iter().flatten().filter(|service| touched(service));
            services.for_each(|service| to.add(NamespacedKey::from_object(&*service)));
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        // The garbage collector removes the slices of a deleted Service.
        let Some(service) =
            self.context.informers.services.get(&key).filter(|service| desired_endpoints::is_managed(service))
        else {
            return Ok(None);
        };
        let pods = self.context.informers.pods.in_namespace(&key.namespace);
        let plan = plan::plan_slices(&service, desired_endpoints::endpoint_groups(&service, &pods), self.slices(&key));
        match self.execute(&key, plan).await {
            Err(error) if !error.is_conflict() && !error.is_not_found() => {
                self.record_failure(&service, &key, &error);
                Err(error)
            }
            outcome => outcome.map(|()| None),
        }
    }
}

impl EndpointSliceController {
    /// The Service's slices that this controller manages.
    fn slices(&self, key: &NamespacedKey) -> Vec<Arc<EndpointSlice>> {
        let mut slices = self.context.informers.endpoint_slices.in_namespace(&key.namespace);
        slices.retain(|slice| service_of(slice).as_ref() == Some(key));
        slices
    }

    /// Creations and updates come before deletions, so that no endpoint is missing in between.
    async fn execute(&self, key: &NamespacedKey, plan: EndpointSlicePlan) -> Result<()> {
        let ControllerContext { client, informers: views, .. } = &self.context;
        let view = &views.endpoint_slices;
        if !plan.create.is_empty() && !self.is_terminating(&key.namespace) {
            for slice in &plan.create {
                write_through::create(client, view, slice).await?;
            }
        }
        for slice in &plan.update {
            write_through::replace(client, view, slice).await?;
        }
        for slice in &plan.delete {
            write_through::delete(client, view, &**slice).await?;
        }
        Ok(())
    }

    /// Whether the namespace is being deleted.
    fn is_terminating(&self, namespace: &str) -> bool {
        let namespace: Option<Arc<Namespace>> =
            self.context.informers.namespaces.get(&NamespacedKey::new("", namespace));
        namespace.is_some_and(|namespace| namespace.meta().deletion_timestamp.is_some())
    }

    fn record_failure(&self, service: &Service, key: &NamespacedKey, error: &ClusterError) {
        let note = format!("Error updating Endpoint Slices for Service {key}: {error}");
        self.context.events.record_warning(service.object_ref(&()), "FailedToUpdateEndpointSlices", note);
    }
}

/// The Service of a slice that this controller manages.
fn service_of(slice: &EndpointSlice) -> Option<NamespacedKey> {
    let labels = slice.labels();
    let ours = labels.get(MANAGED_BY_LABEL).is_some_and(|manager| manager == MANAGED_BY_VALUE);
    let name = labels.get(SERVICE_NAME_LABEL).filter(|_| ours)?;
    Some(NamespacedKey::new(slice.namespace().unwrap_or_default(), name))
}

/// Whether a change of a pod affects its endpoint.
fn affects_endpoints(change: &InformerChange<Pod>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    endpoint_fields(old) != endpoint_fields(new) || old.labels() != new.labels()
}

fn endpoint_fields(pod: &Pod) -> impl PartialEq {
    let going = pod.meta().deletion_timestamp.is_some();
    (
        pod.uid(),
        desired_endpoints::address(pod).map(str::to_owned),
        pods::phase(pod).to_owned(),
        pods::is_ready(pod),
        going,
    )
}

#[cfg(test)]
mod tests;
