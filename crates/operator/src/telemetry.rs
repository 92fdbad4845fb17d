//! What is said of the Telemetry: whether it is valid, whether it could be applied, whether the collectors run, and where programs send to.

use std::{pin::pin, time::Duration};

use futures_util::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use kubewake_api::{
    ConditionType, Problem, Reason, Settings, State,
    render::{OPENCENSUS_PORT, OTLP_GRPC_PORT, OTLP_HTTP_PORT},
    v1alpha1::{Endpoints, OtlpEndpoints, Telemetry, TelemetryStatus},
};
use kubewake_trail::events::Events;
use tokio::time::sleep;

use crate::{
    cause::Cause,
    context::World,
    kind::Kind,
    metrics::Step,
    names,
    news::News,
    ready::Collectors,
    relays::RelayCheck,
    status::MAX_MESSAGE,
    words::{Discretion, words},
    written,
};

#[cfg(test)]
mod tests;

/// When something happened and nobody rang, such as that a pipeline without collectors is gone.
const PERIOD: Duration = Duration::from_secs(15);

/// Says what there is to say, for ever. Where there is no pipeline nobody else looks at anything.
pub async fn follow(world: &World, events: &Events) {
    world.all_seen().await;
    let mut relays = RelayCheck::default();
    let (mut strokes, mut failures) = (pin!(world.bell.strokes()), world.failure.subscribe());
    loop {
        if !world.has_pipelines() {
            world.present();
            world.note_failure(None);
        }
        report(world, events, &mut relays).await;
        tokio::select! {
            _ = strokes.next() => {}
            _ = failures.changed() => {}
            () = sleep(PERIOD) => {}
        }
    }
}

/// Writes the status if it says something new, and tells of what is.
async fn report(world: &World, events: &Events, relays: &mut RelayCheck) {
    let Some(telemetry) = world.telemetry() else { return };
    let mut telemetry = (*telemetry).clone();
    telemetry.status = world.written.after(&telemetry).or(telemetry.status);
    let problems = Settings::of(&telemetry.spec, &world.options.namespace).err().unwrap_or_default();
    let is_there = |kind, name| world.has_pipelines() && world.live.get(kind, name).is_some();
    // A document is written before anything else that it needs, and goes when nothing flows any more.
    let is_needed = is_there(Kind::ConfigMap, names::GATEWAY);
    let is_sticky = world.live.get(Kind::StatefulSet, names::STICKY).is_some();
    let settings = world.settings();
    let warnings = relays.warnings(&world.client, &settings.trusted_relays).await;
    let layer = Layer {
        collectors: is_there(Kind::Deployment, names::GATEWAY)
            .then(|| Collectors::of(&world.live, is_sticky).with(&world.pods)),
        is_needed,
        has_service: is_there(Kind::Service, names::OTLP),
        failure: world.failure.borrow().clone(),
        settings,
    };
    let status = status(&telemetry, &problems, warnings, &layer, Timestamp::now());
    if telemetry.status.as_ref() == Some(&status) {
        return;
    }
    let patch = Patch::Merge(written::patch(telemetry.status.as_ref(), &status));
    let api = Api::<Telemetry>::all(world.client.clone());
    match api.patch_status(&telemetry.name_any(), &PatchParams::apply(names::MANAGER), &patch).await {
        Ok(answer) => {
            world.written.note(&answer, status.clone());
            let is_stuck = layer.collectors.as_ref().is_some_and(Collectors::are_stuck);
            News::from(&status)
                .stuck(is_stuck)
                .tell(telemetry.status.as_ref().map(News::from), events, &telemetry)
                .await;
        }
        Err(error) => {
            world.metrics.failed(Step::Status, Cause::from(&error));
            let error = words(&error, Discretion::Open);
            tracing::warn!(kind = "Telemetry", name = telemetry.name_any(), error, "the status cannot be written");
        }
    }
}

/// What there is of the layer.
#[derive(Debug)]
struct Layer {
    /// The collectors, if they have been made.
    collectors: Option<Collectors>,
    /// Whether a pipeline needs them.
    is_needed: bool,
    /// Whether there is the Service that senders know. It outlives the collectors while all pipelines are paused.
    has_service: bool,
    /// Why it is not as it should be.
    failure: Option<String>,
    /// What it goes by.
    settings: Settings,
}

/// A condition without its times.
type Said = (bool, Reason, String);

