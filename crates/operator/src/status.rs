//! What a pipeline's status says. Pure.
//!
//! Conditions tell what holds, each for the generation that was looked at; the state is all of them in one word. *Guaranteed*: no text in it comes from a Secret; what did not change keeps its
//! time, so that a status which says nothing new is equal to the one before.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kubewake_api::{
    ConditionType, Delivery, Problem, Reason, State,
    v1alpha1::{PipelineStatus, ShutdownDrops},
};

use crate::{
    desk::{Entry, Id},
    layer::Outcome,
    lock::Slot,
    losses::{self, Loss},
    ready::Collectors,
    verdicts::{Rollout, Verdict},
};

#[cfg(test)]
mod tests;

/// The condition that says that a pipeline does what its latest version asks for.
pub const READY: &str = "CollectorReady";
const CONFIGURED: &str = "it is part of the collectors' document";
/// The API server keeps no longer message, and nobody reads one.
pub(crate) const MAX_MESSAGE: usize = 2048;

/// All that is known of a pipeline.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Which one it is.
    pub id: &'a Id,
    /// The generation that was looked at.
    pub generation: Option<i64>,
    /// Where it sends to, as far as that is no secret.
    pub backend: String,
    /// What was found.
    pub entry: &'a Entry,
    /// What came of the last run.
    pub outcome: &'a Outcome,
    /// The collectors that carry it.
    pub collectors: &'a Collectors,
    /// What they say of it.
    pub verdict: Option<Verdict>,
    /// How many pipelines of its kind may be active.
    pub slots: usize,
    /// What is unwise about it where collectors run as they do.
    pub warnings: Vec<Problem>,
    /// What collectors dropped of it when they ended, as far as the status before does not say it.
    pub losses: Vec<Loss>,
}

/// A condition without its times.
struct Said {
    type_: ConditionType,
    status: Option<bool>,
    reason: Reason,
    message: String,
}

/// The status, given the one before.
pub fn status(before: Option<&PipelineStatus>, facts: &Facts<'_>, now: Timestamp) -> PipelineStatus {
    let old = before.map(|before| before.conditions.as_slice()).unwrap_or_default();
    let drops = losses::total(before.and_then(|before| before.dropped_at_shutdown.as_ref()), &facts.losses);
    let delivering = delivering(facts, old, drops.as_ref(), now);
    let said = [accepted(facts), configured(facts, old), collector_ready(facts), delivering];
    let (state, reason) = state(facts, &said);
    PipelineStatus {
        observed_generation: facts.generation,
        state: Some(state),
        reason: Some(reason.as_str().to_owned()),
        ready: facts.is_carried().then(|| facts.collectors.to_string()),
        backend: Some(facts.backend.clone()).filter(|backend| !backend.is_empty()),
        dropped_at_shutdown: drops,
        conditions: said.into_iter().map(|said| said.condition(old, facts.generation, now)).collect(),
    }
}

/// The status of a pipeline that is being deleted.
pub fn terminating(before: Option<&PipelineStatus>, meta: &ObjectMeta, now: Timestamp) -> PipelineStatus {
    let old = before.map(|before| before.conditions.as_slice()).unwrap_or_default();
    let finalizers = meta.finalizers.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ");
    let held = if finalizers.is_empty() { String::new() } else { format!("; finalizers hold it: {finalizers}") };
    let message = format!("it is being deleted, and collectors carry it no more{held}");
    let said = |type_, status| Said { type_, status, reason: Reason::Terminating, message: message.clone() };
    let said = [
        said(ConditionType::Accepted, Some(false)),
        said(ConditionType::Configured, Some(false)),
        said(ConditionType::CollectorReady, Some(false)),
        said(ConditionType::Delivering, None),
    ];
    PipelineStatus {
        observed_generation: meta.generation,
        state: Some(State::Terminating),
        reason: Some(Reason::Terminating.as_str().to_owned()),
        ready: None,
        backend: before.and_then(|before| before.backend.clone()),
        dropped_at_shutdown: before.and_then(|before| before.dropped_at_shutdown.clone()),
        conditions: said.into_iter().map(|said| said.condition(old, meta.generation, now)).collect(),
    }
}

