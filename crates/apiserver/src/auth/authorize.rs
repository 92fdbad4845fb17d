//! The seam for authorizers, and how several of them decide together.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::api::Status;

use super::{Attributes, user::MASTERS};

/// What an authorizer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be done.
    Allow,
    /// It may not be done, whatever the other authorizers say.
    Deny,
    /// Let another one decide; if none allows, it may not be done.
    NoOpinion,
}

/// A verdict and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is decided.
    pub verdict: Verdict,
    /// For people; often empty.
    pub reason: Arc<str>,
}

/// Decides about requests: RBAC, a webhook.
pub trait Authorizer: Send + Sync {
    /// Whether a request may be served.
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Decision>;
}

/// Several authorizers in order: the first that has an opinion decides. Whoever is in `system:masters` is allowed before they are asked.
#[derive(Clone, Default)]
pub struct Authorizers {
    all: Vec<Arc<dyn Authorizer>>,
}

impl Decision {
    /// Allowed.
    pub fn allow(reason: impl Into<Arc<str>>) -> Self {
        Self { verdict: Verdict::Allow, reason: reason.into() }
    }

    /// Refused.
    pub fn deny(reason: impl Into<Arc<str>>) -> Self {
        Self { verdict: Verdict::Deny, reason: reason.into() }
    }

    /// Left to others.
    pub fn no_opinion(reason: impl Into<Arc<str>>) -> Self {
        Self { verdict: Verdict::NoOpinion, reason: reason.into() }
    }

    /// Whether it may be done.
    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }

    /// The refusal, unless it is allowed.
    pub fn check(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        if self.is_allowed() { Ok(()) } else { Err(attributes.forbidden(&self.reason)) }
    }
}

impl Authorizers {
    /// These, in this order.
    pub fn new(all: Vec<Arc<dyn Authorizer>>) -> Self {
        Self { all }
    }

    /// The refusal of a request, if it is refused.
    pub async fn check(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        self.decide(attributes).await.check(attributes)
    }

    /// The decision about a request.
    pub async fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        if attributes.user.is_in(MASTERS) {
            return Decision::allow("");
        }
        let mut reasons: Vec<Arc<str>> = Vec::new();
        for authorizer in &self.all {
            let decision = authorizer.authorize(attributes).await;
            if decision.verdict != Verdict::NoOpinion {
                return decision;
            }
            if !decision.reason.is_empty() {
                reasons.push(decision.reason);
            }
        }
        // As kube-apiserver does, so that every authorizer's reason is seen.
        match reasons.as_slice() {
            [one] => Decision::no_opinion(Arc::clone(one)),
            many => Decision::no_opinion(many.join("\n")),
        }
    }
}

impl Authorizer for Authorizers {
    fn authorize<'a>(&'a self, attributes: &'a Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(self.decide(attributes))
    }
}

impl std::fmt::Debug for Authorizers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authorizers({})", self.all.len())
    }
}

#[cfg(test)]
mod tests;
