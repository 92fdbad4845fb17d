//! Services of type LoadBalancer, as a cloud's service controller handles them.
//!
//! The address of a Service is reachable from this whole machine, so it is also the address of the load
//! balancer. Services with a `loadBalancerClass` belong to other controllers.

use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service, ServiceStatus};
use kube::Resource;

use super::{ControllerContext, ResourceController, status::StatusPatch};
use crate::{
    error::Result,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

#[derive(Debug)]
pub struct LoadBalancerController {
    context: ControllerContext,
}

impl ResourceController for LoadBalancerController {
    const NAME: &'static str = "service-controller";

    fn new(context: ControllerContext) -> Self {
        Self { context }
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let to = queue.clone();
        self.context.informers.services.on_change(move |change| {
            change
                .new
                .iter()
                .filter(|service| ingress(service).is_some())
                .for_each(|service| to.add(NamespacedKey::from_object(&**service)));
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let ControllerContext { client, informers: views, events } = &self.context;
        let Some(service) = views.services.get(&key) else { return Ok(None) };
        let Some(ingress) = ingress(&service) else { return Ok(None) };
        let held = service.status.clone().unwrap_or_default();
        let balancer = LoadBalancerStatus { ingress: Some(vec![ingress]) };
        let wanted = ServiceStatus { load_balancer: Some(balancer), ..held };
        let update = StatusPatch::between(service.status.as_ref(), &wanted);
        if !update.is_empty() {
            update.write(client, &views.services, &*service).await?;
            events.record_normal(service.object_ref(&()), "EnsuredLoadBalancer", "Ensured load balancer");
        }
        Ok(None)
    }
}

/// The load balancer address of a Service that this controller handles.
fn ingress(service: &Service) -> Option<LoadBalancerIngress> {
    let spec = service.spec.as_ref()?;
    if spec.type_.as_deref() != Some("LoadBalancer") || spec.load_balancer_class.is_some() {
        return None;
    }
    let ip = spec.cluster_ip.clone().filter(|ip| !matches!(ip.as_str(), "" | "None"))?;
    Some(LoadBalancerIngress { ip: Some(ip), ip_mode: Some("VIP".to_owned()), ..LoadBalancerIngress::default() })
}

#[cfg(test)]
mod tests;
