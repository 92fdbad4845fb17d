//! EndpointSlices: where a Service's pods are, and which of them take requests.
//!
//! *Guarantees.* Every Service with a selector has at least one slice, and every pod that it selects, has an address and has not
//! ended is in exactly one, with conditions as kube-controller-manager sets them. An endpoint stays in its slice, and nothing is
//! written that did not change. *Not done*: `Endpoints`, which nobody should read since 1.33; zones and hints, as the
//! cluster is one machine; IPv6.

mod plan;
mod wanted;

use std::sync::Arc;

use k8s_openapi::api::{
    core::v1::{Namespace, Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Resource, ResourceExt};

use self::plan::Plan;
use super::{Context, Controller, pods, write};
use crate::{
    error::{Error, Result},
    key::Key,
    queue::{Again, Queue},
    view::Change,
};

/// The label that names a slice's Service.
pub const SERVICE: &str = "kubernetes.io/service-name";

/// The label that says who looks after a slice.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// Who we are in that label.
const US: &str = "endpointslice-controller.k8s.io";

/// The controller of EndpointSlices.
#[derive(Debug)]
pub struct Endpoints {
    context: Context,
}

impl Controller for Endpoints {
    const NAME: &'static str = "endpoint-slice-controller";

    fn new(context: Context) -> Self {
        Self { context }
    }

    fn listen(&self, queue: &Queue<Key>) {
        let views = &self.context.views;
        let to = queue.clone();
        views.services.on_change(move |change| {
            change.new.iter().for_each(|service| to.add(Key::of(&**service)));
        });
        let to = queue.clone();
        views.endpoint_slices.on_change(move |change| {
            change.latest().into_iter().filter_map(|slice| service_of(slice)).for_each(|key| to.add(key));
        });
        let (to, services) = (queue.clone(), Arc::downgrade(&views.services));
        views.pods.on_change(move |change| {
            let Some(pod) = change.latest().filter(|_| matters(change)) else { return };
            let services = services.upgrade().map(|view| view.within(&pod.namespace().unwrap_or_default()));
            let touched = |service: &Service| {
                [&change.old, &change.new].into_iter().flatten().any(|pod| wanted::selects(service, pod))
            };
            let services = services.into_iter().flatten().filter(|service| touched(service));
            services.for_each(|service| to.add(Key::of(&*service)));
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        // What a Service that is gone left behind is garbage, which the API server collects.
        let Some(service) = self.context.views.services.get(&key).filter(|service| wanted::is_ours(service)) else {
            return Ok(None);
        };
        let pods = self.context.views.pods.within(&key.namespace);
        let plan = plan::plan(&service, wanted::groups(&service, &pods), self.slices(&key));
        match self.carry_out(&key, plan).await {
            Err(error) if !error.is_conflict() && !error.is_not_found() => {
                self.complain(&service, &key, &error);
                Err(error)
            }
            outcome => outcome.map(|()| None),
        }
    }
}

impl Endpoints {
    /// The Service's slices that are ours.
    fn slices(&self, key: &Key) -> Vec<Arc<EndpointSlice>> {
        let mut slices = self.context.views.endpoint_slices.within(&key.namespace);
        slices.retain(|slice| service_of(slice).as_ref() == Some(key));
        slices
    }

    /// What is new is written before what is old goes, so that an endpoint is never nowhere.
    async fn carry_out(&self, key: &Key, plan: Plan) -> Result<()> {
        let Context { client, views, .. } = &self.context;
        let view = &views.endpoint_slices;
        if !plan.create.is_empty() && !self.is_terminating(&key.namespace) {
            for slice in &plan.create {
                write::create(client, view, slice).await?;
            }
        }
        for slice in &plan.update {
            write::replace(client, view, slice).await?;
        }
        for slice in &plan.delete {
            write::delete(client, view, &**slice).await?;
        }
        Ok(())
    }

    /// Whether nothing can be created there any more.
    fn is_terminating(&self, namespace: &str) -> bool {
        let namespace: Option<Arc<Namespace>> = self.context.views.namespaces.get(&Key::new("", namespace));
        namespace.is_some_and(|namespace| namespace.meta().deletion_timestamp.is_some())
    }

    fn complain(&self, service: &Service, key: &Key, error: &Error) {
        let note = format!("Error updating Endpoint Slices for Service {key}: {error}");
        self.context.events.warning(service.object_ref(&()), "FailedToUpdateEndpointSlices", note);
    }
}

/// The Service of a slice that is ours.
fn service_of(slice: &EndpointSlice) -> Option<Key> {
    let labels = slice.labels();
    let ours = labels.get(MANAGED_BY).is_some_and(|manager| manager == US);
    let name = labels.get(SERVICE).filter(|_| ours)?;
    Some(Key::new(slice.namespace().unwrap_or_default(), name))
}

/// Whether a change of a pod is one of what slices say.
fn matters(change: &Change<Pod>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    seen(old) != seen(new) || old.labels() != new.labels()
}

fn seen(pod: &Pod) -> impl PartialEq {
    let going = pod.meta().deletion_timestamp.is_some();
    (pod.uid(), wanted::address(pod).map(str::to_owned), pods::phase(pod).to_owned(), pods::is_ready(pod), going)
}

#[cfg(test)]
mod tests;
