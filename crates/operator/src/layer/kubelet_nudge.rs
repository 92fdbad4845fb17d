//! Makes kubelets update document volumes at once.
//!
//! A kubelet updates a pod's volumes when it syncs the pod: about once a minute, and at once when the pod
//! changes. So the hash of the desired document is written to an annotation of the pod.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use kubewake_api::CollectorConfigs;
use serde_json::json;

use crate::{model::names, objects::collector_pods::CollectorPods};

/// Annotates the pods of a namespace that lack the current hash. A failure is not an error: the kubelet only takes
/// longer.
pub(super) async fn annotate_pods(client: &Client, namespace: &str, pods: &CollectorPods, layer: &CollectorConfigs) {
    let api = Api::<Pod>::namespaced(client.clone(), namespace);
    for pod in pods.all().into_iter().filter(|pod| pod.namespace().as_deref() == Some(namespace)) {
        let document = match pod.labels().get(names::NAME_LABEL).map(String::as_str) {
            Some(names::GATEWAY) => layer.gateway.as_ref(),
            Some(names::STICKY) => layer.sticky.as_ref(),
            Some(names::AGENT) => layer.agent.as_ref(),
            _ => None,
        };
        let Some(document) = document else { continue };
        let is_current = pod.annotations().get(names::DOCUMENT_ANNOTATION) == Some(&document.hash);
        if is_current || pod.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let patch = json!({"metadata": {"annotations": {names::DOCUMENT_ANNOTATION: document.hash}}});
        let name = pod.name_any();
        if let Err(error) =
            api.patch_metadata(&name, &PatchParams::apply(names::FIELD_MANAGER), &Patch::Merge(&patch)).await
        {
            tracing::debug!(kind = "Pod", name, %error, "failed to annotate a pod with the new configuration");
        }
    }
}
