//! Validating webhooks run concurrently; the first refusal counts.

use std::sync::Arc;

use super::{
    AdmissionChain, WebhookConfiguration, WebhookType, matching::AdmissionAttributes, review::VersionedAttributes,
    webhook_call,
};
use crate::api::StatusError;
use futures_util::{StreamExt as _, stream::FuturesUnordered};

/// Calls all webhooks that match the request.
pub async fn run(
    admission: &AdmissionChain,
    configurations: &[Arc<WebhookConfiguration>],
    subject: AdmissionAttributes<'_>,
) -> Result<(), StatusError> {
    let mut calls = FuturesUnordered::new();
    for hook in configurations.iter().flat_map(|configuration| &configuration.hooks) {
        if let Some(resource) = subject.match_webhook(hook)? {
            let shown = VersionedAttributes::for_version(subject, &resource);
            calls.push(async move {
                match webhook_call::ask(admission, WebhookType::Validating, hook, &shown).await {
                    Ok(_) => Ok(()),
                    Err(failure) => failure.apply_failure_policy(hook),
                }
            });
        }
    }
    // Every webhook is called, also after a refusal: some rely on seeing each request.
    let mut refused = Ok(());
    while let Some(outcome) = calls.next().await {
        if refused.is_ok() {
            refused = outcome;
        }
    }
    refused
}
