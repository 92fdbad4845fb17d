//! Checks whether the ServiceAccounts that a Telemetry trusts exist.
//!
//! A misspelt name trusts nobody: what its pods forward is attributed to these pods, and nothing fails. So the
//! status of the Telemetry has a warning. It is no error, as the account may be created later.
//!
//! *Guaranteed*: at most one request for each relay every 15 seconds, unless the list changes. *Not done*:
//! there is no warning if the API server does not answer or forbids the request, which does not show that an
//! account is missing.

use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use kubewake_api::v1alpha1::TrustedRelay;
use tokio::time::Instant;

/// How long a result is reused.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// The relays of a Telemetry that did not exist at the last check.
#[derive(Debug, Default)]
pub struct RelayCheck {
    last_check: Option<(Instant, Vec<TrustedRelay>)>,
    missing: Vec<String>,
}

impl RelayCheck {
    /// A warning for each of these relays that does not exist.
    pub async fn warnings(&mut self, client: &Client, relays: &[TrustedRelay]) -> &[String] {
        let is_known = |(at, known): &(Instant, Vec<TrustedRelay>)| known == relays && at.elapsed() < CHECK_INTERVAL;
        if !self.last_check.as_ref().is_some_and(is_known) {
            self.missing.clear();
            for relay in relays {
                let api = Api::<ServiceAccount>::namespaced(client.clone(), &relay.namespace);
                if matches!(api.get_metadata_opt(&relay.service_account).await, Ok(None)) {
                    self.missing.push(describe(relay));
                }
            }
            self.last_check = Some((Instant::now(), relays.to_vec()));
        }
        &self.missing
    }
}

fn describe(TrustedRelay { namespace, service_account }: &TrustedRelay) -> String {
    format!(
        "spec.trustedRelays: ServiceAccount {service_account} not found in namespace {namespace}, so that no pod is trusted by this entry"
    )
}
