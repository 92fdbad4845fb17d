//! The trait of authorizers, and their combination.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::api::StatusError;

use super::{AuthorizationAttributes, user::MASTERS_GROUP};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    Allow,
    /// Refuse the request, whatever the other authorizers decide.
    Deny,
    /// Leave the decision to the next authorizer; if none allows the request, it is refused.
    NoOpinion,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizationDecision {
    pub kind: DecisionKind,
    /// A message for users; often empty.
    pub reason: Arc<str>,
}

/// Authorizes requests: RBAC, a webhook.
pub trait Authorizer: Send + Sync {
    fn authorize<'a>(&'a self, attributes: &'a AuthorizationAttributes<'a>) -> BoxFuture<'a, AuthorizationDecision>;
}

/// Several authorizers in order: the first with an opinion decides. Members of `system:masters` are allowed
/// before any authorizer is called.
#[derive(Clone, Default)]
pub struct UnionAuthorizer {
    all: Vec<Arc<dyn Authorizer>>,
}

impl AuthorizationDecision {
    pub fn allow(reason: impl Into<Arc<str>>) -> Self {
        Self { kind: DecisionKind::Allow, reason: reason.into() }
    }

    pub fn deny(reason: impl Into<Arc<str>>) -> Self {
        Self { kind: DecisionKind::Deny, reason: reason.into() }
    }

    pub fn no_opinion(reason: impl Into<Arc<str>>) -> Self {
        Self { kind: DecisionKind::NoOpinion, reason: reason.into() }
    }

    pub fn is_allowed(&self) -> bool {
        self.kind == DecisionKind::Allow
    }

    /// An error, unless the request is allowed.
    pub fn check(&self, attributes: &AuthorizationAttributes<'_>) -> Result<(), StatusError> {
        if self.is_allowed() { Ok(()) } else { Err(attributes.forbidden_status(&self.reason)) }
    }
}

impl UnionAuthorizer {
    pub fn new(all: Vec<Arc<dyn Authorizer>>) -> Self {
        Self { all }
    }

    /// An error, unless the request is allowed.
    pub async fn check(&self, attributes: &AuthorizationAttributes<'_>) -> Result<(), StatusError> {
        self.decide(attributes).await.check(attributes)
    }

    pub async fn decide(&self, attributes: &AuthorizationAttributes<'_>) -> AuthorizationDecision {
        if attributes.user.is_in(MASTERS_GROUP) {
            return AuthorizationDecision::allow("");
        }
        let mut reasons: Vec<Arc<str>> = Vec::new();
        for authorizer in &self.all {
            let decision = authorizer.authorize(attributes).await;
            if decision.kind != DecisionKind::NoOpinion {
                return decision;
            }
            if !decision.reason.is_empty() {
                reasons.push(decision.reason);
            }
        }
        // All reasons are joined, as in kube-apiserver.
        match reasons.as_slice() {
            [one] => AuthorizationDecision::no_opinion(Arc::clone(one)),
            many => AuthorizationDecision::no_opinion(many.join("\n")),
        }
    }
}

impl Authorizer for UnionAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a AuthorizationAttributes<'a>) -> BoxFuture<'a, AuthorizationDecision> {
        Box::pin(self.decide(attributes))
    }
}

impl std::fmt::Debug for UnionAuthorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authorizers({})", self.all.len())
    }
}

#[cfg(test)]
mod tests;
