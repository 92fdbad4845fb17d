//! The sandbox of a pod: its volumes and its address.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::{PodWorker, stop_signal::StopSignal};
use crate::{
    addresses::PodAddress,
    kubelet::{
        sources::{SourceChanges, SourceRef},
        volumes::{PodVolumes, VolumeRequest},
    },
};

/// The first and the longest delay before volumes are retried: the kubelet's values. A change of a missing
/// object triggers an earlier retry.
const VOLUME_RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(122));
/// The retry delay while all addresses are in use.
const ADDRESS_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The interval of size checks for volumes, and the grace period after an eviction: the kubelet's values.
const VOLUME_CHECK_INTERVAL: Duration = Duration::from_secs(10);
const EVICTION_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// The address is released on drop.
#[derive(Debug)]
pub(super) struct PodSandbox {
    pub(super) volumes: PodVolumes,
    _address: Option<PodAddress>,
}

impl PodWorker {
    /// Fails the pod when a volume exceeds its size limit. Otherwise it never returns.
    pub(super) async fn watch_volumes(&self, ground: &Arc<PodSandbox>) {
        while ground.volumes.is_limited() {
            tokio::time::sleep(VOLUME_CHECK_INTERVAL).await;
            let looked = Arc::clone(ground);
            // Blocking: it reads many files.
            let exceeded = tokio::task::spawn_blocking(move || looked.volumes.exceeded_size_limit()).await;
            if let Ok(Some(message)) = exceeded {
                self.fail_pod("Evicted", &message, Some(EVICTION_GRACE_PERIOD));
                break;
            }
        }
        std::future::pending().await
    }

    /// Prepares volumes and address. None if the pod stops first.
    pub(super) async fn prepare_sandbox(&self, orders: &mut StopSignal) -> Option<Arc<PodSandbox>> {
        let volumes = self.prepare_volumes(orders).await?;
        let on_host = self.current_pod().spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let address = if on_host { None } else { Some(self.allocate_address(orders).await?) };
        let ip = address.as_ref().map_or(self.node.options.range.address(), PodAddress::ip);
        self.status.update(|facts| {
            facts.ip = Some(ip.to_string());
            facts.prepared = true;
        });
        Some(Arc::new(PodSandbox { volumes, _address: address }))
    }

    async fn prepare_volumes(&self, orders: &mut StopSignal) -> Option<PodVolumes> {
        let mut pause = VOLUME_RETRY_DELAYS.0;
        loop {
            let changes = self.node.sources.subscribe();
            let pod = self.current_pod();
            let request =
                VolumeRequest { pod: &pod, dir: &self.dir, node: &self.node.facts, sources: &self.node.sources };
            let prepared = match tokio::fs::create_dir_all(&self.dir).await {
                Ok(()) => PodVolumes::prepare(request)
                    .await
                    .map_err(|error| (error.to_string(), error.missing_source().cloned())),
                Err(error) => Err((format!("failed to create the directory of the pod: {error}"), None)),
            };
            let (why, needs) = match prepared {
                Ok(volumes) => return Some(volumes),
                Err(why) => why,
            };
            self.node.events.record_warning(self.reference.clone(), "FailedMount", why);
            wait_for_change(changes, needs, pause, orders).await?;
            pause = (pause * 2).min(VOLUME_RETRY_DELAYS.1);
        }
    }

    async fn allocate_address(&self, orders: &mut StopSignal) -> Option<PodAddress> {
        loop {
            if let Some(address) = self.node.options.range.allocate() {
                return Some(address);
            }
            let note = "Failed to create pod sandbox: all addresses of this node are taken";
            self.node.events.record_warning(self.reference.clone(), "FailedCreatePodSandBox", note);
            orders.sleep_unless_stopped(ADDRESS_RETRY_DELAY).await?;
        }
    }
}

/// Waits for a change of the missing object, or for the delay. None if the pod stops meanwhile.
pub(super) async fn wait_for_change(
    mut changes: SourceChanges,
    needs: Option<SourceRef>,
    pause: Duration,
    orders: &mut StopSignal,
) -> Option<()> {
    let needs = BTreeSet::from_iter(needs);
    tokio::select! {
        () = changes.wait_for_any(&needs) => Some(()),
        waited = orders.sleep_unless_stopped(pause) => waited,
    }
}