impl Facts<'_> {
    fn is_rendered(&self) -> bool {
        self.outcome.rendered.contains(self.id)
    }

    /// Whether there are collectors that could carry it.
    fn is_carried(&self) -> bool {
        self.is_rendered() && self.collectors.are_there()
    }

    /// Whether it is valid as it is, and has a slot.
    fn is_accepted(&self) -> bool {
        self.entry.problems.is_empty() && self.entry.slot == Some(Slot::Held)
    }
}

fn accepted(facts: &Facts<'_>) -> Said {
    let said = |status, reason, message: String| Said {
        type_: ConditionType::Accepted,
        status: Some(status),
        reason,
        message,
    };
    if let [first, ..] = facts.entry.problems.as_slice() {
        let words: Vec<String> = facts.entry.problems.iter().map(ToString::to_string).collect();
        return said(false, first.reason, words.join("; "));
    }
    if facts.entry.slot != Some(Slot::Held) {
        let message = format!(
            "all slots for pipelines of {} are used up ({}); it takes over when one is deleted",
            facts.id.signal, facts.slots
        );
        return said(false, Reason::Pending, message);
    }
    let warnings = facts.entry.valid.as_ref().map(|valid| valid.warnings()).unwrap_or_default();
    let words: Vec<String> = warnings.iter().chain(&facts.warnings).map(ToString::to_string).collect();
    let expires = warnings.iter().any(|warning| warning.reason == Reason::CertificateExpiresSoon);
    let reason = if expires { Reason::CertificateExpiresSoon } else { Reason::Valid };
    said(true, reason, if words.is_empty() { "everything is right".to_owned() } else { words.join("; ") })
}

fn configured(facts: &Facts<'_>, old: &[Condition]) -> Said {
    let said = |status, reason, message: &str| Said {
        type_: ConditionType::Configured,
        status: Some(status),
        reason,
        message: message.to_owned(),
    };
    if let Some(failure) = facts.outcome.failure.as_ref().filter(|_| facts.entry.slot == Some(Slot::Held)) {
        return said(false, Reason::ApplyFailed, &failure.words);
    }
    if let Some(why) = facts.outcome.refused.get(facts.id) {
        return said(false, Reason::DocumentRefused, why);
    }
    if !facts.is_accepted() {
        let words = if facts.is_rendered() { "what was valid before goes on" } else { "it is not accepted" };
        return said(false, Reason::NotAccepted, words);
    }
    if !facts.is_rendered() {
        let is_asked = facts.entry.valid.as_ref().is_some_and(|valid| valid.is_rendered());
        return match is_asked {
            false => said(false, Reason::Paused, "nothing flows, as it says so"),
            true => said(false, Reason::RolloutInProgress, "it is not part of the document yet"),
        };
    }
    // What was said of an earlier generation is not said of this one.
    let is_said = |old: &Condition| {
        let is_current = old.observed_generation == facts.generation;
        old.type_ == ConditionType::Configured.as_str() && old.status == "True" && is_current
    };
    let is_read =
        |it: &Verdict| it.rollout == Rollout::InForce && facts.outcome.documents.contains(it.document.as_str());
    match &facts.verdict {
        Some(Verdict { rollout: Rollout::Incomplete(reason, words), .. }) => said(false, *reason, words),
        Some(verdict) if is_read(verdict) => said(true, Reason::Configured, CONFIGURED),
        // Collectors that run already may go by the document before: nobody has seen them go by this one.
        _ if facts.collectors.work() && !old.iter().any(is_said) => {
            said(false, Reason::RolloutInProgress, "collectors have not said yet that they have read the new document")
        }
        _ => said(true, Reason::Configured, CONFIGURED),
    }
}

