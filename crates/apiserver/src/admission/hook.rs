//! A webhook, compiled from its configuration.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{condition::Conditions, constraints::Constraints, endpoint::Endpoint};
use crate::api::meta::Meta;

/// Kubernetes' default for `timeoutSeconds`.
const TIMEOUT: u64 = 10;
/// The longest that validation lets through.
const MAX_TIMEOUT: u64 = 30;

/// All webhooks of one configuration, in their order.
#[derive(Debug)]
pub struct Configuration {
    /// The webhooks.
    pub hooks: Vec<Hook>,
}

/// One webhook.
#[derive(Debug)]
pub struct Hook {
    /// The name of the configuration.
    pub configuration: Arc<str>,
    /// Its own name.
    pub name: String,
    /// What it wants to see.
    pub constraints: Constraints,
    /// What else must hold.
    pub conditions: Conditions,
    /// Whether a failure of the webhook is none of the request (`failurePolicy: Ignore`).
    pub ignores_failure: bool,
    /// Whether a dry run may call it.
    pub dry_run: bool,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether it is called once more when a later one changes the object.
    pub reinvoked: bool,
    /// The version of the review that it gets: its first that is known.
    pub version: Option<&'static str>,
    /// Where it is.
    pub endpoint: Endpoint,
}

impl Configuration {
    /// Compiles a `MutatingWebhookConfiguration` or a `ValidatingWebhookConfiguration`.
    pub fn compile(object: &Value) -> Self {
        let name: Arc<str> = object.name().into();
        let hooks = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        Self { hooks: hooks.map(|hook| Hook::compile(&name, hook)).collect() }
    }
}

impl Hook {
    fn compile(configuration: &Arc<str>, hook: &Value) -> Self {
        let text = |field: &str| hook.get(field).and_then(Value::as_str);
        let list = |field: &str| hook.get(field).and_then(Value::as_array).into_iter().flatten();
        let ignores_failure = text("failurePolicy") == Some("Ignore");
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(TIMEOUT);
        Self {
            configuration: Arc::clone(configuration),
            name: text("name").unwrap_or_default().to_owned(),
            constraints: Constraints::of_webhook(hook),
            conditions: Conditions::compile(list("matchConditions"), ignores_failure),
            ignores_failure,
            dry_run: matches!(text("sideEffects"), Some("None" | "NoneOnDryRun")),
            timeout: Duration::from_secs(seconds.clamp(1, MAX_TIMEOUT)),
            reinvoked: text("reinvocationPolicy") == Some("IfNeeded"),
            version: list("admissionReviewVersions").find_map(|version| match version.as_str() {
                Some("v1") => Some("v1"),
                Some("v1beta1") => Some("v1beta1"),
                _ => None,
            }),
            endpoint: Endpoint::read(hook.get("clientConfig").unwrap_or(&Value::Null)),
        }
    }
}
