//! Persistent volume claims: a directory for each, which is there for as long as the claim.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;

use super::{Cause, Request, directories};
use crate::{
    kubelet::sources::{Kind, Ref},
    views::Views,
};

/// The directory of a claim. One that is made again under the same name is another claim.
fn place(dir: &Path, claim: &PersistentVolumeClaim) -> PathBuf {
    dir.join(claim.namespace().unwrap_or_default()).join(claim.name_any()).join(claim.uid().unwrap_or_default())
}

/// Makes the directory of a claim that a pod names.
pub(super) async fn directory(request: &Request<'_>, name: &str) -> Result<PathBuf, Cause> {
    let namespace = request.pod.metadata.namespace.as_deref().unwrap_or_default();
    let of = Ref::new(Kind::Claim, namespace, name);
    let Some(claim) = request.sources.claim(&of.key).await? else { return Err(Cause::Missing(of)) };
    if claim.metadata.deletion_timestamp.is_some() {
        let text = format!("can't start pod because PVC '{namespace}/{name}' is being deleted");
        return Err(Cause::Waits(text, of));
    }
    let dir = place(&request.node.claims, &claim);
    directories::make_closed(&dir)?;
    Ok(dir)
}

/// Removes the directories of claims that are deleted, from now on, as a storage class with the policy `Delete` does.
///
/// It must be called within the runtime that the views are followed in.
pub fn remove_with_claims(dir: &Path, views: &Views) {
    let (dir, runtime) = (dir.to_owned(), tokio::runtime::Handle::current());
    views.claims.on_change(move |change| {
        if let (Some(claim), None) = (&change.old, &change.new) {
            let place = place(&dir, claim);
            runtime.spawn_blocking(move || remove(&place));
        }
    });
}

fn remove(place: &Path) {
    if let Err(error) = std::fs::remove_dir_all(place)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(directory = %place.display(), %error, "the directory of a claim that is gone stays");
    }
    // The directory of the name, if no other claim has had it.
    if let Some(parent) = place.parent() {
        let _ = std::fs::remove_dir(parent);
    }
}
