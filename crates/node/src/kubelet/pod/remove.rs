//! The end of a pod in the API, once nothing of it runs.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, Preconditions},
};

use super::{Told, Worker};

/// The first pause after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

impl Worker {
    /// Waits until the pod is to go, removes it from the API, and returns when it is not there.
    pub(super) async fn remove(&self) {
        let mut told = self.told.clone();
        let mut pause = PAUSES.0;
        loop {
            let going = |told: &Told| told.gone || told.pod.metadata.deletion_timestamp.is_some();
            let Ok(gone) = told.wait_for(going).await.map(|told| told.gone) else { return };
            if gone || self.delete().await {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
        // Somebody's finalizer may keep it for a while.
        let _ = told.wait_for(|told| told.gone).await;
    }

    /// Whether the API server did it, or need not.
    async fn delete(&self) -> bool {
        let api = Api::<Pod>::namespaced(self.node.client.clone(), &self.key.namespace);
        // What was made in its place is not meant.
        let preconditions = Some(Preconditions { uid: Some(self.uid.clone()), resource_version: None });
        let how = DeleteParams { preconditions, ..DeleteParams::default().grace_period(0) };
        match api.delete(&self.key.name, &how).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
            Err(error) => {
                tracing::warn!(pod = %self.key, %error, "it is removed later");
                false
            }
        }
    }
}
