//! Rolling update: new pods up, old pods down, step by step within the limits.

use super::{
    limits::Limits,
    rollout::Rollout,
    status::{self, available},
};
use crate::{controller::replicaset::wanted, error::Result};

/// How large a ReplicaSet is asked to be, and how many of its pods are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub wanted: i64,
    pub available: i64,
}

impl Rollout<'_> {
    /// The next step.
    pub async fn roll(&mut self) -> Result<()> {
        self.create_new().await?;
        if self.grow().await? || self.shrink().await? {
            return Ok(());
        }
        self.clean_up_when_complete().await
    }

    /// Makes the new ReplicaSet as large as the limits allow.
    pub async fn grow(&mut self) -> Result<bool> {
        let Some(mut new) = self.new.take() else { return Ok(false) };
        let size = i64::from(wanted(&new));
        let others = self.total();
        let target = if size > self.limits.replicas {
            self.limits.replicas
        } else {
            grown(&self.limits, size, others.saturating_add(size))
        };
        let outcome = self.resize(&mut new, target, false).await;
        self.new = Some(new);
        outcome
    }

    /// How large a new ReplicaSet of this size may be now.
    pub fn size_of_new(&self, size: i64) -> i64 {
        if self.limits.is_rolling { grown(&self.limits, size, self.total()) } else { self.limits.replicas }
    }

    /// Gives up as many old pods as can be spared.
    async fn shrink(&mut self) -> Result<bool> {
        let size = |set: &_| Size { wanted: wanted(set).into(), available: available(set).into() };
        let Some(new) = self.new.as_deref().map(size) else { return Ok(false) };
        let old: Vec<Size> = self.old.iter().map(|set| size(set)).collect();
        let targets = shrunk(&self.limits, &old, new);
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

    /// Removes revisions that are too many, when nothing else is left to do.
    pub async fn clean_up_when_complete(&self) -> Result<()> {
        let held = self.deployment.status.as_ref();
        if held.is_some_and(|held| status::is_complete(self.deployment, held)) {
            self.clean_up().await?;
        }
        Ok(())
    }
}

/// The size of the new ReplicaSet, which is `size` now, with `total` pods in all ReplicaSets.
pub(super) fn grown(limits: &Limits, size: i64, total: i64) -> i64 {
    let room = limits.most().saturating_sub(total).max(0);
    size + room.min((limits.replicas - size).max(0))
}

/// The sizes of the old ReplicaSets, oldest first: those with pods that do not work give them up first, as that costs nothing;
/// then what is available beyond what must be.
///
/// Pods of a ReplicaSet beyond its size are about to go, and count for nothing.
pub(super) fn shrunk(limits: &Limits, old: &[Size], new: Size) -> Vec<i64> {
    let is_there = |size: Size| size.available.min(size.wanted);
    let mut sizes: Vec<i64> = old.iter().map(|size| size.wanted).collect();
    let total = sizes.iter().sum::<i64>() + new.wanted;
    // What the new ReplicaSet still owes must not be taken from the old ones.
    let mut spare = total - limits.fewest() - (new.wanted - is_there(new));
    if spare <= 0 {
        return sizes;
    }
    for (size, old) in sizes.iter_mut().zip(old) {
        let broken = (old.wanted - is_there(*old)).min(spare);
        (*size, spare) = (*size - broken, spare - broken);
    }
    let working = old.iter().map(|old| is_there(*old)).sum::<i64>() + is_there(new);
    let mut spare = (working - limits.fewest()).max(0);
    for size in &mut sizes {
        let given = (*size).min(spare);
        (*size, spare) = (*size - given, spare - given);
    }
    sizes
}

#[cfg(test)]
mod tests;
