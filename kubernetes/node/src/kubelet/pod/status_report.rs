//! Writes the status of a pod.
//!
//! *Guaranteed*: versions are written in order; changes during a write are part of the next one; nothing
//! unchanged is written. A pod that was created under the same name is not touched.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{PodWorker, has_final_phase};
use crate::{
    error::{ClusterError, Result},
    kubelet::status,
};

/// The first and the longest retry delay; it doubles each time.
const STATUS_RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

impl PodWorker {
    /// Writes every change, for ever.
    pub(super) async fn report_status(&self) {
        let mut changed = self.status.version();
        let mut told = self.updates.clone();
        let mut pause = STATUS_RETRY_DELAYS.0;
        loop {
            let version = *changed.borrow_and_update();
            let pod = {
                let told = told.borrow_and_update();
                if told.gone {
                    break;
                }
                std::sync::Arc::clone(&told.pod)
            };
            match self.write_status(&pod).await {
                Err(error) if !error.is_invalid() => {
                    // The pod was removed or created again; the informer will report it.
                    if !(error.is_not_found() || error.is_conflict()) {
                        tracing::warn!(pod = %self.key, %error, ?pause, "failed to write the status of the pod, retrying");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(STATUS_RETRY_DELAYS.1);
                    continue;
                }
                Err(error) => tracing::error!(pod = %self.key, %error, "the API server refused the status of the pod"),
                Ok(()) => {}
            }
            self.written_version.send_replace(version);
            pause = STATUS_RETRY_DELAYS.0;
            tokio::select! {
                _ = changed.changed() => {}
                _ = told.changed() => {}
            }
        }
        self.written_version.send_replace(u64::MAX);
        std::future::pending().await
    }

    async fn write_status(&self, pod: &Pod) -> Result<()> {
        if has_final_phase(pod) {
            // A final phase is never changed.
            return Ok(());
        }
        let status = self.status.read(|facts| status::generate_status(pod, facts, Timestamp::now()));
        if pod.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let patch = status_patch(pod, &status)?;
        let api = Api::<Pod>::namespaced(self.node.client.clone(), &self.key.namespace);
        let written = api.patch_status(&self.key.name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
        self.node.informers.pods.record_write(written);
        Ok(())
    }

    /// Waits until the current state is written or the write has failed for good.
    pub(super) async fn wait_until_reported(&self) {
        let wanted = *self.status.version().borrow();
        // `self` holds the sender, so the channel stays open.
        let _ = self.written_version.subscribe().wait_for(|written| *written >= wanted).await;
    }
}

/// The uid makes sure that it is the same pod. A strategic merge patch keeps the conditions of other writers,
/// but also an old reason beside a new status; so missing fields are set to null.
fn status_patch(pod: &Pod, status: &PodStatus) -> Result<Value> {
    let mut status = serde_json::to_value(status).map_err(|error| ClusterError::Object(error.to_string()))?;
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(condition) = condition.as_object_mut() {
            for field in ["reason", "message"] {
                condition.entry(field).or_insert(Value::Null);
            }
        }
    }
    // A merge of the list would keep the address from before a restart of the node.
    if let Some(addresses) = status.get_mut("podIPs").and_then(Value::as_array_mut) {
        addresses.push(json!({ "$patch": "replace" }));
    }
    Ok(json!({ "metadata": { "uid": pod.uid() }, "status": status }))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodIP;

    use super::*;

    #[test]
    fn a_patch_replaces_addresses_and_takes_old_reasons_away() {
        let status = PodStatus {
            pod_ips: Some(vec![PodIP { ip: "127.1.0.2".into() }]),
            conditions: Some(vec![Default::default()]),
            ..PodStatus::default()
        };
        let patch = status_patch(&Pod::default(), &status).unwrap();
        assert_eq!(patch["status"]["podIPs"], json!([{"ip": "127.1.0.2"}, {"$patch": "replace"}]));
        assert!(patch["status"]["conditions"][0]["reason"].is_null());
    }
}
