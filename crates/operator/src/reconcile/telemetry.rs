//! Maintains the status of the Telemetry: whether it is valid and applied, whether the collectors run, and the
//! endpoints for senders.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use kubewake_api::{
    CollectorSettings, ConditionReason, ConditionType, SpecProblem, State,
    render::{OPENCENSUS_PORT, OTLP_GRPC_PORT, OTLP_HTTP_PORT},
    v1alpha1::{CollectorEndpoints, OtlpEndpoints, Telemetry, TelemetryStatus},
};
use kubewake_trail::{PendingWrites, events::EventPublisher};
use tokio::time::sleep;

use super::{status::MAX_MESSAGE_CHARS, status_event::StatusEvent, status_patch::status_patch};
use crate::{
    feedback::{collector_readiness::CollectorReadiness, deleted_pipelines::PipelineCleanup},
    layer::CollectorReconciler,
    model::{
        names::{self, CollectorTier},
        object_kind::ObjectKind,
    },
    pipeline::cluster_view::ClusterView,
    runtime::{
        error_message::{ErrorDisclosure, api_error_message},
        failure_cause::FailureCause,
        metrics::{OperatorMetrics, ReconcileStep},
        resync_trigger::ResyncTrigger,
    },
};

#[cfg(test)]
mod tests;
mod trusted_relays;

use trusted_relays::RelayCheck;

/// For changes without a trigger, such as the end of a pipeline that had no collectors.
const RESYNC_INTERVAL: Duration = Duration::from_secs(15);

/// Maintains the status of the Telemetry. It alone writes it.
pub struct TelemetryReconciler {
    pub client: Client,
    pub namespace: String,
    pub view: ClusterView,
    pub layer: Arc<CollectorReconciler>,
    pub cleanup: Arc<PipelineCleanup>,
    pub events: EventPublisher,
    pub metrics: Arc<OperatorMetrics>,
}

/// What is remembered from one status to the next.
struct TelemetryMemory {
    /// Statuses that the watch has not shown yet.
    pending_statuses: PendingWrites<TelemetryStatus>,
    relays: RelayCheck,
}

impl TelemetryReconciler {
    /// Keeps the status up to date. Runs for ever, also without pipelines, when no reconcile would do it.
    pub async fn run(&self, resync_trigger: &ResyncTrigger) {
        self.view.wait_synced().await;
        let mut memory = TelemetryMemory { pending_statuses: PendingWrites::new(), relays: RelayCheck::default() };
        let mut triggers = pin!(resync_trigger.subscribe());
        let mut failures = self.layer.failure();
        let mut objects = self.view.objects.subscribe();
        loop {
            if !self.view.pipelines.has_live() {
                self.cleanup.forget_deleted();
                self.layer.clear_failure();
            }
            self.update_status(&mut memory).await;
            tokio::select! {
                _ = triggers.next() => {}
                _ = failures.changed() => {}
                // The layer's own writes do not trigger a resync.
                _ = objects.changed() => {}
                () = sleep(RESYNC_INTERVAL) => {}
            }
        }
    }

    /// Writes a status that has changed, and publishes an event if it is worth one.
    async fn update_status(&self, memory: &mut TelemetryMemory) {
        let Some(telemetry) = self.view.telemetry() else { return };
        let mut telemetry = (*telemetry).clone();
        telemetry.status = memory.pending_statuses.newer_than(&telemetry).or(telemetry.status);
        let problems = CollectorSettings::from_spec(&telemetry.spec, &self.namespace).err().unwrap_or_default();
        let settings = self.view.settings.current();
        let warnings = memory.relays.warnings(&self.client, &settings.trusted_relays).await;
        let layer = self.summarize_layer(settings);
        let status = telemetry_status(&telemetry, &problems, warnings, &layer, Timestamp::now());
        if telemetry.status.as_ref() == Some(&status) {
            return;
        }
        let patch = Patch::Merge(status_patch(telemetry.status.as_ref(), &status));
        let api = Api::<Telemetry>::all(self.client.clone());
        match api.patch_status(&telemetry.name_any(), &PatchParams::apply(names::FIELD_MANAGER), &patch).await {
            Ok(answer) => {
                memory.pending_statuses.record(&answer, status.clone());
                let is_stuck = layer.collectors.as_ref().is_some_and(CollectorReadiness::are_stuck);
                StatusEvent::from(&status)
                    .with_stuck(is_stuck)
                    .publish_if_changed(telemetry.status.as_ref().map(StatusEvent::from), &self.events, &telemetry)
                    .await;
            }
            Err(error) => {
                self.metrics.count_failure(ReconcileStep::Status, FailureCause::from(&error));
                let error = api_error_message(&error, ErrorDisclosure::Full);
                tracing::warn!(kind = "Telemetry", name = telemetry.name_any(), error, "failed to write the status");
            }
        }
    }