/// The status. Without pipelines there are no collectors, and nowhere to send to. While collectors are needed and have not been made,
/// no address is told that was not told before.
fn status(
    telemetry: &Telemetry,
    problems: &[Problem],
    warnings: &[String],
    layer: &Layer,
    now: Timestamp,
) -> TelemetryStatus {
    let accepted = accepted(problems, warnings);
    let (configured, ready) = (configured(accepted.0, layer), ready(layer));
    let works = layer.collectors.as_ref().is_some_and(Collectors::work);
    let (state, reason) = match (accepted.0, configured.1, ready.1) {
        (false, ..) => (State::Invalid, accepted.1),
        (true, Reason::ApplyFailed, _) => (State::Degraded, Reason::ApplyFailed),
        (true, _, Reason::CollectorNotReady) if works => (State::Degraded, Reason::CollectorNotReady),
        (true, _, Reason::CollectorNotReady) => (State::Pending, Reason::CollectorNotReady),
        (true, ..) => (State::Ready, ready.1),
    };
    let was_told = telemetry.status.as_ref().is_some_and(|status| status.endpoints.is_some());
    let has_address = layer.has_service && (layer.collectors.is_some() || !layer.is_needed || was_told);
    let endpoints = has_address.then(|| endpoints(&layer.settings));
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
        conditions: said.into_iter().map(|(type_, said)| condition(telemetry, type_, said, now)).collect(),
    }
}

fn accepted(problems: &[Problem], warnings: &[String]) -> Said {
    if problems.is_empty() {
        let words = if warnings.is_empty() { "everything is right".to_owned() } else { warnings.join("; ") };
        return (true, Reason::Valid, words);
    }
    let words: Vec<String> = problems.iter().map(ToString::to_string).chain(warnings.iter().cloned()).collect();
    let until = "what was valid before holds, and where nothing is known of that, the rest of it";
    (false, Reason::SettingInvalid, format!("{}; {until}", words.join("; ")))
}

fn configured(is_accepted: bool, layer: &Layer) -> Said {
    match (&layer.failure, &layer.collectors) {
        (Some(failure), _) => (false, Reason::ApplyFailed, failure.clone()),
        (None, None) if layer.is_needed => {
            (false, Reason::CollectorNotReady, "the collectors are being made".to_owned())
        }
        (None, None) => (false, Reason::CollectorNotNeeded, "no pipeline needs collectors".to_owned()),
        (None, Some(_)) if !is_accepted => (false, Reason::NotAccepted, "the collectors go on as they are".to_owned()),
        (None, Some(_)) => (true, Reason::Configured, "the collectors are what is asked for".to_owned()),
    }
}

fn ready(layer: &Layer) -> Said {
    match &layer.collectors {
        None if layer.is_needed => (false, Reason::CollectorNotReady, "there are no collectors yet".to_owned()),
        None => (false, Reason::CollectorNotNeeded, "no pipeline needs collectors".to_owned()),
        Some(collectors) if collectors.work() && !collectors.are_stuck() => {
            (true, Reason::CollectorReady, collectors.describe())
        }
        Some(collectors) => (false, Reason::CollectorNotReady, collectors.describe()),
    }
}

fn condition(telemetry: &Telemetry, type_: ConditionType, (holds, reason, message): Said, now: Timestamp) -> Condition {
    let status = if holds { "True" } else { "False" };
    let old = telemetry.status.iter().flat_map(|status| &status.conditions);
    let same = old.into_iter().find(|old| old.type_ == type_.as_str() && old.status == status);
    Condition {
        type_: type_.as_str().to_owned(),
        status: status.to_owned(),
        reason: reason.as_str().to_owned(),
        message: message.chars().take(MAX_MESSAGE).collect(),
        observed_generation: telemetry.metadata.generation,
        last_transition_time: same.map_or(Time(now), |old| old.last_transition_time.clone()),
    }
}

fn endpoints(settings: &Settings) -> Endpoints {
    let at = |port: u16| format!("http://{}.{}:{port}", names::OTLP, settings.namespace);
    let otlp = OtlpEndpoints { grpc: at(OTLP_GRPC_PORT), http: at(OTLP_HTTP_PORT) };
    Endpoints { otlp: Some(otlp), opencensus: settings.opencensus.then(|| at(OPENCENSUS_PORT)) }
}
