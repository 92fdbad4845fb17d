//! The validating webhook: tells writers what is wrong with a pipeline, and keeps them from naming Secrets
//! that they may not read.
//!
//! Every replica serves it, whichever leads. A review has three steps: validation of the resource alone
//! (`reviewed_object`), whether its writer may read the objects that it names (`access`), and warnings
//! about slots and collectors (`cluster_warnings`).
//!
//! *Guaranteed*: a refusal lists every problem with its path. Deletions, subresources, and updates that leave
//! the spec unchanged are always allowed. For a resource that is being deleted only access is checked. No
//! response holds any part of a Secret: none is read here.
//!
//! *Assumed*: `failurePolicy: Fail`. If requests passed while the webhook is away, anyone could name any
//! Secret, and a reconcile could not make up for it: only the admission request says who the writer is. A
//! reconcile does make up for everything else. Without an operator no pipeline would take effect anyway, and
//! collectors keep running.
//!
//! *Not done*: no slot is reserved, and the lack of one is no reason to refuse: slots belong to the lock.

use std::{collections::BTreeSet, convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use k8s_openapi::api::admissionregistration::v1::{RuleWithOperations, ValidatingWebhook};
use kube::{Api, Client};
use kubewake_trail::TrailClock;
use kubewake_webhook::{
    certificates::{CertificateStore, CertificateTerms},
    counters::MaintenanceCounters,
    maintenance::{MaintenanceOptions, WebhookMaintenance, WebhookStartError},
    registration::{WebhookRegistration, WebhookSet, namespace_owner},
    server::WebhookServer,
    target::WebhookTarget,
};
use tokio::net::TcpListener;

use crate::model::names;

mod access;
mod cluster_warnings;
mod counters;
mod reviewed_object;
mod webhook_handler;

use counters::ReviewCounters;
use webhook_handler::WebhookHandler;

/// The path of the endpoint that API servers call.
pub const VALIDATE_PATH: &str = "/validate";
/// The timeout that API servers apply. It has room for a few requests of this operator; writers would not
/// wait longer.
const TIMEOUT_SECONDS: i32 = 5;
/// The same as a duration.
const CALL_TIMEOUT: Duration = Duration::from_secs(TIMEOUT_SECONDS as u64);
/// The name of the webhook in its registration.
const WEBHOOK_NAME: &str = "validate.telemetry.kubewake.io";

/// The operator's namespace, and how its webhook is reached.
#[derive(Clone, Debug)]
pub struct AdmissionOptions {
    pub namespace: String,
    /// The endpoint that API servers call.
    pub endpoint: WebhookTarget,
    /// The Secret in `namespace` through which replicas share certificates. Without it certificates are kept
    /// in memory.
    pub certificates: Option<String>,
    pub terms: CertificateTerms,
}

/// Why the webhook did not start.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionError {
    #[error("failed to start the admission webhook")]
    Start(#[from] WebhookStartError),
    /// TLS does not accept the certificate.
    #[error("failed to load the certificate of the admission webhook")]
    Tls(#[from] rustls::Error),
    /// The listener cannot be used.
    #[error("failed to listen for the admission webhook")]
    Listen(#[from] std::io::Error),
    #[error("failed to read the operator's namespace")]
    Namespace(#[source] Box<kube::Error>),
}

#[derive(Debug)]
pub struct AdmissionServer {
    server: WebhookServer,
    maintenance: WebhookMaintenance,
    counters: Arc<ReviewCounters>,
    maintenance_counters: Arc<MaintenanceCounters>,
    /// No other replica serves the registration. It must be removed with this process, or writes of pipelines
    /// would fail.
    is_only_replica: bool,
}

impl AdmissionServer {
    /// Starts the server, then registers the webhook, from which moment API servers call it.
    ///
    /// # Errors
    /// If the server cannot start or the registration cannot be written.
    pub async fn start(
        client: Client,
        listener: TcpListener,
        options: AdmissionOptions,
    ) -> Result<Self, AdmissionError> {
        let AdmissionOptions { namespace, endpoint, certificates, terms } = options;
        let counters = Arc::<ReviewCounters>::default();
        let maintenance_counters = Arc::<MaintenanceCounters>::default();
        let is_only_replica = matches!(endpoint, WebhookTarget::Url { .. });
        let hooks = WebhookSet::Validating(vec![validating_webhook(&endpoint)]);
        let mut registration =
            WebhookRegistration::new(client.clone(), names::FIELD_MANAGER, names::FIELD_MANAGER, hooks);
        if !is_only_replica {
            // Left behind without a server, the registration would block writes of pipelines.
            let owner = namespace_owner(&client, &namespace).await;
            let owner = owner.map_err(|error| AdmissionError::Namespace(Box::new(error)))?;
            registration = registration.owned_by(owner);
        }
        let store = match certificates {
            Some(name) => CertificateStore::Secret { api: Box::new(Api::namespaced(client.clone(), &namespace)), name },
            None => CertificateStore::Memory,
        };
        let maintenance_options = MaintenanceOptions {
            store,
            terms,
            names: endpoint.names(),
            registrations: vec![registration],
            clock: TrailClock::default(),
            counters: Arc::clone(&maintenance_counters),
        };
        let mut maintenance = WebhookMaintenance::start(maintenance_options).await?;
        let handler = WebhookHandler::new(client, &namespace, Arc::clone(&counters));
        let server = WebhookServer::start(listener, maintenance.certificate_resolver().config()?, handler.router())?;
        maintenance.register().await?;
        Ok(Self { server, maintenance, counters, maintenance_counters, is_only_replica })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Renders the webhook's metrics in Prometheus' text format each time it is called.
    pub fn metrics_page(&self) -> impl Fn() -> String + Clone + Send + Sync + use<> {
        let counters = Arc::clone(&self.counters);
        let maintenance_counters = Arc::clone(&self.maintenance_counters);
        move || counters.render_metrics() + &maintenance_counters.render_metrics("kubewake_operator_webhook")
    }

    /// Renews certificates and repairs the registration for as long as it is polled.
    pub async fn run(&mut self) -> Infallible {
        self.maintenance.run().await
    }

    /// Stops the server. Other replicas of the same registration keep being called.
    pub async fn stop(mut self) {
        if self.is_only_replica {
            self.maintenance.unregister().await;
        }
        self.server.stop(CALL_TIMEOUT).await;
    }
}

fn validating_webhook(endpoint: &WebhookTarget) -> ValidatingWebhook {
    let text = |text: &str| Some(text.to_owned());
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    ValidatingWebhook {
        name: WEBHOOK_NAME.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: endpoint.client_config(VALIDATE_PATH),
        failure_policy: text("Fail"),
        match_policy: text("Equivalent"),
        rules: Some(vec![RuleWithOperations {
            api_groups: texts(&["telemetry.kubewake.io"]),
            api_versions: texts(&["v1alpha1"]),
            // Deletions and subresources are left out, so that the webhook never blocks the removal of a
            // pipeline or the write of a status.
            operations: texts(&["CREATE", "UPDATE"]),
            resources: texts(&["tracepipelines", "logpipelines", "metricpipelines", "telemetries"]),
            scope: text("Cluster"),
        }]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        ..ValidatingWebhook::default()
    }
}

/// The objects that a resource names.
type AccessTargets = BTreeSet<access::AccessTarget>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_deletions_nor_statuses_are_asked_about_and_silence_is_a_refusal() {
        let hook = validating_webhook(&WebhookTarget::from_service("kubewake-system", "kubewake-operator", 443));
        let rule = hook.rules.unwrap().remove(0);
        assert_eq!(rule.operations.unwrap(), ["CREATE", "UPDATE"]);
        assert!(rule.resources.unwrap().iter().all(|resource| !resource.contains(['/', '*'])));
        assert_eq!(hook.failure_policy.as_deref(), Some("Fail"));
        assert_eq!(hook.client_config.service.unwrap().path.as_deref(), Some(VALIDATE_PATH));
    }
}
