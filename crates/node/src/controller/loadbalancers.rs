//! Services of type LoadBalancer: what a cloud's service controller does.
//!
//! Whatever runs on this machine reaches the address of a Service, so that this address is the load balancer. Services with a
//! `loadBalancerClass` are somebody else's, and so are their statuses.

use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service, ServiceStatus};
use kube::Resource;

use super::{Context, Controller, status::Update};
use crate::{
    error::Result,
    key::Key,
    queue::{Again, Queue},
};

/// The controller of load balancers.
#[derive(Debug)]
pub struct LoadBalancers {
    context: Context,
}

impl Controller for LoadBalancers {
    const NAME: &'static str = "service-controller";

    fn new(context: Context) -> Self {
        Self { context }
    }

    fn listen(&self, queue: &Queue<Key>) {
        let to = queue.clone();
        self.context.views.services.on_change(move |change| {
            change
                .new
                .iter()
                .filter(|service| ingress(service).is_some())
                .for_each(|service| to.add(Key::of(&**service)));
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        let Context { client, views, events } = &self.context;
        let Some(service) = views.services.get(&key) else { return Ok(None) };
        let Some(ingress) = ingress(&service) else { return Ok(None) };
        let held = service.status.clone().unwrap_or_default();
        let balancer = LoadBalancerStatus { ingress: Some(vec![ingress]) };
        let wanted = ServiceStatus { load_balancer: Some(balancer), ..held };
        let update = Update::between(service.status.as_ref(), &wanted);
        if !update.is_empty() {
            update.write(client, &views.services, &*service).await?;
            events.normal(service.object_ref(&()), "EnsuredLoadBalancer", "Ensured load balancer");
        }
        Ok(None)
    }
}

/// Where a Service that wants a load balancer of us is reached.
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
