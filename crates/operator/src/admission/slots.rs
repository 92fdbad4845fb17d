//! Whether a pipeline will have to wait. Nothing is decided here: it is a word to its writer, and without an answer in time it is not said.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use kubewake_api::{Pipeline, Settings, v1alpha1::Telemetry};

use crate::lock::{Lock, Slot, judge};

/// What to tell who writes a pipeline for which there is no slot.
pub(super) async fn warning(client: &Client, namespace: &str, pipeline: &Pipeline) -> Option<String> {
    let (kind, signal) = (pipeline.kind(), pipeline.signal);
    let telemetry = Api::<Telemetry>::all(client.clone()).get_opt("default").await.ok()?;
    let spec = telemetry.map(|telemetry| telemetry.spec).unwrap_or_default();
    let slots = Settings::of(&spec, namespace).ok()?.slots(signal);
    let lock = Lock::new(Api::<ConfigMap>::namespaced(client.clone(), namespace), signal);
    let full = match lock.read().await.ok()? {
        Some(lock) => judge(&lock, &pipeline.uid, slots) == Some(Slot::Full),
        None => slots == 0,
    };
    full.then(|| {
        format!(
            "this {kind} will be Pending: all slots of its kind are taken ({slots}). It starts when another one is deleted, or \
             when `spec.slots` of Telemetry `default` says more"
        )
    })
}
