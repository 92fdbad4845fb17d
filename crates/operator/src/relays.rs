//! Whether the ServiceAccounts that a Telemetry trusts exist.
//!
//! A name with a typing error trusts nobody: what its pods forward is taken for their own, and nothing fails. So the status of the Telemetry
//! warns of it. It is no error, as the account may be created later.
//!
//! *Guaranteed*: at most one request for each relay every 15 seconds, unless the list changes. *Not done*: an API server that does not
//! answer, or forbids to look, has not said that an account is missing, and nothing is said of it.

use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use kubewake_api::v1alpha1::TrustedRelay;
use tokio::time::Instant;

/// How long an answer counts.
const PERIOD: Duration = Duration::from_secs(15);

/// The relays of a Telemetry that do not exist, as they were when they were last looked for.
#[derive(Debug, Default)]
pub struct RelayCheck {
    looked: Option<(Instant, Vec<TrustedRelay>)>,
    missing: Vec<String>,
}

impl RelayCheck {
    /// A sentence for each of these that does not exist.
    pub async fn warnings(&mut self, client: &Client, relays: &[TrustedRelay]) -> &[String] {
        let is_known = |(at, known): &(Instant, Vec<TrustedRelay>)| known == relays && at.elapsed() < PERIOD;
        if !self.looked.as_ref().is_some_and(is_known) {
            self.missing.clear();
            for relay in relays {
                let api = Api::<ServiceAccount>::namespaced(client.clone(), &relay.namespace);
                if matches!(api.get_metadata_opt(&relay.service_account).await, Ok(None)) {
                    self.missing.push(describe(relay));
                }
            }
            self.looked = Some((Instant::now(), relays.to_vec()));
        }
        &self.missing
    }
}

fn describe(TrustedRelay { namespace, service_account }: &TrustedRelay) -> String {
    format!(
        "spec.trustedRelays: ServiceAccount {service_account} not found in namespace {namespace}, so that no pod is trusted by this entry"
    )
}
