//! Persistent volume claims: one directory for each, which exists as long as the claim.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;

use super::{VolumeErrorCause, VolumeRequest, directories};
use crate::{
    informers::InformerSet,
    kubelet::sources::{SourceKind, SourceRef},
};

/// The directory of a claim. A claim that is created again under the same name has another one.
fn claim_dir(dir: &Path, claim: &PersistentVolumeClaim) -> PathBuf {
    dir.join(claim.namespace().unwrap_or_default()).join(claim.name_any()).join(claim.uid().unwrap_or_default())
}

/// Creates the directory of a claim that a pod uses.
pub(super) async fn make_claim_dir(request: &VolumeRequest<'_>, name: &str) -> Result<PathBuf, VolumeErrorCause> {
    let namespace = request.pod.metadata.namespace.as_deref().unwrap_or_default();
    let of = SourceRef::new(SourceKind::Claim, namespace, name);
    let Some(claim) = request.sources.get_claim(&of.key).await? else { return Err(VolumeErrorCause::Missing(of)) };
    if claim.metadata.deletion_timestamp.is_some() {
        let text = format!("can't start pod because PVC '{namespace}/{name}' is being deleted");
        return Err(VolumeErrorCause::Waits(text, of));
    }
    let dir = claim_dir(&request.node.claims, &claim);
    directories::make_dir_unreadable_by_others(&dir)?;
    Ok(dir)
}

/// Removes the directories of deleted claims from now on, like a storage class with the policy `Delete`.
///
/// Must be called within the runtime of the informers.
pub fn remove_dirs_of_deleted_claims(dir: &Path, views: &InformerSet) {
    let dir = dir.to_owned();
    let runtime = tokio::runtime::Handle::current();
    views.claims.on_change(move |change| {
        if let (Some(claim), None) = (&change.old, &change.new) {
            let place = claim_dir(&dir, claim);
            runtime.spawn_blocking(move || remove_dir(&place));
        }
    });
}

fn remove_dir(place: &Path) {
    if let Err(error) = std::fs::remove_dir_all(place)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(directory = %place.display(), %error, "failed to remove the directory of a deleted claim");
    }
    // The directory of the name, if it is empty now.
    if let Some(parent) = place.parent() {
        let _ = std::fs::remove_dir(parent);
    }
}
