//! Writes the objects of the layer: the anchor, values before documents, and every other object that differs.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::Resource as _;
use kubewake_api::{CollectorConfigs, RenderedDocument};
use tokio::time::Instant;

use super::{
    CollectorReconciler, OBSOLETE_RETENTION,
    build::{self, BuildContext},
    error::LayerError,
};
use crate::{
    feedback::delivery_health::DocumentAgreement,
    model::{
        names::{self, CollectorTier},
        object_kind::ObjectKind,
    },
    objects::apply::{DesiredObject, ObjectApplyError, ServerSideApplier},
    runtime::{failure_cause::FailureCause, metrics::ReconcileStep},
};

impl CollectorReconciler {
    /// Applies the anchor of a namespace, which owns all other objects there, and returns it as an owner.
    pub(super) async fn ensure_anchor(
        &self,
        applier: &ServerSideApplier,
        anchor: &DesiredObject,
        is_there: bool,
    ) -> Result<OwnerReference, LayerError> {
        if !is_there {
            // The anchor is gone, although no watch event has shown it yet.
            applier.record_absent(anchor.kind, &anchor.name);
        }
        self.count_write(anchor.kind, applier.apply(anchor).await?);
        let live = applier.live_object(anchor.kind, &anchor.name).ok_or(LayerError::AnchorLost)?;
        let live = serde_json::from_value::<ConfigMap>((*live).clone()).map_err(|_| LayerError::AnchorLost)?;
        live.owner_ref(&()).ok_or(LayerError::AnchorLost)
    }

    /// Applies objects, and returns their kinds and names.
    pub(super) async fn apply(
        &self,
        objects: Vec<DesiredObject>,
        min_replicas: i32,
    ) -> Result<BTreeSet<(ObjectKind, String)>, LayerError> {
        let mut applied = BTreeSet::new();
        for desired in objects {
            // Kinds that the cluster lacks, or that were not listed yet, are skipped; existing objects of them
            // stay.
            if self.view.objects.has_listed(desired.kind) {
                let made = match desired.kind {
                    ObjectKind::Deployment => self.applier.apply_scaled(&desired, min_replicas).await,
                    _ => self.applier.apply(&desired).await,
                };
                self.record_write(desired.kind, made)?;
            }
            applied.insert((desired.kind, desired.name));
        }
        Ok(applied)
    }

    /// Writes the Secret with the values, and then the documents that refer to them, if there are any.
    pub(super) async fn write_documents(
        &self,
        around: &BuildContext,
        layer: &CollectorConfigs,
        read: &BTreeMap<&'static str, ConfigMap>,
        written: &mut Option<Instant>,
    ) -> Result<BTreeSet<(ObjectKind, String)>, LayerError> {
        if layer.gateway.is_none() {
            return Ok(BTreeSet::new());
        }
        let stay = written.is_none_or(|written| written.elapsed() < OBSOLETE_RETENTION) && !self.is_rolled_out(layer);
        let live = self.view.objects.get(ObjectKind::Secret, names::GATEWAY);
        let live: Option<Secret> = live.and_then(|live| serde_json::from_value((*live).clone()).ok());
        let staying = build::retained_values(live.as_ref(), read.values(), stay);
        let secret = build::values_secret(around, names::GATEWAY, &layer.secrets, &staying);
        self.count_write(ObjectKind::Secret, self.applier.apply(&secret).await?);
        let mut wanted = BTreeSet::from([(ObjectKind::Secret, secret.name)]);
        for document in build::document_objects(around, layer) {
            let before = read.get(document.name.as_str());
            let changed = self.applier.replace(before, &document).await?;
            self.count_write(ObjectKind::ConfigMap, changed);
            if changed || written.is_none() {
                *written = Some(Instant::now());
            }
            wanted.insert((ObjectKind::ConfigMap, document.name));
        }
        Ok(wanted)
    }

    /// Whether all collectors have read these documents. For a tier without a document its workload and pods
    /// must be gone.
    fn is_rolled_out(&self, layer: &CollectorConfigs) -> bool {
        let sticky = match &layer.sticky {
            Some(document) => self.agreement(CollectorTier::Sticky, document) == DocumentAgreement::All,
            None => {
                let has_set = self.view.objects.get(ObjectKind::StatefulSet, names::STICKY).is_some();
                !has_set && self.view.pods.of_tier(CollectorTier::Sticky).is_empty()
            }
        };
        let gateway = layer.gateway.as_ref().map(|document| self.agreement(CollectorTier::Gateway, document));
        sticky && gateway == Some(DocumentAgreement::All)
    }

    /// Whether the collectors of a tier have read a document: those of all current pods, also of those that are
    /// starting or being deleted.
    pub(super) fn agreement(&self, tier: CollectorTier, document: &RenderedDocument) -> DocumentAgreement {
        let pods = self.view.pods.of_tier(tier);
        let uids = pods.iter().map(|pod| pod.metadata.uid.as_deref().unwrap_or_default());
        self.delivery_health.document_agreement(uids, document)
    }

    /// Counts a write. Failures for a kind that a cluster may lack fail no pipeline; the next run tries again.
    pub(super) fn record_write(
        &self,
        kind: ObjectKind,
        made: Result<bool, ObjectApplyError>,
    ) -> Result<(), LayerError> {
        match made {
            Err(error) if kind.is_optional() => {
                self.metrics.count_failure(ReconcileStep::Layer, FailureCause::from(&error));
                tracing::warn!(
                    error = error.message(),
                    "failed to write an optional object, and the collectors run without it"
                );
            }
            made => self.count_write(kind, made?),
        }
        Ok(())
    }

    pub(super) fn count_write(&self, kind: ObjectKind, sent: bool) {
        if sent {
            self.metrics.count_write(kind);
        }
    }
}
