//! Computes the status of a pipeline. Pure.
//!
//! Conditions refer to the generation that was reconciled; the state summarizes them. *Guaranteed*: no text in
//! it comes from a Secret. Conditions that did not change keep their time, so that a status without news equals
//! the one before.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kubewake_api::{
    ConditionReason, ConditionType, DeliveryOutcome, SpecProblem, State,
    v1alpha1::{PipelineStatus, ShutdownDrops},
};

use crate::{
    feedback::{
        collector_readiness::CollectorReadiness,
        delivery_health::{DeliveryHealth, RolloutState},
        shutdown_losses::{self, ShutdownLoss},
    },
    layer::LayerOutcome,
    model::pipeline_key::PipelineKey,
    pipeline::{pipeline_cache::PipelineState, slot_lock::Slot},
};

#[cfg(test)]
mod tests;

/// The condition that shows that a pipeline's latest generation is in effect.
pub const READY_CONDITION: &str = "CollectorReady";
const CONFIGURED_MESSAGE: &str = "the pipeline is part of the collectors' configuration";
/// The limit of a condition's message.
pub(crate) const MAX_MESSAGE_CHARS: usize = 2048;

/// The input of a pipeline's status.
#[derive(Debug)]
pub struct PipelineFacts<'a> {
    pub id: &'a PipelineKey,
    /// The generation that was reconciled.
    pub generation: Option<i64>,
    /// The destination, as far as it is no secret.
    pub backend: String,
    pub pipeline: &'a PipelineState,
    /// The result of the last run of the layer.
    pub outcome: &'a LayerOutcome,
    pub collectors: &'a CollectorReadiness,
    /// Its delivery health, as collectors report it.
    pub health: Option<DeliveryHealth>,
    /// How many pipelines of its kind may be active.
    pub slots: usize,
    /// Warnings that depend on the collectors' settings.
    pub warnings: Vec<SpecProblem>,
    /// Losses at the end of collectors that are not in the status yet.
    pub losses: Vec<ShutdownLoss>,
}

struct ConditionContent {
    type_: ConditionType,
    status: Option<bool>,
    reason: ConditionReason,
    message: String,
}

/// The new status, given the one before.
pub fn status(before: Option<&PipelineStatus>, facts: &PipelineFacts<'_>, now: Timestamp) -> PipelineStatus {
    let old = before.map(|before| before.conditions.as_slice()).unwrap_or_default();
    let drops =
        shutdown_losses::total_drops(before.and_then(|before| before.dropped_at_shutdown.as_ref()), &facts.losses);
    let delivering = delivering_content(facts, old, drops.as_ref(), now);
    let said = [accepted_content(facts), configured_content(facts, old), collector_ready_content(facts), delivering];
    let (state, reason) = overall_state(facts, &said);
    PipelineStatus {
        observed_generation: facts.generation,
        state: Some(state),
        reason: Some(reason.as_str().to_owned()),
        ready: facts.is_carried().then(|| facts.collectors.to_string()),
        backend: Some(facts.backend.clone()).filter(|backend| !backend.is_empty()),
        dropped_at_shutdown: drops,
        conditions: said.into_iter().map(|said| said.into_condition(old, facts.generation, now)).collect(),
    }
}

/// The status of a pipeline that is being deleted.
pub fn terminating_status(before: Option<&PipelineStatus>, meta: &ObjectMeta, now: Timestamp) -> PipelineStatus {
    let old = before.map(|before| before.conditions.as_slice()).unwrap_or_default();
    let finalizers = meta.finalizers.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
    let held = if finalizers.is_empty() { String::new() } else { format!("; waiting for finalizers: {finalizers}") };
    let message = format!("the pipeline is being deleted, and the collectors no longer run it{held}");
    let said = |type_, status| ConditionContent {
        type_,
        status,
        reason: ConditionReason::Terminating,
        message: message.clone(),
    };
    let said = [
        said(ConditionType::Accepted, Some(false)),
        said(ConditionType::Configured, Some(false)),
        said(ConditionType::CollectorReady, Some(false)),
        said(ConditionType::Delivering, None),
    ];
    PipelineStatus {
        observed_generation: meta.generation,
        state: Some(State::Terminating),
        reason: Some(ConditionReason::Terminating.as_str().to_owned()),
        ready: None,
        backend: before.and_then(|before| before.backend.clone()),
        dropped_at_shutdown: before.and_then(|before| before.dropped_at_shutdown.clone()),
        conditions: said.into_iter().map(|said| said.into_condition(old, meta.generation, now)).collect(),
    }
}

