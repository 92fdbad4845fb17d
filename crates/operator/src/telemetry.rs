//! What is said of the Telemetry: whether it is valid, whether the collectors run, and where programs send to.

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
use serde_json::json;

use crate::{context::World, kind::Kind, names, ready::Collectors};

#[cfg(test)]
mod tests;

/// Writes the status if it says something new.
pub async fn report(world: &World) {
    let Some(telemetry) = world.telemetry() else { return };
    let mut telemetry = (*telemetry).clone();
    telemetry.status = world.written.after(&telemetry).or(telemetry.status);
    let settings = Settings::of(&telemetry.spec, &world.options.namespace);
    let is_there = world.live.get(Kind::Deployment, names::GATEWAY).is_some();
    let collectors = is_there.then(|| Collectors::of(&world.live, false).with(&world.pods));
    let status = status(&telemetry, &settings, collectors.as_ref(), Timestamp::now());
    if telemetry.status.as_ref() == Some(&status) {
        return;
    }
    let (api, patch) = (Api::<Telemetry>::all(world.client.clone()), Patch::Merge(json!({"status": status})));
    match api.patch_status(&telemetry.name_any(), &PatchParams::default(), &patch).await {
        Ok(answer) => world.written.note(&answer, status),
        Err(error) => {
            tracing::warn!(kind = "Telemetry", name = telemetry.name_any(), %error, "the status cannot be written")
        }
    }
}

/// The status. Without pipelines there are no collectors, and nowhere to send to.
fn status(
    telemetry: &Telemetry,
    settings: &Result<Settings, Vec<Problem>>,
    collectors: Option<&Collectors>,
    now: Timestamp,
) -> TelemetryStatus {
    let accepted = match settings {
        Ok(_) => (true, Reason::Valid, "everything is right".to_owned()),
        Err(problems) => {
            let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
            (false, Reason::SettingInvalid, format!("{}; what it said before holds", words.join("; ")))
        }
    };
    let ready = match collectors {
        None => (false, Reason::CollectorNotNeeded, "there is no pipeline".to_owned()),
        Some(collectors) if collectors.work() && !collectors.are_stuck() => {
            (true, Reason::CollectorReady, collectors.describe())
        }
        Some(collectors) => (false, Reason::CollectorNotReady, collectors.describe()),
    };
    let state = match (accepted.0, &ready) {
        (false, _) => State::Degraded,
        (true, (false, Reason::CollectorNotReady, _)) if collectors.is_some_and(Collectors::work) => State::Degraded,
        (true, (false, Reason::CollectorNotReady, _)) => State::Pending,
        (true, _) => State::Ready,
    };
    let endpoints = settings.as_ref().ok().filter(|_| collectors.is_some()).map(endpoints);
    let said = [(ConditionType::Accepted, accepted), (ConditionType::CollectorReady, ready)];
    let before = telemetry.status.as_ref();
    TelemetryStatus {
        observed_generation: telemetry.metadata.generation,
        state: Some(state),
        // What senders were told stays while something is wrong with the rest.
        endpoints: endpoints.or_else(|| before.filter(|_| settings.is_err())?.endpoints.clone()),
        conditions: said.into_iter().map(|(type_, said)| condition(telemetry, type_, said, now)).collect(),
    }
}

fn condition(
    telemetry: &Telemetry,
    type_: ConditionType,
    (holds, reason, message): (bool, Reason, String),
    now: Timestamp,
) -> Condition {
    let status = if holds { "True" } else { "False" };
    let old = telemetry.status.iter().flat_map(|status| &status.conditions);
    let same = old.into_iter().find(|old| old.type_ == type_.as_str() && old.status == status);
    Condition {
        type_: type_.as_str().to_owned(),
        status: status.to_owned(),
        reason: reason.as_str().to_owned(),
        message,
        observed_generation: telemetry.metadata.generation,
        last_transition_time: same.map_or(Time(now), |old| old.last_transition_time.clone()),
    }
}

fn endpoints(settings: &Settings) -> Endpoints {
    let at = |port: u16| format!("http://{}.{}:{port}", names::OTLP, settings.namespace);
    let otlp = OtlpEndpoints { grpc: at(OTLP_GRPC_PORT), http: at(OTLP_HTTP_PORT) };
    Endpoints { otlp: Some(otlp), opencensus: settings.opencensus.then(|| at(OPENCENSUS_PORT)) }
}
