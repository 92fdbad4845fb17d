//! The PersistentVolume of a claim, as a driver that makes volumes when they are asked for would write it. What stands for it is the
//! directory that nodes have for the claim.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    controller::MANAGER,
    error::{Error, Result},
};

/// Who makes the volumes.
const DRIVER: &str = "claims.kubewake.io";

fn name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

fn named(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether the claim names no volume yet.
pub(super) fn is_missing(claim: &PersistentVolumeClaim) -> bool {
    named(claim).is_none()
}

/// What binds the claim to its volume.
pub(super) fn binding(claim: &PersistentVolumeClaim) -> Value {
    let annotations =
        json!({ "pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes" });
    let metadata = json!({ "resourceVersion": claim.resource_version(), "annotations": annotations });
    json!({ "metadata": metadata, "spec": { "volumeName": name(claim) } })
}

/// Sees to it that there is a volume as large as the claim asks for, unless the claim has another.
pub(super) async fn provide(client: &Client, claim: &PersistentVolumeClaim) -> Result<()> {
    if named(claim).is_some_and(|named| named != name(claim)) {
        return Ok(());
    }
    let api: Api<PersistentVolume> = Api::all(client.clone());
    let wanted: PersistentVolume =
        serde_json::from_value(object(claim)).map_err(|error| Error::Object(error.to_string()))?;
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match api.create(&params, &wanted).await.map_err(Error::from) {
        Err(error) if error.already_exists() => {
            let capacity = wanted.spec.and_then(|spec| spec.capacity);
            let patch = json!({ "spec": { "capacity": capacity } });
            api.patch(&name(claim), &in_our_name(), &Patch::Merge(patch)).await?;
        }
        made => drop(made?),
    }
    let bound = json!({ "status": { "phase": "Bound" } });
    api.patch_status(&name(claim), &in_our_name(), &Patch::Merge(bound)).await?;
    Ok(())
}

/// Removes the volume that was made for the claim.
pub(super) async fn remove(client: &Client, claim: &PersistentVolumeClaim) -> Result<()> {
    let api: Api<PersistentVolume> = Api::all(client.clone());
    match api.delete(&name(claim), &DeleteParams::default()).await.map_err(Error::from) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

fn in_our_name() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

fn object(claim: &PersistentVolumeClaim) -> Value {
    let spec = claim.spec.clone().unwrap_or_default();
    let requests = spec.resources.and_then(|resources| resources.requests);
    let (namespace, of, uid) =
        (claim.namespace().unwrap_or_default(), claim.name_any(), claim.uid().unwrap_or_default());
    let handle = format!("{namespace}/{of}/{uid}");
    let claim_ref =
        json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": of, "uid": uid });
    json!({
        "metadata": { "name": name(claim), "annotations": { "pv.kubernetes.io/provisioned-by": DRIVER } },
        "spec": {
            "capacity": { "storage": requests.and_then(|requests| requests.get("storage").cloned()) },
            "accessModes": spec.access_modes,
            "volumeMode": spec.volume_mode,
            "storageClassName": spec.storage_class_name,
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": claim_ref,
            "csi": { "driver": DRIVER, "volumeHandle": handle },
        },
    })
}
