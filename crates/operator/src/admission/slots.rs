//! What the cluster says to a pipeline: whether it will have to wait, and whether it fits into collectors as they run. Nothing is decided here: it is a word to its writer, and
//! without an answer in time it is not said.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use kubewake_api::{Pipeline, Settings, v1alpha1::Telemetry};

use crate::lock::{Lock, Slot, judge};

/// What to tell who writes a pipeline.
pub(super) async fn warnings(client: &Client, namespace: &str, pipeline: &Pipeline) -> Vec<String> {
    let Ok(telemetry) = Api::<Telemetry>::all(client.clone()).get_opt("default").await else { return Vec::new() };
    let spec = telemetry.map(|telemetry| telemetry.spec).unwrap_or_default();
    let (settings, _) = Settings::as_far_as_possible(&spec, namespace);
    let full = full(client, namespace, pipeline, settings.slots(pipeline.signal)).await;
    settings.warnings(pipeline).iter().map(ToString::to_string).chain(full).collect()
}

async fn full(client: &Client, namespace: &str, pipeline: &Pipeline, slots: usize) -> Option<String> {
    let (kind, signal) = (pipeline.kind(), pipeline.signal);
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
