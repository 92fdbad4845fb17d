//! Tells kubelets that there is something new.
//!
//! A kubelet looks at a pod's volumes when it syncs the pod, which is once a minute or so, and at once when the pod changes. So pods are told
//! which documents they are about to get, in an annotation.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use kubewake_api::Layer;
use serde_json::json;

use crate::{context::World, names};

/// Annotates the pods that do not say so yet. It is news and no more: without it everything takes a little longer.
pub(super) async fn pods(world: &World, layer: &Layer) {
    let api = Api::<Pod>::namespaced(world.client.clone(), &world.options.namespace);
    for pod in world.pods.state() {
        let document = match pod.labels().get(names::NAME).map(String::as_str) {
            Some(names::GATEWAY) => layer.gateway.as_ref(),
            Some(names::STICKY) => layer.sticky.as_ref(),
            _ => None,
        };
        let Some(document) = document else { continue };
        let is_told = pod.annotations().get(names::DOCUMENT) == Some(&document.hash);
        if is_told || pod.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let patch = json!({"metadata": {"annotations": {names::DOCUMENT: document.hash}}});
        let name = pod.name_any();
        if let Err(error) = api.patch_metadata(&name, &PatchParams::apply(names::MANAGER), &Patch::Merge(&patch)).await
        {
            tracing::debug!(kind = "Pod", name, %error, "a pod is not told of a new document");
        }
    }
}
