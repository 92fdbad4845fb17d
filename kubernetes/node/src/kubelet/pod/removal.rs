//! Removal of a pod from the API, after its last process has ended.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, Preconditions},
};

use super::{PodUpdate, PodWorker};

/// The first and the longest retry delay.
const DELETE_RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

impl PodWorker {
    /// Waits until the pod is deleted, confirms the deletion, and returns when the pod is gone.
    pub(super) async fn remove_from_api(&self) {
        let mut told = self.updates.clone();
        let mut pause = DELETE_RETRY_DELAYS.0;
        loop {
            let going = |told: &PodUpdate| told.gone || told.pod.metadata.deletion_timestamp.is_some();
            let Ok(gone) = told.wait_for(going).await.map(|told| told.gone) else { return };
            if gone || self.delete_from_api().await {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(DELETE_RETRY_DELAYS.1);
        }
        // A finalizer may delay it.
        let _ = told.wait_for(|told| told.gone).await;
    }

    /// Returns whether the deletion is done or unnecessary.
    async fn delete_from_api(&self) -> bool {
        let api = Api::<Pod>::namespaced(self.node.client.clone(), &self.key.namespace);
        // A pod that was created under the same name must not be deleted.
        let preconditions = Some(Preconditions { uid: Some(self.uid.clone()), resource_version: None });
        let how = DeleteParams { preconditions, ..DeleteParams::default().grace_period(0) };
        match api.delete(&self.key.name, &how).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
            Err(error) => {
                tracing::warn!(pod = %self.key, %error, "failed to remove the pod, retrying");
                false
            }
        }
    }
}
