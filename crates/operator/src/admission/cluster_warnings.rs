//! Warnings about a pipeline that depend on the cluster: whether it will wait for a slot, and whether it fits
//! the collectors as they are configured. They decide nothing, and are left out if the API server does not
//! answer in time.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use kubewake_api::{CollectorSettings, TelemetryPipeline, v1alpha1::Telemetry};

use crate::pipeline::slot_lock::{Slot, SlotLock, slot_state};

/// The warnings for the writer of a pipeline.
pub(super) async fn warnings(client: &Client, namespace: &str, pipeline: &TelemetryPipeline) -> Vec<String> {
    let Ok(telemetry) = Api::<Telemetry>::all(client.clone()).get_opt("default").await else { return Vec::new() };
    let spec = telemetry.map(|telemetry| telemetry.spec).unwrap_or_default();
    let (settings, _) = CollectorSettings::from_spec_lenient(&spec, namespace);
    let full = slots_full_warning(client, namespace, pipeline, settings.slots(pipeline.signal)).await;
    settings.warnings(pipeline).iter().map(ToString::to_string).chain(full).collect()
}

async fn slots_full_warning(
    client: &Client,
    namespace: &str,
    pipeline: &TelemetryPipeline,
    slots: usize,
) -> Option<String> {
    let kind = pipeline.kind();
    let signal = pipeline.signal;
    let lock = SlotLock::new(Api::<ConfigMap>::namespaced(client.clone(), namespace), signal);
    let full = match lock.read().await.ok()? {
        Some(lock) => slot_state(&lock, &pipeline.uid, slots) == Some(Slot::Full),
        None => slots == 0,
    };
    full.then(|| {
        format!(
            "this {kind} will be Pending: all slots for its kind are in use ({slots}). It becomes active when another {kind} is deleted, or \
             when `spec.slots` of Telemetry `default` is raised"
        )
    })
}
