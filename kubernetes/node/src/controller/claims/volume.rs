//! The PersistentVolume of a claim, as a dynamic provisioner would write it. The volume itself is the directory
//! that nodes have for the claim.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    controller::FIELD_MANAGER,
    error::{ClusterError, Result},
};

const CSI_DRIVER: &str = "claims.kubewake.io";

fn volume_name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

fn bound_volume_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether the claim names no volume yet.
pub(super) fn lacks_volume(claim: &PersistentVolumeClaim) -> bool {
    bound_volume_name(claim).is_none()
}

/// The patch that binds the claim to its volume.
pub(super) fn binding(claim: &PersistentVolumeClaim) -> Value {
    let annotations =
        json!({ "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes" });
    let metadata = json!({ "resourceVersion": claim.resource_version(), "annotations": annotations });
    json!({ "metadata": metadata, "spec": { "volumeName": volume_name(claim) } })
}

/// Creates the volume or resizes it to the claim's request, unless the claim has another volume.
pub(super) async fn provision(client: &Client, claim: &PersistentVolumeClaim) -> Result<()> {
    if bound_volume_name(claim).is_some_and(|named| named != volume_name(claim)) {
        return Ok(());
    }
    let api: Api<PersistentVolume> = Api::all(client.clone());
    let wanted: PersistentVolume =
        serde_json::from_value(new_volume(claim)).map_err(|error| ClusterError::Object(error.to_string()))?;
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match api.create(&params, &wanted).await.map_err(ClusterError::from) {
        Err(error) if error.already_exists() => {
            let capacity = wanted.spec.and_then(|spec| spec.capacity);
            let patch = json!({ "spec": { "capacity": capacity } });
            api.patch(&volume_name(claim), &patch_params(), &Patch::Merge(patch)).await?;
        }
        made => drop(made?),
    }
    let bound = json!({ "status": { "phase": "Bound" } });
    api.patch_status(&volume_name(claim), &patch_params(), &Patch::Merge(bound)).await?;
    Ok(())
}

/// Removes the volume that was created for the claim.
pub(super) async fn remove(client: &Client, claim: &PersistentVolumeClaim) -> Result<()> {
    let api: Api<PersistentVolume> = Api::all(client.clone());
    match api.delete(&volume_name(claim), &DeleteParams::default()).await.map_err(ClusterError::from) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn new_volume(claim: &PersistentVolumeClaim) -> Value {
    let spec = claim.spec.clone().unwrap_or_default();
    let requests = spec.resources.and_then(|resources| resources.requests);
    let (namespace, of, uid) =
        (claim.namespace().unwrap_or_default(), claim.name_any(), claim.uid().unwrap_or_default());
    let handle = format!("{namespace}/{of}/{uid}");
    let claim_ref =
        json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": of, "uid": uid });
    json!({
        "metadata": { "name": volume_name(claim), "annotations": { "pv.kubernetes.io/provisioned-by": CSI_DRIVER } },
        "spec": {
            "capacity": { "storage": requests.and_then(|requests| requests.get("storage").cloned()) },
            "accessModes": spec.access_modes,
            "volumeMode": spec.volume_mode,
            "storageClassName": spec.storage_class_name,
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": claim_ref,
            "csi": { "driver": CSI_DRIVER, "volumeHandle": handle },
        },
    })
}
