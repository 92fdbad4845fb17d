//! The condition `Ready`, the only one that both kinds have.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// The condition's type.
const READY: &str = "Ready";
/// A message that the API server would refuse to keep is cut, with room to spare for people who read it.
const MAX_MESSAGE: usize = 1024;

/// Why something is ready or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All children of a Head are ready.
    ChildrenReady,
    /// Some are not yet.
    ChildrenNotReady,
    /// One of them cannot be made, or says that it cannot go on.
    ChildRefused,
    /// The Deployment of a ChildA is available.
    DeploymentAvailable,
    /// It is on its way.
    DeploymentProgressing,
    /// The API server takes no such Deployment.
    DeploymentRefused,
}

impl Reason {
    /// As the condition has it.
    pub fn text(self) -> &'static str {
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

/// A state, without the time since when it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Why.
    pub reason: Reason,
    /// In words.
    pub message: String,
}

impl Ready {
    /// Says so.
    pub fn because(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// The list of conditions, given the one before: the time is that of the last change between true and false.
    pub fn conditions(&self, before: &[Condition], generation: Option<i64>, now: Timestamp) -> Vec<Condition> {
        let status = if self.reason.is_ready() { "True" } else { "False" };
        let since = find(before).filter(|old| old.status == status).map(|old| old.last_transition_time.clone());
        vec![Condition {
            type_: READY.to_owned(),
            status: status.to_owned(),
            reason: self.reason.text().to_owned(),
            message: self.message.chars().take(MAX_MESSAGE).collect(),
            observed_generation: generation,
            last_transition_time: since.unwrap_or(Time(now)),
        }]
    }
}

/// The condition among others.
pub fn find(conditions: &[Condition]) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == READY)
}

/// Whether an object of this generation is ready.
pub fn is_ready(conditions: &[Condition], generation: Option<i64>) -> bool {
    find(conditions).is_some_and(|ready| ready.status == "True" && ready.observed_generation == generation)
}

/// Whether it says that nothing will come of it unless somebody changes something.
pub fn is_refusal(ready: &Condition) -> bool {
    [Reason::ChildRefused, Reason::DeploymentRefused].iter().any(|reason| reason.text() == ready.reason)
}

/// Why an object of this generation will not get anywhere by itself, if that is so.
pub fn refusal(conditions: &[Condition], generation: Option<i64>) -> Option<&str> {
    let ready = find(conditions).filter(|ready| ready.observed_generation == generation && is_refusal(ready))?;
    Some(&ready.message)
}
