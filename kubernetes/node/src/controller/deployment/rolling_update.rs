//! The strategy `RollingUpdate`: scales new pods up and old pods down, step by step within the limits.

use super::{
    limits::RolloutLimits,
    status::{self, available_replicas},
    sync::DeploymentSync,
};
use crate::{controller::replicaset::desired_replicas, error::Result};

/// The desired size of a ReplicaSet, and the number of its available pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplicaSetSize {
    pub desired: i64,
    pub available: i64,
}

impl DeploymentSync<'_> {
    pub async fn sync_rolling_update(&mut self) -> Result<()> {
        self.ensure_new_replica_set().await?;
        if self.scale_up_new().await? || self.scale_down_old().await? {
            return Ok(());
        }
        self.clean_up_when_complete().await
    }

    /// Scales the new ReplicaSet up to the limits.
    pub async fn scale_up_new(&mut self) -> Result<bool> {
        let Some(mut new) = self.new.take() else { return Ok(false) };
        let size = i64::from(desired_replicas(&new));
        let others = self.total_replicas();
        let target = if size > self.limits.replicas {
            self.limits.replicas
        } else {
            scaled_up_size(&self.limits, size, others.saturating_add(size))
        };
        let outcome = self.resize(&mut new, target, false).await;
        self.new = Some(new);
        outcome
    }

    /// The allowed size of a new ReplicaSet that has this size.
    pub fn new_replica_set_size(&self, size: i64) -> i64 {
        if self.limits.is_rolling {
            scaled_up_size(&self.limits, size, self.total_replicas())
        } else {
            self.limits.replicas
        }
    }

    /// Scales old ReplicaSets down as far as the limits allow.
    async fn scale_down_old(&mut self) -> Result<bool> {
        let size = |set: &_| ReplicaSetSize {
            desired: desired_replicas(set).into(),
            available: available_replicas(set).into(),
        };
        let Some(new) = self.new.as_deref().map(size) else { return Ok(false) };
        let old: Vec<ReplicaSetSize> = self.old.iter().map(|set| size(set)).collect();
        let targets = scaled_down_sizes(&self.limits, &old, new);
        let mut any = false;
        let mut sets = std::mem::take(&mut self.old);
        let mut outcome = Ok(());
        for (set, target) in sets.iter_mut().zip(targets) {
            match self.resize(set, target, false).await {
                Ok(changed) => any |= changed,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.old = sets;
        outcome.map(|()| any)
    }

    /// Applies the history limit once the rollout is complete.
    pub async fn clean_up_when_complete(&self) -> Result<()> {
        let held = self.deployment.status.as_ref();
        if held.is_some_and(|held| status::is_complete(self.deployment, held)) {
            self.clean_up().await?;
        }
        Ok(())
    }
}

/// The size of the new ReplicaSet, which is `size` now, with `total` pods in all ReplicaSets.
pub(super) fn scaled_up_size(limits: &RolloutLimits, size: i64, total: i64) -> i64 {
    let room = limits.max_total().saturating_sub(total).max(0);
    size + room.min((limits.replicas - size).max(0))
}

/// The sizes of the old ReplicaSets, oldest first. Unavailable pods are removed first, which costs nothing;
/// then available ones beyond the required number.
///
/// Pods of a ReplicaSet beyond its size are about to be deleted and are not counted.
pub(super) fn scaled_down_sizes(limits: &RolloutLimits, old: &[ReplicaSetSize], new: ReplicaSetSize) -> Vec<i64> {
    let is_there = |size: ReplicaSetSize| size.available.min(size.desired);
    let mut sizes: Vec<i64> = old.iter().map(|size| size.desired).collect();
    let total = sizes.iter().sum::<i64>() + new.desired;
    // Pods that the new ReplicaSet has yet to create must not be taken from the old ones.
    let mut spare = total - limits.min_available() - (new.desired - is_there(new));
    if spare <= 0 {
        return sizes;
    }
    for (size, old) in sizes.iter_mut().zip(old) {
        let broken = (old.desired - is_there(*old)).min(spare);
        (*size, spare) = (*size - broken, spare - broken);
    }
    let working = old.iter().map(|old| is_there(*old)).sum::<i64>() + is_there(new);
    let mut spare = (working - limits.min_available()).max(0);
    for size in &mut sizes {
        let given = (*size).min(spare);
        (*size, spare) = (*size - given, spare - given);
    }
    sizes
}

#[cfg(test)]
mod tests;
