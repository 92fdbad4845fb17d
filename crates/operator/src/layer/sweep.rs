//! Deletes objects that the layer no longer needs, in the order of the data flow.

use std::collections::BTreeSet;

use kubewake_api::CollectorConfigs;

use super::{CollectorReconciler, error::LayerError, orphans};
use crate::{
    feedback::delivery_health::DocumentAgreement,
    model::{
        names::{self, CollectorTier, ManagedPart},
        object_kind::ObjectKind,
    },
    pipeline::cluster_view::ClusterView,
};

impl CollectorReconciler {
    /// Removes objects that the documents no longer need. Collectors that have read only an earlier document
    /// still need its objects: rights, and the sticky tier.
    pub(super) async fn sweep_unneeded(
        &self,
        layer: &CollectorConfigs,
        wanted: &BTreeSet<(ObjectKind, String)>,
        given_up: bool,
    ) -> Result<(), LayerError> {
        let Some(document) = &layer.gateway else {
            return self.sweep_in_order(wanted).await;
        };
        match self.agreement(CollectorTier::Gateway, document) {
            DocumentAgreement::All => self.sweep(wanted).await,
            DocumentAgreement::Unknown if given_up => self.sweep(wanted).await,
            DocumentAgreement::Unknown | DocumentAgreement::Behind => Ok(()),
        }
    }

    /// Removes collectors in the order of the data flow. The gateway drains into the sticky tier, which stays
    /// until the last gateway pod is gone. That is a pod event, and so triggers the next run.
    async fn sweep_in_order(&self, wanted: &BTreeSet<(ObjectKind, String)>) -> Result<(), LayerError> {
        let mut wanted = wanted.clone();
        if !self.view.pods.of_tier(CollectorTier::Gateway).is_empty() {
            let behind =
                self.view.objects.keys(ManagedPart::Layer).into_iter().filter(|(_, name)| name == names::STICKY);
            wanted.extend(behind);
        }
        self.sweep(&wanted).await
    }

    /// Removes all objects, as no pipeline keeps them. A pipeline that no watch event has shown yet takes them
    /// over instead.
    pub(super) async fn sweep_all(&self) -> Result<(), LayerError> {
        let ClusterView { objects, agent_objects, .. } = &self.view;
        let is_there = [objects, agent_objects].iter().any(|cache| !cache.keys(ManagedPart::Layer).is_empty());
        let unseen = async || {
            orphans::has_unwatched_pipeline(&self.client, &self.view.pipelines)
                .await
                .map_err(|error| LayerError::List(Box::new(error)))
        };
        if !is_there || unseen().await? {
            return Ok(());
        }
        self.sweep_agents_beside(&BTreeSet::new()).await?;
        self.sweep(&BTreeSet::new()).await
    }

    /// Deletes all objects of the operator's namespace and of the cluster that are not in `wanted`.
    async fn sweep(&self, wanted: &BTreeSet<(ObjectKind, String)>) -> Result<(), LayerError> {
        for (kind, name) in self.view.objects.keys(ManagedPart::Layer) {
            if !wanted.contains(&(kind, name.clone())) {
                self.record_write(kind, self.applier.delete(kind, &name).await)?;
            }
        }
        Ok(())
    }
}
