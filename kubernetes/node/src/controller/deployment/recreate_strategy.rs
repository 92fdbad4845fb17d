//! The strategy `Recreate`: all old pods are removed before the first new one is created.

use kube::ResourceExt;

use super::{status::actual_replicas, sync::DeploymentSync};
use crate::{
    controller::{owner_reference, pods},
    error::Result,
};

impl DeploymentSync<'_> {
    pub async fn sync_recreate(&mut self) -> Result<()> {
        if self.scale_old_to_zero().await? || self.has_old_pods() {
            return Ok(());
        }
        self.ensure_new_replica_set().await?;
        if let Some(mut new) = self.new.take() {
            let outcome = self.resize(&mut new, self.limits.replicas, false).await;
            self.new = Some(new);
            outcome?;
        }
        self.clean_up_when_complete().await
    }

    async fn scale_old_to_zero(&mut self) -> Result<bool> {
        let mut any = false;
        let mut sets = std::mem::take(&mut self.old);
        let mut outcome = Ok(());
        for set in &mut sets {
            match self.resize(set, 0, false).await {
                Ok(changed) => any |= changed,
                Err(error) => outcome = Err(error),
            }
        }
        self.old = sets;
        outcome.map(|()| any)
    }

    /// Whether old pods exist, including terminating ones.
    fn has_old_pods(&self) -> bool {
        if self.old.iter().any(|set| actual_replicas(set) > 0) {
            return true;
        }
        let pods = self.context.informers.pods.in_namespace(&self.deployment.namespace().unwrap_or_default());
        let running = pods.iter().filter(|pod| !matches!(pods::phase(pod), "Succeeded" | "Failed"));
        running.into_iter().any(|pod| self.old.iter().any(|set| owner_reference::is_controlled_by(&**pod, &**set)))
    }
}
