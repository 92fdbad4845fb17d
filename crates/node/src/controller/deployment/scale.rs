//! A Deployment that was resized, or is paused: no rollout goes on, only sizes change.

use std::{cmp::Reverse, sync::Arc};

use k8s_openapi::api::apps::v1::ReplicaSet;

use super::{
    age,
    proportion::{self, Part},
    revision,
    rollout::Rollout,
    status::available,
};
use crate::{controller::replicaset::wanted, error::Result};

impl Rollout<'_> {
    /// Whether the Deployment has another size than when its ReplicaSets were last scaled. Several that may not be there together
    /// are not scaled: all but one go.
    pub fn is_resized(&self) -> bool {
        let active: Vec<_> = self.old.iter().chain(&self.new).filter(|set| wanted(set) > 0).collect();
        let is_other = |set: &ReplicaSet| revision::desired(set).is_some_and(|size| size != self.limits.replicas);
        (self.limits.is_rolling || active.len() <= 1) && active.into_iter().any(|set| is_other(set))
    }

    /// Gives the ReplicaSets the sizes that the Deployment's size asks for.
    pub async fn scale(&mut self) -> Result<()> {
        let (mut old, mut new) = (std::mem::take(&mut self.old), self.new.take());
        let outcome = self.scale_these(&mut old, &mut new).await;
        (self.old, self.new) = (old, new);
        outcome
    }

    async fn scale_these(&self, old: &mut [Arc<ReplicaSet>], new: &mut Option<Arc<ReplicaSet>>) -> Result<()> {
        let is_saturated = new.as_ref().is_some_and(|new| self.is_saturated(new));
        let mut all: Vec<&mut Arc<ReplicaSet>> = new.iter_mut().chain(old.iter_mut().rev()).collect();
        let active = all.iter().filter(|set| wanted(set) > 0).count();
        if active <= 1 {
            // The one that has pods, or the newest.
            all.sort_by_key(|set| wanted(set) == 0);
            if let Some(set) = all.into_iter().next() {
                self.resize(set, self.limits.replicas, true).await?;
            }
        } else if is_saturated {
            for set in old.iter_mut() {
                self.resize(set, 0, false).await?;
            }
        } else if self.limits.is_rolling {
            all.retain(|set| wanted(set) > 0);
            self.scale_in_proportion(all).await?;
        }
        Ok(())
    }

    async fn scale_in_proportion(&self, mut sets: Vec<&mut Arc<ReplicaSet>>) -> Result<()> {
        let total: i64 = sets.iter().map(|set| i64::from(wanted(set))).sum();
        // Of two of the same size the newer one is first to grow, the older one to shrink.
        sets.sort_by_cached_key(|set| age(set));
        if total < self.limits.most() && self.limits.replicas > 0 {
            sets.reverse();
        }
        sets.sort_by_key(|set| Reverse(wanted(set)));
        let parts: Vec<_> =
            sets.iter().map(|set| Part { size: wanted(set).into(), most: revision::most(set) }).collect();
        let actual = self.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
        for (set, size) in sets.into_iter().zip(proportion::sizes(&self.limits, &parts, actual.into())) {
            self.resize(set, size, true).await?;
        }
        Ok(())
    }

    /// Whether the new ReplicaSet has all the pods that the Deployment asks for.
    fn is_saturated(&self, new: &ReplicaSet) -> bool {
        i64::from(wanted(new)) == self.limits.replicas
            && revision::desired(new) == Some(self.limits.replicas)
            && i64::from(available(new)) == self.limits.replicas
    }
}