    fn summarize_layer(&self, settings: CollectorSettings) -> LayerSummary {
        let ClusterView { objects, agent_objects, pipelines, pods, .. } = &self.view;
        let has_pipelines = pipelines.has_live();
        let is_there = |kind, name| has_pipelines && objects.get(kind, name).is_some();
        let has_agents = has_pipelines && agent_objects.get(ObjectKind::DaemonSet, names::AGENT).is_some();
        let exists = |tier: &CollectorTier| match tier {
            CollectorTier::Gateway => is_there(ObjectKind::Deployment, names::GATEWAY),
            CollectorTier::Sticky => is_there(ObjectKind::StatefulSet, names::STICKY),
            CollectorTier::Agent => has_agents,
        };
        let tiers: Vec<CollectorTier> = CollectorTier::ALL.into_iter().filter(exists).collect();
        LayerSummary {
            collectors: (!tiers.is_empty())
                .then(|| CollectorReadiness::from_caches(objects, agent_objects, tiers).with_pods(pods, &settings)),
            // The documents are written before anything that depends on them, and deleted when all pipelines are
            // paused.
            is_needed: is_there(ObjectKind::ConfigMap, names::GATEWAY)
                || has_pipelines && agent_objects.get(ObjectKind::ConfigMap, names::AGENT).is_some(),
            has_service: is_there(ObjectKind::Service, names::OTLP_SERVICE),
            failure: self.layer.failure().borrow().clone(),
            settings,
        }
    }
}

/// The observed state of the layer.
#[derive(Debug)]
struct LayerSummary {
    /// The collectors, if their workload exists.
    collectors: Option<CollectorReadiness>,
    /// Whether a pipeline needs them.
    is_needed: bool,
    /// Whether the Service for senders exists. It outlives the collectors while all pipelines are paused.
    has_service: bool,
    /// Why the last run of the layer failed.
    failure: Option<String>,
    settings: CollectorSettings,
}

/// The content of a condition: whether it holds, the reason and the message.
type TelemetryConditionContent = (bool, ConditionReason, String);

/// The new status. Without pipelines it has no endpoints. While collectors are needed and do not exist yet, it
/// has endpoints only if it had them before.
fn telemetry_status(
    telemetry: &Telemetry,
    problems: &[SpecProblem],
    warnings: &[String],
    layer: &LayerSummary,
    now: Timestamp,
) -> TelemetryStatus {
    let accepted = accepted_content(problems, warnings);
    let configured = configured_content(accepted.0, layer);
    let ready = ready_content(layer);
    let works = layer.collectors.as_ref().is_some_and(CollectorReadiness::are_serving);
    let (state, reason) = match (accepted.0, configured.1, ready.1) {
        (false, ..) => (State::Invalid, accepted.1),
        (true, ConditionReason::ApplyFailed, _) => (State::Degraded, ConditionReason::ApplyFailed),
        (true, _, ConditionReason::CollectorNotReady) if works => (State::Degraded, ConditionReason::CollectorNotReady),
        (true, _, ConditionReason::CollectorNotReady) => (State::Pending, ConditionReason::CollectorNotReady),
        (true, ..) => (State::Ready, ready.1),
    };
    let was_told = telemetry.status.as_ref().is_some_and(|status| status.endpoints.is_some());
    let has_address = layer.has_service && (layer.collectors.is_some() || !layer.is_needed || was_told);
    let endpoints = has_address.then(|| collector_endpoints(&layer.settings));
    let said = [
        (ConditionType::Accepted, accepted),
        (ConditionType::Configured, configured),
        (ConditionType::CollectorReady, ready),
    ];
    TelemetryStatus {
        observed_generation: telemetry.metadata.generation,
        state: Some(state),
        reason: Some(reason.as_str().to_owned()),
        endpoints,
        conditions: said.into_iter().map(|(type_, said)| into_condition(telemetry, type_, said, now)).collect(),
    }
}

