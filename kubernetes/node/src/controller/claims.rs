//! PersistentVolumeClaims: every claim is bound at once, because the node has a directory for each, and is kept
//! while a pod uses it.
//!
//! *Guaranteed*: a `Bound` claim has the protection finalizer, so that its directory is not removed under a
//! running pod. A claim without a volume gets [one of its own](volume), which is removed with it. *Not done*:
//! storage classes and existing volumes. Whatever class, volume or size a claim asks for, it gets its
//! directory.

mod volume;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimStatus, Pod};
use kube::ResourceExt;
use serde_json::json;

use super::{ControllerContext, ResourceController, write_through};
use crate::{
    error::Result,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

const PROTECTION_FINALIZER: &str = "kubernetes.io/pvc-protection";

#[derive(Debug)]
pub struct PersistentVolumeController(ControllerContext);

impl ResourceController for PersistentVolumeController {
    const NAME: &'static str = "persistentvolume-controller";

    fn new(context: ControllerContext) -> Self {
        Self(context)
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let to = queue.clone();
        self.0
            .informers
            .claims
            .on_change(move |change| change.new.iter().for_each(|claim| to.add(NamespacedKey::from_object(&**claim))));
        let to = queue.clone();
        self.0.informers.pods.on_change(move |change| {
            if let (Some(gone), None) = (&change.old, &change.new) {
                let namespace = gone.namespace().unwrap_or_default();
                mounted_claims(gone).for_each(|claim| to.add(NamespacedKey::new(&namespace, claim)));
            }
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let Some(claim) = self.0.informers.claims.get(&key) else { return Ok(None) };
        let outcome = match claim.metadata.deletion_timestamp {
            Some(_) => self.release(&claim).await,
            None => self.bind(claim).await,
        };
        match outcome {
            Err(error) if error.is_not_found() => Ok(None),
            outcome => outcome.map(|()| None),
        }
    }
}

impl PersistentVolumeController {
    async fn bind(&self, mut claim: Arc<PersistentVolumeClaim>) -> Result<()> {
        let client = &self.0.client;
        let view = &self.0.informers.claims;
        if !is_protected(&claim) {
            let finalizers: Vec<&str> =
                claim.finalizers().iter().map(String::as_str).chain([PROTECTION_FINALIZER]).collect();
            let patch = json!({"metadata": {"resourceVersion": claim.resource_version(), "finalizers": finalizers}});
            claim = write_through::merge_patch(client, view, &*claim, &patch).await?;
        }
        let status = bound_status(&claim);
        let is_bound = claim.status.as_ref() == Some(&status);
        if !is_bound || volume::lacks_volume(&claim) {
            volume::provision(client, &claim).await?;
        }
        if volume::lacks_volume(&claim) {
            claim = write_through::merge_patch(client, view, &*claim, &volume::binding(&claim)).await?;
        }
        if !is_bound {
            let claim = PersistentVolumeClaim { status: Some(status), ..(*claim).clone() };
            write_through::replace_status(client, view, &claim).await?;
        }
        Ok(())
    }

    async fn release(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let name = claim.name_any();
        let pods = self.0.informers.pods.in_namespace(&claim.namespace().unwrap_or_default());
        if !is_protected(claim) || pods.iter().any(|pod| has_node(pod) && mounted_claims(pod).any(|used| used == name))
        {
            return Ok(());
        }
        volume::remove(&self.0.client, claim).await?;
        let finalizers: Vec<_> =
            claim.finalizers().iter().filter(|finalizer| *finalizer != PROTECTION_FINALIZER).collect();
        let patch = json!({"metadata": {"resourceVersion": claim.resource_version(), "finalizers": finalizers}});
        let left = write_through::merge_patch(&self.0.client, &self.0.informers.claims, claim, &patch).await?;
        if left.finalizers().is_empty() {
            self.0.informers.claims.remove(&left);
        }
        Ok(())
    }
}

fn is_protected(claim: &PersistentVolumeClaim) -> bool {
    claim.finalizers().iter().any(|finalizer| finalizer == PROTECTION_FINALIZER)
}

/// Whether a node is assigned; a pod without one does not use its volumes yet.
fn has_node(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_some_and(|node| !node.is_empty())
}

/// The names of the claims that the pod mounts.
fn mounted_claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

/// The status of a claim that got everything that it asks for.
fn bound_status(claim: &PersistentVolumeClaim) -> PersistentVolumeClaimStatus {
    let spec = claim.spec.as_ref();
    let requests = spec.and_then(|spec| spec.resources.as_ref()).and_then(|resources| resources.requests.as_ref());
    let storage = requests.and_then(|requests| requests.get("storage"));
    PersistentVolumeClaimStatus {
        phase: Some("Bound".to_owned()),
        access_modes: spec.and_then(|spec| spec.access_modes.clone()),
        capacity: storage.map(|storage| BTreeMap::from([("storage".to_owned(), storage.clone())])),
        ..claim.status.clone().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
