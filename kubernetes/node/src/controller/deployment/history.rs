//! The history limit: old revisions that are kept for `kubectl rollout undo`.

use super::{revision, status::actual_replicas, sync::DeploymentSync};
use crate::{
    controller::{replicaset::desired_replicas, write_through},
    error::Result,
};

impl DeploymentSync<'_> {
    /// Deletes the oldest revisions beyond the limit, except those with pods.
    pub async fn clean_up(&self) -> Result<()> {
        let limit = self.deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        let Some(limit) = limit.filter(|limit| *limit != i32::MAX) else { return Ok(()) };
        let limit = usize::try_from(limit).unwrap_or(0);
        let mut sets: Vec<_> = self.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        // A stable sort: sets of the same revision stay ordered by age.
        sets.sort_by_key(|set| revision::revision_number(set));
        let spare = sets.len().saturating_sub(limit);
        for set in sets.into_iter().take(spare) {
            let observed = set.status.as_ref().and_then(|status| status.observed_generation);
            if desired_replicas(set) == 0 && actual_replicas(set) == 0 && observed >= set.metadata.generation {
                write_through::delete(&self.context.client, &self.context.informers.replica_sets, &**set).await?;
            }
        }
        Ok(())
    }
}