fn accepted_content(problems: &[SpecProblem], warnings: &[String]) -> TelemetryConditionContent {
    if problems.is_empty() {
        let words = if warnings.is_empty() { "the spec is valid".to_owned() } else { warnings.join("; ") };
        return (true, ConditionReason::Valid, words);
    }
    let words: Vec<String> = problems.iter().map(ToString::to_string).chain(warnings.iter().cloned()).collect();
    let until = "the last valid settings stay in effect, or defaults where none are known";
    (false, ConditionReason::SettingInvalid, format!("{}; {until}", words.join("; ")))
}

fn configured_content(is_accepted: bool, layer: &LayerSummary) -> TelemetryConditionContent {
    match (&layer.failure, &layer.collectors) {
        (Some(failure), _) => (false, ConditionReason::ApplyFailed, failure.clone()),
        (None, None) if layer.is_needed => {
            (false, ConditionReason::CollectorNotReady, "creating the collectors".to_owned())
        }
        (None, None) => (false, ConditionReason::CollectorNotNeeded, "no pipeline needs collectors".to_owned()),
        (None, Some(_)) if !is_accepted => {
            (false, ConditionReason::NotAccepted, "the collectors keep their current settings".to_owned())
        }
        (None, Some(_)) => (true, ConditionReason::Configured, "the collectors are up to date".to_owned()),
    }
}

fn ready_content(layer: &LayerSummary) -> TelemetryConditionContent {
    match &layer.collectors {
        None if layer.is_needed => {
            (false, ConditionReason::CollectorNotReady, "waiting for the collectors to start".to_owned())
        }
        None => (false, ConditionReason::CollectorNotNeeded, "no pipeline needs collectors".to_owned()),
        Some(collectors) if collectors.are_serving() && !collectors.are_stuck() => {
            (true, ConditionReason::CollectorReady, collectors.describe())
        }
        Some(collectors) => (false, ConditionReason::CollectorNotReady, collectors.describe()),
    }
}

fn into_condition(
    telemetry: &Telemetry,
    type_: ConditionType,
    (holds, reason, message): TelemetryConditionContent,
    now: Timestamp,
) -> Condition {
    let status = if holds { "True" } else { "False" };
    let old = telemetry.status.iter().flat_map(|status| &status.conditions);
    let same = old.into_iter().find(|old| old.type_ == type_.as_str() && old.status == status);
    Condition {
        type_: type_.as_str().to_owned(),
        status: status.to_owned(),
        reason: reason.as_str().to_owned(),
        message: message.chars().take(MAX_MESSAGE_CHARS).collect(),
        observed_generation: telemetry.metadata.generation,
        last_transition_time: same.map_or(Time(now), |old| old.last_transition_time.clone()),
    }
}

fn collector_endpoints(settings: &CollectorSettings) -> CollectorEndpoints {
    let at = |port: u16| format!("http://{}.{}:{port}", names::OTLP_SERVICE, settings.namespace);
    let otlp = OtlpEndpoints { grpc: at(OTLP_GRPC_PORT), http: at(OTLP_HTTP_PORT) };
    CollectorEndpoints { otlp: Some(otlp), opencensus: settings.opencensus.then(|| at(OPENCENSUS_PORT)) }
}
