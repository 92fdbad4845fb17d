//! The status of a Scheduler. Pure.

use k8s_openapi::{
    api::apps::v1::Deployment,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

use crate::{
    api::{ProbedConfiguration, RunningScheduler, Scheduler, SchedulerStatus},
    configuration::{ConfigurationProblem, join_problems},
};

/// Longer messages are cut; the API server's limit is 32 KiB.
const MAX_MESSAGE_CHARS: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReconcileFindings {
    /// The specification is invalid.
    Refused { why: String },
    /// The scheduler has this configuration.
    Configured {
        revision: String,
        /// Whether its Deployment is available.
        available: bool,
        probe: ProbeResult,
    },
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The Scheduler asks for no probe.
    NotRequested,
    Waiting,
    /// No node is feasible, for this reason.
    Unschedulable(String),
    Bound(String),
}

impl ReconcileFindings {
    /// The specification is invalid.
    pub fn refused(problems: &[ConfigurationProblem]) -> Self {
        Self::Refused { why: join_problems(problems) }
    }
}

/// The part of the status that the operator writes: all but `running`.
pub fn scheduler_status(scheduler: &Scheduler, findings: &ReconcileFindings, now: Timestamp) -> SchedulerStatus {
    let before = scheduler.status.clone().unwrap_or_default();
    let generation = scheduler.metadata.generation;
    let running = before.running.as_ref();
    let (accepted, ready) = match findings {
        ReconcileFindings::Refused { why } => {
            (SchedulerConditionContent::not_holding("Refused", why.clone()), rejected_configuration_content(running))
        }
        ReconcileFindings::Configured { revision, available, probe } => {
            let good = SchedulerConditionContent::holding("Accepted", "the configuration is valid".to_owned());
            (good, ready_content(revision, *available, probe, running))
        }
    };
    let conditions = [("Accepted", accepted), ("Ready", ready)];
    let conditions = conditions.map(|(kind, verdict)| verdict.condition(kind, &before.conditions, generation, now));
    let (revision, probed) = match findings {
        ReconcileFindings::Configured { revision, probe: ProbeResult::Bound(node), .. } => {
            let probed = ProbedConfiguration { revision: revision.clone(), node: node.clone() };
            (Some(revision.clone()), Some(probed))
        }
        ReconcileFindings::Configured { revision, .. } => (Some(revision.clone()), before.probed),
        ReconcileFindings::Refused { .. } => (before.revision, before.probed),
    };
    let observed_generation = generation;
    let running = before.running;
    SchedulerStatus { observed_generation, conditions: conditions.into(), revision, probed, running }
}

/// Whether every pod is available and of the current template, and no other pod is left.
pub fn is_available(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
    let wanted = spec.replicas.unwrap_or(1);
    status.observed_generation >= deployment.metadata.generation
        && [status.replicas, status.updated_replicas, status.available_replicas]
            .iter()
            .all(|count| count.unwrap_or_default() == wanted)
}

/// The previous configuration stays in use.
fn rejected_configuration_content(running: Option<&RunningScheduler>) -> SchedulerConditionContent {
    let message = match running.and_then(|running| running.revision.as_deref()) {
        Some(revision) => format!("the scheduler continues with revision {revision}"),
        None => "no scheduler is running yet".to_owned(),
    };
    SchedulerConditionContent::not_holding("Refused", message)
}

/// The content of `Ready`. The message during progress does not name the step, so that the status is written
/// once and not for each step.
fn ready_content(
    revision: &str,
    available: bool,
    probe: &ProbeResult,
    running: Option<&RunningScheduler>,
) -> SchedulerConditionContent {
    if let Some(refused) = running.and_then(|running| running.refused.as_ref()).filter(|it| it.revision == revision) {
        return SchedulerConditionContent::not_holding("RefusedByScheduler", refused.reason.clone());
    }
    if let ProbeResult::Unschedulable(why) = probe {
        return SchedulerConditionContent::not_holding(
            "ProbeUnschedulable",
            format!("the test pod of revision {revision} is unschedulable: {why}"),
        );
    }
    let proven = matches!(probe, ProbeResult::NotRequested | ProbeResult::Bound(_));
    if available && proven && has_applied(running, revision) {
        return SchedulerConditionContent::holding("Running", format!("the scheduler uses revision {revision}"));
    }
    SchedulerConditionContent::not_holding(
        "Progressing",
        format!("waiting for the scheduler to use revision {revision}"),
    )
}

/// Whether the scheduler reports that it uses this configuration.
pub fn has_applied(running: Option<&RunningScheduler>, revision: &str) -> bool {
    running.is_some_and(|running| running.revision.as_deref() == Some(revision))
}

struct SchedulerConditionContent {
    holds: bool,
    reason: &'static str,
    message: String,
}

impl SchedulerConditionContent {
    fn holding(reason: &'static str, message: String) -> Self {
        Self { holds: true, reason, message }
    }

    fn not_holding(reason: &'static str, message: String) -> Self {
        Self { holds: false, reason, message }
    }

    /// The condition. Its transition time is that of the last change between true and false.
    fn condition(self, kind: &str, before: &[Condition], generation: Option<i64>, now: Timestamp) -> Condition {
        let status = if self.holds { "True" } else { "False" };
        let before = before.iter().find(|old| old.type_ == kind && old.status == status);
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: self.reason.to_owned(),
            message: self.message.chars().take(MAX_MESSAGE_CHARS).collect(),
            observed_generation: generation,
            last_transition_time: before.map_or(Time(now), |old| old.last_transition_time.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