impl PipelineFacts<'_> {
    fn is_rendered(&self) -> bool {
        self.outcome.rendered.contains(self.id)
    }

    /// Whether it needs the collectors on the nodes.
    fn reads_logs(&self) -> bool {
        self.pipeline.valid.as_ref().is_some_and(|valid| valid.reads_logs())
    }

    /// Whether there are collectors that could carry it.
    fn is_carried(&self) -> bool {
        self.is_rendered() && self.collectors.exist()
    }

    /// Whether its current spec is valid, and it has a slot.
    fn is_accepted(&self) -> bool {
        self.pipeline.problems.is_empty() && self.pipeline.slot == Some(Slot::Held)
    }
}

fn accepted_content(facts: &PipelineFacts<'_>) -> ConditionContent {
    let said = |status, reason, message: String| ConditionContent {
        type_: ConditionType::Accepted,
        status: Some(status),
        reason,
        message,
    };
    if let [first, ..] = facts.pipeline.problems.as_slice() {
        let words: Vec<String> = facts.pipeline.problems.iter().map(ToString::to_string).collect();
        return said(false, first.reason, words.join("; "));
    }
    if facts.pipeline.slot != Some(Slot::Held) {
        let message = format!(
            "all slots for pipelines of {} are in use ({}): the pipeline waits until another one is deleted",
            facts.id.signal, facts.slots
        );
        return said(false, ConditionReason::Pending, message);
    }
    let warnings = facts.pipeline.valid.as_ref().map(|valid| valid.warnings()).unwrap_or_default();
    let words: Vec<String> = warnings.iter().chain(&facts.warnings).map(ToString::to_string).collect();
    let expires = warnings.iter().any(|warning| warning.reason == ConditionReason::CertificateExpiresSoon);
    let reason = if expires { ConditionReason::CertificateExpiresSoon } else { ConditionReason::Valid };
    said(true, reason, if words.is_empty() { "the spec is valid".to_owned() } else { words.join("; ") })
}

fn configured_content(facts: &PipelineFacts<'_>, old: &[Condition]) -> ConditionContent {
    let said = |status, reason, message: &str| ConditionContent {
        type_: ConditionType::Configured,
        status: Some(status),
        reason,
        message: message.to_owned(),
    };
    let failure = facts.outcome.failure_for(facts.reads_logs());
    if let Some(failure) = failure.filter(|_| facts.pipeline.slot == Some(Slot::Held)) {
        return said(false, ConditionReason::ApplyFailed, &failure.message);
    }
    if let Some(why) = facts.outcome.refused.get(facts.id) {
        return said(false, ConditionReason::DocumentRefused, why);
    }
    if !facts.is_accepted() {
        let words =
            if facts.is_rendered() { "the last valid spec stays in effect" } else { "the pipeline is not accepted" };
        return said(false, ConditionReason::NotAccepted, words);
    }
    if !facts.is_rendered() {
        let is_asked = facts.pipeline.valid.as_ref().is_some_and(|valid| valid.is_rendered());
        return if is_asked {
            said(
                false,
                ConditionReason::RolloutInProgress,
                "the pipeline is not part of the collectors' configuration yet",
            )
        } else {
            let is_paused = facts.pipeline.valid.as_ref().is_some_and(|valid| valid.is_paused());
            said(
                false,
                ConditionReason::Paused,
                if is_paused { "paused by spec.paused" } else { "no input is enabled" },
            )
        };
    }
    // A condition about an earlier generation does not count.
    let is_said = |old: &Condition| {
        let is_current = old.observed_generation == facts.generation;
        old.type_ == ConditionType::Configured.as_str() && old.status == "True" && is_current
    };
    let is_read =
        |it: &DeliveryHealth| it.rollout == RolloutState::InForce && facts.outcome.documents.is_superset(&it.documents);
    match &facts.health {
        Some(DeliveryHealth { rollout: RolloutState::Incomplete(reason, words), .. }) => said(false, *reason, words),
        Some(verdict) if is_read(verdict) => said(true, ConditionReason::Configured, CONFIGURED_MESSAGE),
        // Running collectors may still have the document before: none has reported this one.
        _ if facts.collectors.are_serving() && !old.iter().any(is_said) => {
            said(false, ConditionReason::RolloutInProgress, "waiting for the collectors to load the new configuration")
        }
        _ => said(true, ConditionReason::Configured, CONFIGURED_MESSAGE),
    }
}

