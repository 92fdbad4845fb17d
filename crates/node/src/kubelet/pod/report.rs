//! Writes the status of a pod.
//!
//! *Guarantees.* Versions are written in order; what changes while one is written is in the next; nothing is written that is there
//! already. What was made in the pod's place is not touched.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{Worker, is_over};
use crate::{
    error::{Error, Result},
    kubelet::status,
};

/// The first pause after a failure, and the longest; each is twice as long as the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));

impl Worker {
    /// Writes whatever changes, for ever.
    pub(super) async fn report(&self) {
        let (mut changed, mut told) = (self.board.version(), self.told.clone());
        let mut pause = PAUSES.0;
        loop {
            let version = *changed.borrow_and_update();
            let pod = {
                let told = told.borrow_and_update();
                if told.gone {
                    break;
                }
                std::sync::Arc::clone(&told.pod)
            };
            match self.report_once(&pod).await {
                Err(error) if !error.is_invalid() => {
                    // Another pod may have its name by now, or nobody: the view will say so.
                    if !(error.is_not_found() || error.is_conflict()) {
                        tracing::warn!(pod = %self.key, %error, ?pause, "its status is written later");
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                    continue;
                }
                Err(error) => tracing::error!(pod = %self.key, %error, "its status is refused"),
                Ok(()) => {}
            }
            self.written.send_replace(version);
            pause = PAUSES.0;
            tokio::select! {
                _ = changed.changed() => {}
                _ = told.changed() => {}
            }
        }
        self.written.send_replace(u64::MAX);
        std::future::pending().await
    }

    async fn report_once(&self, pod: &Pod) -> Result<()> {
        if is_over(pod) {
            // An end is final.
            return Ok(());
        }
        let status = self.board.read(|facts| status::generate(pod, facts, Timestamp::now()));
        if pod.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let patch = patch(pod, &status)?;
        let api = Api::<Pod>::namespaced(self.node.client.clone(), &self.key.namespace);
        let written = api.patch_status(&self.key.name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
        self.node.views.pods.note(written);
        Ok(())
    }

    /// Waits until all that is known now is written, or cannot be.
    pub(super) async fn flush(&self) {
        let wanted = *self.board.version().borrow();
        // The sender is ours.
        let _ = self.written.subscribe().wait_for(|written| *written >= wanted).await;
    }
}

/// The uid makes sure that it is still the same pod. A strategic patch leaves the conditions of others alone, but would leave an old
/// reason with a new value, too: what is not there must be taken away.
fn patch(pod: &Pod, status: &PodStatus) -> Result<Value> {
    let mut status = serde_json::to_value(status).map_err(|error| Error::Object(error.to_string()))?;
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(condition) = condition.as_object_mut() {
            for field in ["reason", "message"] {
                condition.entry(field).or_insert(Value::Null);
            }
        }
    }
    // The list would keep the address that the pod had before the node started again.
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
        let patch = patch(&Pod::default(), &status).unwrap();
        assert_eq!(patch["status"]["podIPs"], json!([{"ip": "127.1.0.2"}, {"$patch": "replace"}]));
        assert!(patch["status"]["conditions"][0]["reason"].is_null());
    }
}
