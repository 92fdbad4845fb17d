//! Watches PodMonitors while the cluster has them: the Prometheus Operator may be installed and removed at any
//! time.
//!
//! *Guaranteed*: nothing waits for it. A kind that exists but cannot be listed, for example without the right
//! to, counts as absent.

use std::time::Duration;

use kube::{Client, api::GroupVersionKind, discovery};
use tokio::time::sleep;

use super::object_cache::ObjectCacheWriter;
use crate::{model::object_kind::ObjectKind, runtime::metrics::OperatorMetrics};

/// The interval of checks whether the kind exists. Nothing waits for it.
const POLL_INTERVAL: Duration = Duration::from_secs(30);

/// Feeds the cache with the PodMonitors while the cluster has them. Whether it has them is checked at least once
/// per `resync`. Runs for ever.
pub async fn follow_pod_monitors(
    cache: &ObjectCacheWriter,
    client: &Client,
    namespace: &str,
    metrics: &OperatorMetrics,
    resync: Duration,
) {
    let interval = POLL_INTERVAL.min(resync);
    loop {
        wait_until_served(client, true, interval).await;
        tracing::info!("the cluster serves PodMonitors");
        tokio::select! {
            () = cache.watch_kinds([ObjectKind::PodMonitor], client, namespace, metrics) => {}
            () = wait_until_served(client, false, interval) => {}
        }
        cache.drop_kind(ObjectKind::PodMonitor);
        tracing::info!("the cluster no longer serves PodMonitors");
    }
}

/// Waits until the kind is served, or is not.
async fn wait_until_served(client: &Client, wanted: bool, interval: Duration) {
    while is_served(client).await != Some(wanted) {
        sleep(interval).await;
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
