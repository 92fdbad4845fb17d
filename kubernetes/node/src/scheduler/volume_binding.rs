//! Checks that the claims of a pod are bound.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use crate::{informer::SharedInformer, key::NamespacedKey};

/// The reason why a claim of the pod is not usable, in kube-scheduler's words.
pub fn unbound_claim_reason(pod: &Pod, claims: &SharedInformer<PersistentVolumeClaim>) -> Option<String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
    let mut names = volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.as_str()));
    names.find_map(|name| {
        let Some(claim) = claims.get(&NamespacedKey::new(namespace, name)) else {
            return Some(format!("persistentvolumeclaim {name:?} not found"));
        };
        if claim.metadata.deletion_timestamp.is_some() {
            return Some(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        (phase != Some("Bound")).then(|| "pod has unbound immediate PersistentVolumeClaims".to_owned())
    })
}
