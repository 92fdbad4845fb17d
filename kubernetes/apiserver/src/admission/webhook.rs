//! A webhook, compiled from its configuration.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{condition::AdmissionMatchConditions, constraints::MatchConstraints, endpoint::WebhookEndpoint};
use crate::api::meta::MetaAccessor;

const DEFAULT_TIMEOUT_SECONDS: u64 = 10;
/// The longest timeout that validation accepts.
const MAX_TIMEOUT_SECONDS: u64 = 30;

/// All webhooks of one configuration, in their order.
#[derive(Debug)]
pub struct WebhookConfiguration {
    pub hooks: Vec<AdmissionWebhook>,
}

#[derive(Debug)]
pub struct AdmissionWebhook {
    pub configuration: Arc<str>,
    pub name: String,
    /// The requests that it matches.
    pub constraints: MatchConstraints,
    pub conditions: AdmissionMatchConditions,
    /// Whether a failed call lets the request pass (`failurePolicy: Ignore`).
    pub ignores_failure: bool,
    /// Whether it is called for dry runs.
    pub dry_run: bool,
    pub timeout: Duration,
    /// Whether it is called again when a later webhook changes the object.
    pub reinvoked: bool,
    /// The version of the review that it gets: the first in its list that is supported.
    pub version: Option<&'static str>,
    pub endpoint: WebhookEndpoint,
}

impl WebhookConfiguration {
    /// Compiles a `MutatingWebhookConfiguration` or a `ValidatingWebhookConfiguration`.
    pub fn compile(object: &Value) -> Self {
        let name: Arc<str> = object.name().into();
        let hooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        Self { hooks: hooks.map(|hook| AdmissionWebhook::compile(&name, hook)).collect() }
    }
}

impl AdmissionWebhook {
    fn compile(configuration: &Arc<str>, hook: &Value) -> Self {
        let text = |field: &str| hook.get(field).and_then(Value::as_str);
        let list = |field: &str| hook.get(field).and_then(Value::as_array).into_iter().flatten();
        let ignores_failure = text("failurePolicy") == Some("Ignore");
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        Self {
            configuration: Arc::clone(configuration),
            name: text("name").unwrap_or_default().to_owned(),
            constraints: MatchConstraints::from_webhook(hook),
            conditions: AdmissionMatchConditions::compile(list("matchConditions"), ignores_failure),
            ignores_failure,
            dry_run: matches!(text("sideEffects"), Some("None" | "NoneOnDryRun")),
            timeout: Duration::from_secs(seconds.clamp(1, MAX_TIMEOUT_SECONDS)),
            reinvoked: text("reinvocationPolicy") == Some("IfNeeded"),
            version: list("admissionReviewVersions").find_map(|version| match version.as_str() {
                Some("v1") => Some("v1"),
                Some("v1beta1") => Some("v1beta1"),
                _ => None,
            }),
            endpoint: WebhookEndpoint::from_client_config(hook.get("clientConfig").unwrap_or(&Value::Null)),
        }
    }
}
