//! Follows PodMonitors while the cluster has them: Prometheus' operator comes and goes.
//!
//! *Guaranteed*: nothing waits for it. A kind that is there and cannot be listed, such as for want of rights, is as good as none.

use std::time::Duration;

use kube::{Client, api::GroupVersionKind, discovery};
use tokio::time::sleep;

use crate::{context::World, kind::Kind};

/// How often it is asked whether they have come or gone; nobody waits for it.
const GLANCE: Duration = Duration::from_secs(30);

/// Follows them, for ever.
pub async fn follow(world: &World) {
    let World { live, client, options, metrics, .. } = world;
    loop {
        until(world, true).await;
        tracing::info!("the cluster has PodMonitors");
        tokio::select! {
            () = live.follow([Kind::PodMonitor], client, &options.namespace, metrics) => {}
            () = until(world, false) => {}
        }
        live.close(Kind::PodMonitor);
        tracing::info!("the cluster has no PodMonitors any more");
    }
}

/// Waits until there are some, or none.
async fn until(world: &World, wanted: bool) {
    while find(&world.client).await != Some(wanted) {
        sleep(GLANCE.min(world.options.resync)).await;
    }
}

/// Whether the cluster has them, if it says.
async fn find(client: &Client) -> Option<bool> {
    let resource = Kind::PodMonitor.resource();
    let kind = GroupVersionKind::gvk(&resource.group, &resource.version, &resource.kind);
    match discovery::pinned_kind(client, &kind).await {
        Ok(_) => Some(true),
        Err(kube::Error::Discovery(_)) => Some(false),
        Err(kube::Error::Api(status)) if status.code == 404 => Some(false),
        Err(_) => None,
    }
}
