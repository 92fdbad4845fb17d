//! The condition `Ready`, the only one of both kinds.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

const READY_CONDITION: &str = "Ready";
/// Longer messages are cut; the API server's limit is 32 KiB.
const MAX_MESSAGE_CHARS: usize = 1024;

/// The reason of the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyReason {
    /// All children of the Head are ready.
    ChildrenReady,
    /// Some children are not ready yet.
    ChildrenNotReady,
    /// A child was rejected, or reports that its own child was.
    ChildRefused,
    /// The Deployment of a ChildA is available.
    DeploymentAvailable,
    /// The Deployment is not available yet.
    DeploymentProgressing,
    /// The API server rejects the Deployment.
    DeploymentRefused,
}

impl ReadyReason {
    /// The reason as it is in the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChildrenReady => "ChildrenReady",
            Self::ChildrenNotReady => "ChildrenNotReady",
            Self::ChildRefused => "ChildRefused",
            Self::DeploymentAvailable => "DeploymentAvailable",
            Self::DeploymentProgressing => "DeploymentProgressing",
            Self::DeploymentRefused => "DeploymentRefused",
        }
    }

    fn is_ready(self) -> bool {
        matches!(self, Self::ChildrenReady | Self::DeploymentAvailable)
    }
}

/// The content of the condition, without its transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyState {
    pub reason: ReadyReason,
    pub message: String,
}

impl ReadyState {
    pub fn new(reason: ReadyReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// The list of conditions. The transition time is that of the last change between true and false.
    pub fn to_conditions(&self, before: &[Condition], generation: Option<i64>, now: Timestamp) -> Vec<Condition> {
        let status = if self.reason.is_ready() { "True" } else { "False" };
        let since =
            find_ready_condition(before).filter(|old| old.status == status).map(|old| old.last_transition_time.clone());
        vec![Condition {
            type_: READY_CONDITION.to_owned(),
            status: status.to_owned(),
            reason: self.reason.as_str().to_owned(),
            message: self.message.chars().take(MAX_MESSAGE_CHARS).collect(),
            observed_generation: generation,
            last_transition_time: since.unwrap_or(Time(now)),
        }]
    }
}

pub fn find_ready_condition(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == READY_CONDITION)
}

/// Whether an object of this generation is ready.
pub fn is_ready(conditions: &[Condition], generation: Option<i64>) -> bool {
    find_ready_condition(conditions)
        .is_some_and(|ready| ready.status == "True" && ready.observed_generation == generation)
}

/// Whether the condition reports a problem that needs a change by somebody.
pub fn is_rejection(ready: &Condition) -> bool {
    [ReadyReason::ChildRefused, ReadyReason::DeploymentRefused].iter().any(|reason| reason.as_str() == ready.reason)
}

/// The message of such a problem, if an object of this generation has one.
pub fn rejection_message(conditions: &[Condition], generation: Option<i64>) -> Option<&str> {
    let ready = find_ready_condition(conditions)
        .filter(|ready| ready.observed_generation == generation && is_rejection(ready))?;
    Some(&ready.message)
}
