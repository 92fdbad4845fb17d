//! Validating webhooks: all at the same time, and the first refusal counts.

use std::sync::Arc;

use super::{Admission, Configuration, Sort, call, matching::Subject, review::Shown};
use crate::api::Status;
use futures_util::{StreamExt as _, stream::FuturesUnordered};

/// Asks all webhooks that want to see the request.
pub async fn run(
    admission: &Admission,
    configurations: &[Arc<Configuration>],
    subject: Subject<'_>,
) -> Result<(), Status> {
    let mut calls = FuturesUnordered::new();
    for hook in configurations.iter().flat_map(|configuration| &configuration.hooks) {
        if let Some(resource) = subject.invocation(hook)? {
            let shown = Shown::of(subject, &resource);
            calls.push(async move {
                match call::ask(admission, Sort::Validating, hook, &shown).await {
                    Ok(_) => Ok(()),
                    Err(failure) => failure.outcome(hook),
                }
            });
        }
    }
    // Every webhook hears of the request, also when one has refused it: some count on it.
    let mut refused = Ok(());
    while let Some(outcome) = calls.next().await {
        if refused.is_ok() {
            refused = outcome;
        }
    }
    refused
}
