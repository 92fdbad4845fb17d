//! What a Scheduler has come to. Pure.

use k8s_openapi::{
    api::apps::v1::Deployment,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use crate::{
    api::{Probed, Running, Scheduler, SchedulerStatus},
    configuration::{Problem, list},
};

/// The API server keeps no longer message, and nobody reads it.
const MAX_MESSAGE: usize = 4096;

/// What a reconcile found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Findings {
    /// The specification is no good.
    Refused {
        /// What is wrong.
        why: String,
    },
    /// The scheduler was given this configuration.
    Given {
        /// Which one.
        revision: String,
        /// Whether its Deployment runs as it should.
        available: bool,
        /// What a pod that tries it has come to.
        probe: Probe,
    },
}

/// What a pod that tries a configuration has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Nobody asked for one.
    NotAsked,
    /// It is under way.
    Waiting,
    /// There is no node for it, for this reason.
    Nowhere(String),
    /// It has this node.
    Bound(String),
}

impl Findings {
    /// The specification is no good.
    pub fn refused(problems: &[Problem]) -> Self {
        Self::Refused { why: list(problems) }
    }
}

/// What the operator writes: everything but what the scheduler says of itself.
pub fn of(scheduler: &Scheduler, findings: &Findings, now: Timestamp) -> SchedulerStatus {
    let before = scheduler.status.clone().unwrap_or_default();
    let generation = scheduler.metadata.generation;
    let running = before.running.as_ref();
    let (accepted, ready) = match findings {
        Findings::Refused { why } => (Verdict::no("Refused", why.clone()), still(running)),
        Findings::Given { revision, available, probe } => {
            let good = Verdict::yes("Accepted", "the configuration is a good one".to_owned());
            (good, ready(revision, *available, probe, running))
        }
    };
    let conditions = [("Accepted", accepted), ("Ready", ready)];
    let conditions = conditions.map(|(kind, verdict)| verdict.condition(kind, &before.conditions, generation, now));
    let (revision, probed) = match findings {
        Findings::Given { revision, probe: Probe::Bound(node), .. } => {
            let probed = Probed { revision: revision.clone(), node: node.clone() };
            (Some(revision.clone()), Some(probed))
        }
        Findings::Given { revision, .. } => (Some(revision.clone()), before.probed),
        Findings::Refused { .. } => (before.revision, before.probed),
    };
    let (observed_generation, running) = (generation, before.running);
    SchedulerStatus { observed_generation, conditions: conditions.into(), revision, probed, running }
}

/// Whether every pod is of the current template and available, and no other is left.
pub fn is_available(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
    let wanted = spec.replicas.unwrap_or(1);
    status.observed_generation >= deployment.metadata.generation
        && [status.replicas, status.updated_replicas, status.available_replicas]
            .iter()
            .all(|count| count.unwrap_or_default() == wanted)
}

/// The old configuration goes on.
fn still(running: Option<&Running>) -> Verdict {
    let message = match running.and_then(|running| running.revision.as_deref()) {
        Some(revision) => format!("the scheduler goes on with revision {revision}"),
        None => "there is no scheduler yet".to_owned(),
    };
    Verdict::no("Refused", message)
}

/// The one message while it is under way says nothing of how far it is, so that a status is written once and not for every step.
fn ready(revision: &str, available: bool, probe: &Probe, running: Option<&Running>) -> Verdict {
    if let Some(refused) = running.and_then(|running| running.refused.as_ref()).filter(|it| it.revision == revision) {
        return Verdict::no("RefusedByScheduler", refused.reason.clone());
    }
    if let Probe::Nowhere(why) = probe {
        return Verdict::no("ProbeUnschedulable", format!("a pod that tries revision {revision} gets no node: {why}"));
    }
    let proven = matches!(probe, Probe::NotAsked | Probe::Bound(_));
    if available && proven && has_taken(running, revision) {
        return Verdict::yes("Running", format!("the scheduler decides by revision {revision}"));
    }
    Verdict::no("Progressing", format!("the scheduler is to decide by revision {revision}"))
}

/// Whether the scheduler says that it decides by this configuration.
pub fn has_taken(running: Option<&Running>, revision: &str) -> bool {
    running.is_some_and(|running| running.revision.as_deref() == Some(revision))
}

struct Verdict {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl Verdict {
    fn yes(reason: &'static str, message: String) -> Self {
        Self { holds: true, reason, message }
    }

    fn no(reason: &'static str, message: String) -> Self {
        Self { holds: false, reason, message }
    }

    /// Its time is that of the last change between true and false.
    fn condition(self, kind: &str, before: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
        let status = if self.holds { "True" } else { "False" };
        let before = before.iter().find(|old| old.type_ == kind && old.status == status);
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: self.reason.to_owned(),
            message: self.message.chars().take(MAX_MESSAGE).collect(),
            observed_generation: generation,
            last_transition_time: before.map_or(Time(now), |old| old.last_transition_time.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
