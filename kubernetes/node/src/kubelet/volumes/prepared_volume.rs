//! A prepared volume of a pod.

use std::path::Path;

use k8s_openapi::api::core::v1::Volume;

use super::{
    VolumeError, VolumeErrorCause, VolumeRequest, claims,
    container_root::VolumeLocation,
    directories::{self, SizeLimit},
    projection::ProjectedFiles,
};

/// A volume with its path, and the projection that is written there.
pub(super) struct PreparedVolume {
    pub(super) name: String,
    pub(super) location: VolumeLocation,
    pub(super) projected_files: Option<ProjectedFiles>,
    pub(super) size_limit: Option<SizeLimit>,
}

impl PreparedVolume {
    pub(super) async fn new(volume: &Volume, request: &VolumeRequest<'_>) -> Result<Self, VolumeError> {
        Self::try_new(volume, request).await.map_err(|cause| cause.for_volume(&volume.name))
    }

    async fn try_new(volume: &Volume, request: &VolumeRequest<'_>) -> Result<Self, VolumeErrorCause> {
        let name = volume.name.clone();
        let own = request.dir.join("volumes").join(&volume.name);
        if let Some(recipe) = ProjectedFiles::from_volume(volume)? {
            return Ok(Self {
                name,
                location: VolumeLocation::Written(own),
                projected_files: Some(recipe),
                size_limit: None,
            });
        }
        if let Some(path) = &volume.host_path {
            let kind = path.type_.as_deref().unwrap_or_default();
            let (place, is_own) = request.node.host_path(Path::new(&path.path));
            // Container runtimes create a missing directory. On the machine itself, nothing is created unasked.
            let kind = if is_own && kind.is_empty() && !place.exists() { "DirectoryOrCreate" } else { kind };
            directories::check_host_path(&path.path, &place, kind)?;
            return Ok(Self { name, location: VolumeLocation::Host(place), projected_files: None, size_limit: None });
        }
        if let Some(claim) = &volume.persistent_volume_claim {
            let place = claims::make_claim_dir(request, &claim.claim_name).await?;
            return Ok(Self {
                name,
                location: VolumeLocation::Directory(place),
                projected_files: None,
                size_limit: None,
            });
        }
        if volume.empty_dir.is_none() && volume.ephemeral.is_none() {
            return Err(VolumeErrorCause::Refused(
                "this node supports configMap, secret, projected, downwardAPI, emptyDir, ephemeral, hostPath and \
                 persistentVolumeClaim volumes only"
                    .to_owned(),
            ));
        }
        directories::make_dir(&own)?;
        let size = volume.empty_dir.as_ref().and_then(|empty| empty.size_limit.clone());
        let limit = size.and_then(|size| SizeLimit::new(&volume.name, &own, &size.0));
        Ok(Self { name, location: VolumeLocation::Directory(own), projected_files: None, size_limit: limit })
    }
}