fn collector_ready_content(facts: &PipelineFacts<'_>) -> ConditionContent {
    let (status, reason, message) = match facts.collectors {
        _ if !facts.is_rendered() => {
            (false, ConditionReason::CollectorNotNeeded, "the pipeline needs no collectors".to_owned())
        }
        collectors if collectors.are_serving() && !collectors.are_stuck() => {
            (true, ConditionReason::CollectorReady, collectors.describe())
        }
        collectors => (false, ConditionReason::CollectorNotReady, collectors.describe()),
    };
    ConditionContent { type_: ConditionType::CollectorReady, status: Some(status), reason, message }
}

fn delivering_content(
    facts: &PipelineFacts<'_>,
    old: &[Condition],
    drops: Option<&ShutdownDrops>,
    now: Timestamp,
) -> ConditionContent {
    let type_ = ConditionType::Delivering;
    let unknown = || ConditionContent {
        type_,
        status: None,
        reason: ConditionReason::Unknown,
        message: "the collectors have not reported the health of the pipeline yet".to_owned(),
    };
    let is_recent =
        |drops: &&ShutdownDrops| now.duration_since(drops.last_time.0) < shutdown_losses::RECENT_LOSS_WINDOW;
    let is_worse = |verdict: &DeliveryHealth| {
        matches!(
            verdict.delivery,
            DeliveryOutcome::DataDropped | DeliveryOutcome::BackendUnreachable | DeliveryOutcome::BackendRefuses
        )
    };
    let says_worse = facts.health.as_ref().is_some_and(is_worse);
    match &facts.health {
        _ if !facts.is_rendered() => unknown(),
        // A present problem of the backend comes first: it may be why something was lost.
        _ if !says_worse && drops.filter(is_recent).is_some() => ConditionContent {
            type_,
            status: Some(false),
            reason: ConditionReason::DataDropped,
            message: drops.map(loss_message).unwrap_or_default(),
        },
        Some(verdict) => ConditionContent {
            type_,
            status: (verdict.delivery != DeliveryOutcome::Unknown).then(|| verdict.delivery.is_healthy()),
            reason: verdict.delivery.reason(),
            message: verdict.message.clone(),
        },
        // An operator that has just started keeps the condition of the one before it.
        None => ConditionContent::from_previous(type_, old).unwrap_or_else(unknown),
    }
}

fn loss_message(drops: &ShutdownDrops) -> String {
    let ShutdownDrops { items, last_time: Time(at) } = drops;
    format!(
        "data was dropped lately: a collector terminated at {at} before it delivered all data ({items} items dropped since the pipeline was created)"
    )
}

/// The state and its reason: the first condition that is not met decides.
fn overall_state(facts: &PipelineFacts<'_>, said: &[ConditionContent; 4]) -> (State, ConditionReason) {
    let [accepted, configured, collectors, delivering] = said;
    if !facts.pipeline.problems.is_empty() {
        let state = if facts.is_rendered() { State::Degraded } else { State::Invalid };
        return (state, accepted.reason);
    }
    if accepted.status != Some(true) {
        return (State::Pending, accepted.reason);
    }
    if configured.status != Some(true) {
        // A pipeline that does not run yet is pending, not degraded.
        let is_new = configured.reason == ConditionReason::ApplyFailed && collectors.status != Some(true);
        let waits = is_new || matches!(configured.reason, ConditionReason::Paused | ConditionReason::RolloutInProgress);
        return (if waits { State::Pending } else { State::Degraded }, configured.reason);
    }
    if collectors.status != Some(true) {
        // Collectors that work continue while others do not start.
        let state = if facts.collectors.are_serving() { State::Degraded } else { State::Pending };
        return (state, collectors.reason);
    }
    if delivering.status == Some(false) {
        return (State::Degraded, delivering.reason);
    }
    let reason = if accepted.reason == ConditionReason::Valid { delivering.reason } else { accepted.reason };
    (State::Ready, reason)
}

impl ConditionContent {
    fn from_previous(type_: ConditionType, old: &[Condition]) -> Option<Self> {
        let before = old.iter().find(|old| old.type_ == type_.as_str())?;
        let reason = *ConditionReason::ALL.iter().find(|reason| reason.as_str() == before.reason)?;
        let status = (before.status != "Unknown").then(|| before.status == "True");
        Some(Self { type_, status, reason, message: before.message.clone() })
    }

    fn into_condition(self, old: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
        let status = match self.status {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        };
        let type_ = self.type_.as_str();
        let before = old.iter().find(|old| old.type_ == type_ && old.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: self.reason.as_str().to_owned(),
            message: self.message.chars().take(MAX_MESSAGE_CHARS).collect(),
            observed_generation: generation,
            last_transition_time: before.map_or(Time(now), |before| before.last_transition_time.clone()),
        }
    }
}
