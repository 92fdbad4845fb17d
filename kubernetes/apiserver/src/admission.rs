//! Admission: webhooks (`admission.k8s.io/v1`) and policies that change or refuse a write before it is stored.
//!
//! - Configurations are compiled when they change and swapped as a whole: a request that no webhook matches
//!   costs one atomic load.
//! - Mutating webhooks run one after the other, in the order of their configurations' names. Those with a
//!   `reinvocationPolicy` of `IfNeeded` run once more if a later one changed the object. Validating webhooks
//!   run concurrently, and the first refusal counts.
//! - The `failurePolicy` decides when a webhook times out, fails or answers something invalid. A patch that
//!   does not apply fails the request whatever the policy, as in kube-apiserver. Responses are bounded in size
//!   and time.
//! - Webhook configurations and admission policies are never sent to webhooks, so that a broken one can be
//!   repaired.
//! - Every call is a span and propagates the trace context in its headers, also when spans are not exported.
//!
//! Assumed: a configuration was validated when it was written; an error in one nevertheless shows when it is to
//! be called. Not done: `authorizer` in conditions, audit annotations (there is no audit log), and the type
//! check in a policy's status.

mod call_errors;
mod condition;
mod constraints;
mod endpoint;
mod matching;
mod mutating;
mod params;
mod policy;
mod policy_enforcement;
pub(crate) mod response;
mod review;
mod rule;
#[cfg(test)]
pub(crate) mod testing;
mod validating;
mod webhook;
mod webhook_call;

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::Value;

use self::matching::AdmissionAttributes;
use crate::{
    api::StatusError,
    client::ServiceAddressResolver,
    codec::query::{DeleteOptions, WriteOptions},
    handler::call::ResourceRequest,
};

pub use self::{
    matching::refused_name,
    policy::{AdmissionPolicy, AdmissionPolicyBinding},
    webhook::{AdmissionWebhook, WebhookConfiguration},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionOperation {
    Create,
    Update,
    Delete,
    Connect,
}

#[derive(Clone, Copy, Debug)]
pub enum Options<'a> {
    Write(&'a WriteOptions),
    Delete(&'a DeleteOptions),
}

/// A write that is subject to admission.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub operation: AdmissionOperation,
    /// The request that the write belongs to.
    pub on: ResourceRequest<'a>,
    pub options: Options<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookType {
    Mutating,
    Validating,
}

/// All configured webhooks and policies, each set in the order of names.
#[derive(Debug)]
pub struct AdmissionChain {
    pub mutating_webhooks: CompiledSet<WebhookConfiguration>,
    pub validating_webhooks: CompiledSet<WebhookConfiguration>,
    /// Policies. A policy has no effect without a binding.
    pub policies: CompiledSet<AdmissionPolicy>,
    /// Bindings, each of which puts a policy into effect.
    pub bindings: CompiledSet<AdmissionPolicyBinding>,
    services: Arc<dyn ServiceAddressResolver>,
}

/// All objects of one kind, compiled. The set is replaced as a whole.
pub type CompiledSet<T> = ArcSwap<Vec<Arc<T>>>;

impl AdmissionOperation {
    pub fn name(self) -> &'static str {
        match self {
            AdmissionOperation::Create => "CREATE",
            AdmissionOperation::Update => "UPDATE",
            AdmissionOperation::Delete => "DELETE",
            AdmissionOperation::Connect => "CONNECT",
        }
    }
}

impl Request<'_> {
    pub fn dry_run(&self) -> bool {
        match self.options {
            Options::Write(options) => options.dry_run,
            Options::Delete(options) => options.dry_run,
        }
    }
}

impl AdmissionChain {
    /// Creates an empty chain. `services` resolves webhooks that are behind a Service.
    pub fn new(services: Arc<dyn ServiceAddressResolver>) -> Self {
        let mutating_webhooks = CompiledSet::default();
        let validating_webhooks = CompiledSet::default();
        Self {
            mutating_webhooks,
            validating_webhooks,
            policies: CompiledSet::default(),
            bindings: CompiledSet::default(),
            services,
        }
    }

    /// Whether any policy in effect, or any match condition of a webhook, evaluates expressions.
    pub fn runs_expressions(&self) -> bool {
        let conditional = |webhooks: &CompiledSet<WebhookConfiguration>| {
            webhooks.load().iter().flat_map(|all| &all.hooks).any(|hook| !hook.conditions.is_empty())
        };
        !self.bindings.load().is_empty()
            || conditional(&self.mutating_webhooks)
            || conditional(&self.validating_webhooks)
    }

    /// Runs the mutating webhooks, which may change the object. For a deletion the object is null and stays so.
    pub async fn mutate(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        match active_configuration(&self.mutating_webhooks, request) {
            Some(webhooks) => mutating::run(self, &webhooks, request, object, old).await,
            None => Ok(()),
        }
    }

    /// Evaluates the policies, then runs the validating webhooks.
    pub async fn validate(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        let subject = AdmissionAttributes { request, object, old };
        if let Some(bindings) = active_configuration(&self.bindings, request) {
            policy_enforcement::run(&self.policies.load_full(), &bindings, subject)?;
        }
        match active_configuration(&self.validating_webhooks, request) {
            Some(webhooks) => validating::run(self, &webhooks, subject).await,
            None => Ok(()),
        }
    }
}

/// The compiled set, unless it is empty or the request is exempt from admission.
fn active_configuration<T>(compiled: &CompiledSet<T>, request: &Request<'_>) -> Option<Arc<Vec<Arc<T>>>> {
    let all = compiled.load();
    (!all.is_empty() && !is_admission_configuration(request)).then(|| Arc::clone(&all))
}

/// Objects that configure admission are never subject to it.
fn is_admission_configuration(request: &Request<'_>) -> bool {
    let resource = request.on.resource;
    &*resource.gv.group == "admissionregistration.k8s.io"
        && ["WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding"]
            .iter()
            .any(|end| resource.kind.ends_with(end))
}
