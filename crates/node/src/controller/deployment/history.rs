//! Old revisions are kept for `kubectl rollout undo`, up to a number.

use super::{revision, rollout::Rollout, status::actual};
use crate::{
    controller::{replicaset::wanted, write},
    error::Result,
};

impl Rollout<'_> {
    /// Deletes the oldest revisions beyond the limit, except those that have pods.
    pub async fn clean_up(&self) -> Result<()> {
        let limit = self.deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        let Some(limit) = limit.filter(|limit| *limit != i32::MAX) else { return Ok(()) };
        let limit = usize::try_from(limit).unwrap_or(0);
        let mut sets: Vec<_> = self.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        // Those of the same revision stay in the order of their age.
        sets.sort_by_key(|set| revision::of(set));
        let spare = sets.len().saturating_sub(limit);
        for set in sets.into_iter().take(spare) {
            let observed = set.status.as_ref().and_then(|status| status.observed_generation);
            if wanted(set) == 0 && actual(set) == 0 && observed >= set.metadata.generation {
                write::delete(&self.context.client, &self.context.views.replica_sets, &**set).await?;
            }
        }
        Ok(())
    }
}