fn collector_ready(facts: &Facts<'_>) -> Said {
    let (status, reason, message) = match facts.collectors {
        _ if !facts.is_rendered() => (false, Reason::CollectorNotNeeded, "it needs no collectors".to_owned()),
        collectors if collectors.work() && !collectors.are_stuck() => {
            (true, Reason::CollectorReady, collectors.describe())
        }
        collectors => (false, Reason::CollectorNotReady, collectors.describe()),
    };
    Said { type_: ConditionType::CollectorReady, status: Some(status), reason, message }
}

fn delivering(facts: &Facts<'_>, old: &[Condition], drops: Option<&ShutdownDrops>, now: Timestamp) -> Said {
    let type_ = ConditionType::Delivering;
    let unknown = || Said {
        type_,
        status: None,
        reason: Reason::Unknown,
        message: "the collectors have not been asked".to_owned(),
    };
    let is_recent = |drops: &&ShutdownDrops| now.duration_since(drops.last_time.0) < losses::LATELY;
    let is_worse = |verdict: &Verdict| {
        matches!(verdict.delivery, Delivery::DataDropped | Delivery::BackendUnreachable | Delivery::BackendRefuses)
    };
    let says_worse = facts.verdict.as_ref().is_some_and(is_worse);
    match &facts.verdict {
        _ if !facts.is_rendered() => unknown(),
        // What is the matter with the backend now is said first: it may well be why something was lost.
        _ if !says_worse && drops.filter(is_recent).is_some() => Said {
            type_,
            status: Some(false),
            reason: Reason::DataDropped,
            message: drops.map(lost).unwrap_or_default(),
        },
        Some(verdict) => Said {
            type_,
            status: (verdict.delivery != Delivery::Unknown).then(|| verdict.delivery.is_well()),
            reason: verdict.delivery.reason(),
            message: verdict.message.clone(),
        },
        // An operator that has just started goes by what the one before it said.
        None => Said::again(type_, old).unwrap_or_else(unknown),
    }
}

fn lost(drops: &ShutdownDrops) -> String {
    let ShutdownDrops { items, last_time: Time(at) } = drops;
    format!(
        "data was dropped lately: a collector ended at {at} before it could deliver ({items} items since the pipeline was made)"
    )
}

/// All of it in one word, and why: the first condition that is not as it should be decides.
fn state(facts: &Facts<'_>, said: &[Said; 4]) -> (State, Reason) {
    let [accepted, configured, collectors, delivering] = said;
    if !facts.entry.problems.is_empty() {
        let state = if facts.is_rendered() { State::Degraded } else { State::Invalid };
        return (state, accepted.reason);
    }
    if accepted.status != Some(true) {
        return (State::Pending, accepted.reason);
    }
    if configured.status != Some(true) {
        // What does not run at all does not run badly.
        let is_new = configured.reason == Reason::ApplyFailed && collectors.status != Some(true);
        let waits = is_new || matches!(configured.reason, Reason::Paused | Reason::RolloutInProgress);
        return (if waits { State::Pending } else { State::Degraded }, configured.reason);
    }
    if collectors.status != Some(true) {
        // Where some work and others do not start, those that work go on.
        let state = if facts.collectors.work() { State::Degraded } else { State::Pending };
        return (state, collectors.reason);
    }
    if delivering.status == Some(false) {
        return (State::Degraded, delivering.reason);
    }
    let reason = if accepted.reason == Reason::Valid { delivering.reason } else { accepted.reason };
    (State::Ready, reason)
}

impl Said {
    /// What was said before.
    fn again(type_: ConditionType, old: &[Condition]) -> Option<Self> {
        let before = old.iter().find(|old| old.type_ == type_.as_str())?;
        let reason = *Reason::ALL.iter().find(|reason| reason.as_str() == before.reason)?;
        let status = (before.status != "Unknown").then(|| before.status == "True");
        Some(Self { type_, status, reason, message: before.message.clone() })
    }

    fn condition(self, old: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
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
            message: self.message.chars().take(MAX_MESSAGE).collect(),
            observed_generation: generation,
            last_transition_time: before.map_or(Time(now), |before| before.last_transition_time.clone()),
        }
    }
}
