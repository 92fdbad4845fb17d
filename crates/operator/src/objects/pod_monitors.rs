//! Watches PodMonitors while the cluster has them: the Prometheus Operator may be installed and removed at any
//! time.
//!
//! *Guaranteed*: nothing waits for it. A kind that exists but cannot be listed, for example without the right
//! to, counts as absent.

use std::time::Duration;

use kube::{Client, api::GroupVersionKind, discovery};
use tokio::time::sleep;

use crate::{context::OperatorState, model::object_kind::ObjectKind};

/// The interval of checks whether the kind exists. Nothing waits for it.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

pub async fn follow_pod_monitors(world: &OperatorState) {
    let OperatorState { object_cache: live, client, options, metrics, .. } = world;
    loop {
        wait_until_served(world, true).await;
        tracing::info!("the cluster serves PodMonitors");
        tokio::select! {
            () = live.watch_kinds([ObjectKind::PodMonitor], client, &options.namespace, metrics) => {}
            () = wait_until_served(world, false) => {}
        }
        live.drop_kind(ObjectKind::PodMonitor);
        tracing::info!("the cluster no longer serves PodMonitors");
    }
}

/// Waits until the kind is served, or is not.
async fn wait_until_served(world: &OperatorState, wanted: bool) {
    while is_served(&world.client).await != Some(wanted) {
        sleep(POLL_INTERVAL.min(world.options.resync)).await;
    }
}

/// Whether the kind is served, if the API server says.
async fn is_served(client: &Client) -> Option<bool> {
    let resource = ObjectKind::PodMonitor.api_resource();
    let kind = GroupVersionKind::gvk(&resource.group, &resource.version, &resource.kind);
    match discovery::pinned_kind(client, &kind).await {
        Ok(_) => Some(true),
        Err(kube::Error::Discovery(_)) => Some(false),
        Err(kube::Error::Api(status)) if status.code == 404 => Some(false),
        Err(_) => None,
    }
}
