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

use std::{collections::BTreeSet, convert::Infallible, net::SocketAddr, sync::Arc};

use k8s_openapi::{
    api::{
        admissionregistration::v1::{RuleWithOperations, ValidatingWebhook},
        core::v1::Namespace,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, Client, Resource as _};
use kubewake_trail::TrailClock;
use kubewake_webhook::{
    certificates::{CertificateStore, CertificateTerms},
    counters::MaintenanceCounters,
    maintenance::{MaintenanceOptions, WebhookMaintenance, WebhookStartError},
    registration::{WebhookRegistration, WebhookSet},
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
        let upkept = Arc::<MaintenanceCounters>::default();
        let alone = matches!(endpoint, WebhookTarget::Url { .. });
        let hooks = WebhookSet::Validating(vec![validating_webhook(&endpoint)]);
        let mut registration =
            WebhookRegistration::new(client.clone(), names::FIELD_MANAGER, names::FIELD_MANAGER, hooks);
        if !alone {
            registration = registration.owned_by(registration_owner(&client, &namespace).await?);
        }
        let keep = match certificates {
            Some(name) => CertificateStore::Secret { api: Box::new(Api::namespaced(client.clone(), &namespace)), name },
            None => CertificateStore::Memory,
        };
        let plan = MaintenanceOptions {
            store: keep,
            terms,
            names: endpoint.names(),
            registrations: vec![registration],
            clock: TrailClock::default(),
            counters: Arc::clone(&upkept),
        };
        let mut upkeep = WebhookMaintenance::start(plan).await?;
        let door = WebhookHandler::new(client, &namespace, Arc::clone(&counters));
        let server = WebhookServer::start(listener, upkeep.certificate_resolver().config()?, door.router())?;
        upkeep.register().await?;
        Ok(Self { server, maintenance: upkeep, counters, maintenance_counters: upkept, is_only_replica: alone })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Renders the webhook's metrics in Prometheus' text format each time it is called.
    pub fn metrics_page(&self) -> impl Fn() -> String + Clone + Send + Sync + use<> {
        let counters = Arc::clone(&self.counters);
        let upkept = Arc::clone(&self.maintenance_counters);
        move || counters.render_metrics() + &upkept.render_metrics("kubewake_operator_webhook")
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
        self.server.stop().await;
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

/// The operator's namespace owns the registration: left behind without a server, it would block writes of
/// pipelines.
async fn registration_owner(client: &Client, namespace: &str) -> Result<OwnerReference, AdmissionError> {
    let found = Api::<Namespace>::all(client.clone()).get(namespace).await;
    let found = found.map_err(|error| AdmissionError::Namespace(Box::new(error)))?;
    let uid = found.metadata.uid.unwrap_or_default();
    Ok(OwnerReference {
        api_version: Namespace::api_version(&()).into_owned(),
        kind: Namespace::kind(&()).into_owned(),
        name: namespace.to_owned(),
        uid,
        ..OwnerReference::default()
    })
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
