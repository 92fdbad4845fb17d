//! Recreate: all old pods go before the first new one comes.

use kube::ResourceExt;

use super::{rollout::Rollout, status::actual};
use crate::{
    controller::{owner, pods},
    error::Result,
};

impl Rollout<'_> {
    /// The next step.
    pub async fn recreate(&mut self) -> Result<()> {
        if self.stop_old().await? || self.old_pods_run() {
            return Ok(());
        }
        self.create_new().await?;
        if let Some(mut new) = self.new.take() {
            let outcome = self.resize(&mut new, self.limits.replicas, false).await;
            self.new = Some(new);
            outcome?;
        }
        self.clean_up_when_complete().await
    }

    async fn stop_old(&mut self) -> Result<bool> {
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

    /// Also those that are on their way out.
    fn old_pods_run(&self) -> bool {
        if self.old.iter().any(|set| actual(set) > 0) {
            return true;
        }
        let pods = self.context.views.pods.within(&self.deployment.namespace().unwrap_or_default());
        let running = pods.iter().filter(|pod| !matches!(pods::phase(pod), "Succeeded" | "Failed"));
        running.into_iter().any(|pod| self.old.iter().any(|set| owner::is_controlled_by(&**pod, &**set)))
    }
}
