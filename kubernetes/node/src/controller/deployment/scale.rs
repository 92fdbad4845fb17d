//! A Deployment that was resized or is paused: the rollout does not proceed, only sizes change.

use std::{cmp::Reverse, sync::Arc};

use k8s_openapi::api::apps::v1::ReplicaSet;

use super::{
    creation_order,
    proportional_scaling::{self, ReplicaSetShare},
    revision,
    status::available_replicas,
    sync::DeploymentSync,
};
use crate::{controller::replicaset::desired_replicas, error::Result};

impl DeploymentSync<'_> {
    /// Whether the size of the Deployment differs from that of the last scaling. Several active ReplicaSets
    /// that may not coexist are not scaled, since all but one are removed.
    pub fn is_resized(&self) -> bool {
        let active: Vec<_> = self.old.iter().chain(&self.new).filter(|set| desired_replicas(set) > 0).collect();
        let is_other =
            |set: &ReplicaSet| revision::desired_replicas(set).is_some_and(|size| size != self.limits.replicas);
        (self.limits.is_rolling || active.len() <= 1) && active.into_iter().any(|set| is_other(set))
    }

    /// Scales the ReplicaSets to the Deployment's size.
    pub async fn scale(&mut self) -> Result<()> {
        let mut old = std::mem::take(&mut self.old);
        let mut new = self.new.take();
        let outcome = self.scale_replica_sets(&mut old, &mut new).await;
        (self.old, self.new) = (old, new);
        outcome
    }

    async fn scale_replica_sets(&self, old: &mut [Arc<ReplicaSet>], new: &mut Option<Arc<ReplicaSet>>) -> Result<()> {
        let is_saturated = new.as_ref().is_some_and(|new| self.is_saturated(new));
        let mut all: Vec<&mut Arc<ReplicaSet>> = new.iter_mut().chain(old.iter_mut().rev()).collect();
        let active = all.iter().filter(|set| desired_replicas(set) > 0).count();
        if active <= 1 {
            // The set with pods, or the newest.
            all.sort_by_key(|set| desired_replicas(set) == 0);
            if let Some(set) = all.into_iter().next() {
                self.resize(set, self.limits.replicas, true).await?;
            }
        } else if is_saturated {
            for set in old.iter_mut() {
                self.resize(set, 0, false).await?;
            }
        } else if self.limits.is_rolling {
            all.retain(|set| desired_replicas(set) > 0);
            self.scale_in_proportion(all).await?;
        }
        Ok(())
    }

    async fn scale_in_proportion(&self, mut sets: Vec<&mut Arc<ReplicaSet>>) -> Result<()> {
        let total: i64 = sets.iter().map(|set| i64::from(desired_replicas(set))).sum();
        // Of two sets of the same size the newer one grows first, and the older one shrinks first.
        sets.sort_by_cached_key(|set| creation_order(set));
        if total < self.limits.max_total() && self.limits.replicas > 0 {
            sets.reverse();
        }
        sets.sort_by_key(|set| Reverse(desired_replicas(set)));
        let parts: Vec<_> = sets
            .iter()
            .map(|set| ReplicaSetShare {
                size: desired_replicas(set).into(),
                max_replicas: revision::max_replicas(set),
            })
            .collect();
        let actual = self.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
        for (set, size) in
            sets.into_iter().zip(proportional_scaling::proportional_sizes(&self.limits, &parts, actual.into()))
        {
            self.resize(set, size, true).await?;
        }
        Ok(())
    }

    /// Whether the new ReplicaSet has all pods of the Deployment.
    fn is_saturated(&self, new: &ReplicaSet) -> bool {
        i64::from(desired_replicas(new)) == self.limits.replicas
            && revision::desired_replicas(new) == Some(self.limits.replicas)
            && i64::from(available_replicas(new)) == self.limits.replicas
    }
}
