//! What all containers of a pod stand on: its volumes and its address.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use super::{Worker, orders::Orders};
use crate::{
    addresses::PodAddress,
    kubelet::{
        sources::{Changes, Ref},
        volumes::{Request, Volumes},
    },
};

/// The first pause before a volume is tried again, and the longest: the kubelet's numbers. What it lacks may come earlier.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(122));
/// When all addresses are taken, somebody has to go first.
const NO_ADDRESS: Duration = Duration::from_secs(1);

/// How often volumes are looked at, and how long containers of a pod whose volume is too large have to end: the kubelet's numbers.
const LOOK: Duration = Duration::from_secs(10);
const EVICTION: Duration = Duration::from_secs(1);

/// Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) volumes: Volumes,
    _address: Option<PodAddress>,
}

impl Worker {
    /// Ends the pod when a volume holds more than it may. Otherwise it looks for ever.
    pub(super) async fn watch_volumes(&self, ground: &Arc<Ground>) {
        while ground.volumes.is_limited() {
            tokio::time::sleep(LOOK).await;
            let looked = Arc::clone(ground);
            // Files are read, and there may be many.
            let exceeded = tokio::task::spawn_blocking(move || looked.volumes.exceeded()).await;
            if let Ok(Some(message)) = exceeded {
                self.judge("Evicted", &message, Some(EVICTION));
                break;
            }
        }
        std::future::pending().await
    }

    /// What all containers need. None if the pod stops first.
    pub(super) async fn prepare(&self, orders: &mut Orders) -> Option<Arc<Ground>> {
        let volumes = self.volumes(orders).await?;
        let on_host = self.pod().spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let address = if on_host { None } else { Some(self.address(orders).await?) };
        let ip = address.as_ref().map_or(self.node.options.range.address(), PodAddress::ip);
        self.board.change(|facts| {
            facts.ip = Some(ip.to_string());
            facts.prepared = true;
        });
        Some(Arc::new(Ground { volumes, _address: address }))
    }

    async fn volumes(&self, orders: &mut Orders) -> Option<Volumes> {
        let mut pause = PAUSES.0;
        loop {
            let changes = self.node.sources.changes();
            let pod = self.pod();
            let request = Request { pod: &pod, dir: &self.dir, node: &self.node.facts, sources: &self.node.sources };
            let prepared = match tokio::fs::create_dir_all(&self.dir).await {
                Ok(()) => Volumes::prepare(request).await.map_err(|error| (error.to_string(), error.needs().cloned())),
                Err(error) => Err((format!("the pod's directory cannot be made: {error}"), None)),
            };
            let (why, needs) = match prepared {
                Ok(volumes) => return Some(volumes),
                Err(why) => why,
            };
            self.node.events.warning(self.reference.clone(), "FailedMount", why);
            changed(changes, needs, pause, orders).await?;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn address(&self, orders: &mut Orders) -> Option<PodAddress> {
        loop {
            if let Some(address) = self.node.options.range.take() {
                return Some(address);
            }
            let note = "Failed to create pod sandbox: all addresses of this node are taken";
            self.node.events.warning(self.reference.clone(), "FailedCreatePodSandBox", note);
            orders.pause(NO_ADDRESS).await?;
        }
    }
}

/// Waits until what was missing has changed, or for a while. None if the pod stops meanwhile.
pub(super) async fn changed(
    mut changes: Changes,
    needs: Option<Ref>,
    pause: Duration,
    orders: &mut Orders,
) -> Option<()> {
    let needs = BTreeSet::from_iter(needs);
    tokio::select! {
        () = changes.any_of(&needs) => Some(()),
        waited = orders.pause(pause) => waited,
    }
}
