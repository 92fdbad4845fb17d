//! Each volume of a pod: where it is, and what it is made of.

use std::path::Path;

use k8s_openapi::api::core::v1::Volume;

use super::{
    Cause, Request, VolumeError, claims,
    directories::{self, Limit},
    mounts::Place,
    payload::Recipe,
};

/// A volume with its place, and what is to be written there.
pub(super) struct Prepared {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) recipe: Option<Recipe>,
    pub(super) limit: Option<Limit>,
}

impl Prepared {
    pub(super) async fn new(volume: &Volume, request: &Request<'_>) -> Result<Self, VolumeError> {
        Self::try_new(volume, request).await.map_err(|cause| cause.of(&volume.name))
    }

    async fn try_new(volume: &Volume, request: &Request<'_>) -> Result<Self, Cause> {
        let (name, own) = (volume.name.clone(), request.dir.join("volumes").join(&volume.name));
        if let Some(recipe) = Recipe::of(volume)? {
            return Ok(Self { name, place: Place::Written(own), recipe: Some(recipe), limit: None });
        }
        if let Some(path) = &volume.host_path {
            let place = directories::host(Path::new(&path.path), path.type_.as_deref().unwrap_or_default())?;
            return Ok(Self { name, place: Place::Host(place), recipe: None, limit: None });
        }
        if let Some(claim) = &volume.persistent_volume_claim {
            let place = claims::directory(request, &claim.claim_name).await?;
            return Ok(Self { name, place: Place::Directory(place), recipe: None, limit: None });
        }
        if volume.empty_dir.is_none() && volume.ephemeral.is_none() {
            return Err(Cause::Refused(
                "this node has configMap, secret, projected, downwardAPI, emptyDir, ephemeral, hostPath and \
                 persistentVolumeClaim volumes only"
                    .to_owned(),
            ));
        }
        directories::make(&own)?;
        let size = volume.empty_dir.as_ref().and_then(|empty| empty.size_limit.clone());
        let limit = size.and_then(|size| Limit::new(&volume.name, &own, &size.0));
        Ok(Self { name, place: Place::Directory(own), recipe: None, limit })
    }
}
