//! Admission: what webhooks (`admission.k8s.io/v1`) and policies say about a write before it happens.
//!
//! - Configurations are compiled when they change and swapped as a whole: a request that no webhook wants costs one atomic load.
//! - Mutating webhooks run one after the other, by the name of their configuration; those that ask for it run once more if a later
//!   one changed the object. Validating ones run at the same time, and the first refusal counts.
//! - A webhook that hangs, lies or answers garbage follows its `failurePolicy`; a patch that does not apply fails the request
//!   whatever the policy, as kube-apiserver does it. Answers are bounded in size and time.
//! - Webhook configurations and admission policies are never sent to webhooks, so that a broken one can be repaired.
//! - Every call is a span, and carries the trace in its headers, also when spans are not exported.
//!
//! Assumed: a configuration was checked when it was written; what is wrong with one nevertheless shows when it is to be called.
//! Not done: `authorizer` in conditions, audit annotations (there is no audit log), parameters
//! of policies (one that has them fails as its `failurePolicy` says), and the type check in a policy's status.

pub(crate) mod answer;
mod call;
mod condition;
mod constraints;
mod endpoint;
mod enforce;
mod hook;
mod matching;
mod mutating;
mod policy;
mod review;
mod rule;
#[cfg(test)]
pub(crate) mod testing;
mod validating;
mod words;

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;

use self::matching::Subject;
use crate::{
    api::Status,
    client::Services,
    codec::query::{DeleteOptions, WriteOptions},
    handler::call::On,
};

pub use self::{
    hook::{Configuration, Hook},
    policy::{Binding, Policy},
};

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// How a write was asked for.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Options<'a> {
    Write(&'a WriteOptions),
    Delete(&'a DeleteOptions),
}

/// A write that is to be admitted.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What happens.
    pub operation: Operation,
    /// Where, and on whose behalf.
    pub on: On<'a>,
    /// How it was asked for.
    pub options: Options<'a>,
}

/// Which of the two sorts a webhook is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kubernetes' own")]
pub enum Sort {
    Mutating,
    Validating,
}

/// All webhooks and policies that are configured. What is in it is in the order of names.
#[derive(Debug)]
pub struct Admission {
    /// Mutating webhooks.
    pub mutating: Compiled<Configuration>,
    /// Validating webhooks.
    pub validating: Compiled<Configuration>,
    /// Policies, which do nothing without a binding.
    pub policies: Compiled<Policy>,
    /// What puts policies in force.
    pub bindings: Compiled<Binding>,
    services: Arc<dyn Services>,
}

/// All objects of a kind, compiled and replaced as a whole.
pub type Compiled<T> = ArcSwap<Vec<Arc<T>>>;

impl Operation {
    /// As in a review.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

impl Request<'_> {
    /// Whether nothing is stored.
    pub fn dry_run(&self) -> bool {
        match self.options {
            Options::Write(options) => options.dry_run,
            Options::Delete(options) => options.dry_run,
        }
    }
}

impl Admission {
    /// Nothing is configured yet. `services` finds webhooks that are behind a Service.
    pub fn new(services: Arc<dyn Services>) -> Self {
        let (mutating, validating) = (Compiled::default(), Compiled::default());
        Self { mutating, validating, policies: Compiled::default(), bindings: Compiled::default(), services }
    }

    /// Whether any write is looked at by expressions: those of policies in force, or conditions of webhooks.
    pub fn runs_expressions(&self) -> bool {
        let conditional = |webhooks: &Compiled<Configuration>| {
            webhooks.load().iter().flat_map(|all| &all.hooks).any(|hook| !hook.conditions.is_empty())
        };
        !self.bindings.load().is_empty() || conditional(&self.mutating) || conditional(&self.validating)
    }

    /// Lets mutating webhooks change the object. For a deletion it is null, and stays so.
    pub async fn mutate(&self, request: &Request<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        match in_force(&self.mutating, request) {
            Some(webhooks) => mutating::run(self, &webhooks, request, object, old).await,
            None => Ok(()),
        }
    }

    /// Asks policies, then validating webhooks.
    pub async fn validate(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let subject = Subject { request, object, old };
        if let Some(bindings) = in_force(&self.bindings, request) {
            enforce::run(&self.policies.load_full(), &bindings, subject)?;
        }
        match in_force(&self.validating, request) {
            Some(webhooks) => validating::run(self, &webhooks, subject).await,
            None => Ok(()),
        }
    }
}

/// What is configured, if there is anything and it may see the request at all.
fn in_force<T>(compiled: &Compiled<T>, request: &Request<'_>) -> Option<Arc<Vec<Arc<T>>>> {
    let all = compiled.load();
    (!all.is_empty() && !is_exempt(request)).then(|| Arc::clone(&all))
}

/// What configures admission is never subject to it.
fn is_exempt(request: &Request<'_>) -> bool {
    let resource = request.on.resource;
    &*resource.gv.group == "admissionregistration.k8s.io"
        && ["WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding"]
            .iter()
            .any(|end| resource.kind.ends_with(end))
}
