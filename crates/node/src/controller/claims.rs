//! PersistentVolumeClaims: every claim is bound at once, as the node has a directory for each, and is kept while a pod uses it.
//!
//! *Guarantees.* What is `Bound` carries the protection finalizer, so that nobody takes the directory from under a running pod. A claim that
//! names no volume gets [one of its own](volume), which goes with it. *Not done*: storage classes, and volumes that somebody made before.
//! Whatever class, volume or size a claim asks for, it gets its directory.

mod volume;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimStatus, Pod};
use kube::ResourceExt;
use serde_json::json;

use super::{Context, Controller, write};
use crate::{
    error::Result,
    key::Key,
    queue::{Again, Queue},
};

const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The controller of claims.
#[derive(Debug)]
pub struct Claims(Context);

impl Controller for Claims {
    const NAME: &'static str = "persistentvolume-controller";

    fn new(context: Context) -> Self {
        Self(context)
    }

    fn listen(&self, queue: &Queue<Key>) {
        let to = queue.clone();
        self.0.views.claims.on_change(move |change| change.new.iter().for_each(|claim| to.add(Key::of(&**claim))));
        let to = queue.clone();
        self.0.views.pods.on_change(move |change| {
            if let (Some(gone), None) = (&change.old, &change.new) {
                let namespace = gone.namespace().unwrap_or_default();
                used_by(gone).for_each(|claim| to.add(Key::new(&namespace, claim)));
            }
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        let Some(claim) = self.0.views.claims.get(&key) else { return Ok(None) };
        let outcome = match claim.metadata.deletion_timestamp {
            Some(_) => self.let_go(&claim).await,
            None => self.bind(claim).await,
        };
        match outcome {
            Err(error) if error.is_not_found() => Ok(None),
            outcome => outcome.map(|()| None),
        }
    }
}

impl Claims {
    async fn bind(&self, mut claim: Arc<PersistentVolumeClaim>) -> Result<()> {
        let (client, view) = (&self.0.client, &self.0.views.claims);
        if !is_protected(&claim) {
            let finalizers: Vec<&str> = claim.finalizers().iter().map(String::as_str).chain([PROTECTION]).collect();
            let patch = json!({"metadata": {"resourceVersion": claim.resource_version(), "finalizers": finalizers}});
            claim = write::merge(client, view, &*claim, &patch).await?;
        }
        let status = bound(&claim);
        let is_bound = claim.status.as_ref() == Some(&status);
        if !is_bound || volume::is_missing(&claim) {
            volume::provide(client, &claim).await?;
        }
        if volume::is_missing(&claim) {
            claim = write::merge(client, view, &*claim, &volume::binding(&claim)).await?;
        }
        if !is_bound {
            let claim = PersistentVolumeClaim { status: Some(status), ..(*claim).clone() };
            write::status(client, view, &claim).await?;
        }
        Ok(())
    }

    async fn let_go(&self, claim: &PersistentVolumeClaim) -> Result<()> {
        let name = claim.name_any();
        let pods = self.0.views.pods.within(&claim.namespace().unwrap_or_default());
        if !is_protected(claim) || pods.iter().any(|pod| has_node(pod) && used_by(pod).any(|used| used == name)) {
            return Ok(());
        }
        volume::remove(&self.0.client, claim).await?;
        let finalizers: Vec<_> = claim.finalizers().iter().filter(|finalizer| *finalizer != PROTECTION).collect();
        let patch = json!({"metadata": {"resourceVersion": claim.resource_version(), "finalizers": finalizers}});
        let left = write::merge(&self.0.client, &self.0.views.claims, claim, &patch).await?;
        if left.finalizers().is_empty() {
            self.0.views.claims.forget(&left);
        }
        Ok(())
    }
}

fn is_protected(claim: &PersistentVolumeClaim) -> bool {
    claim.finalizers().iter().any(|finalizer| finalizer == PROTECTION)
}

/// A pod without a node has not begun to use anything.
fn has_node(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_some_and(|node| !node.is_empty())
}

/// The names of the claims that the pod mounts.
fn used_by(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()))
}

/// It has all that it asks for.
fn bound(claim: &PersistentVolumeClaim) -> PersistentVolumeClaimStatus {
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
