//! The admission webhook: what is wrong with a pipeline is said to its writer, and nobody names a Secret whom it is kept from.
//!
//! Every replica serves it, whoever leads. A call is decided in three steps: what does the resource itself say ([`case`]), may its writer read what it names
//! ([`access`]), and is there a slot for it ([`slots`]).
//!
//! *Guaranteed*: a refusal lists all that is wrong, each with its path. A deletion, a status, and whatever leaves the spec as it is pass unseen. Of a resource that is being deleted only access is asked for. No answer holds anything of a
//! Secret: none is read here.
//!
//! *Assumed*: `failurePolicy: Fail`. A webhook that is passed by while it is away would let everybody name every Secret, and only the writer's own request tells who they
//! are: a reconcile cannot make up for it. It makes up for everything else. Without an operator nothing would come of a pipeline anyway, and collectors go on.
//!
//! *Not done*: a slot is not promised, nor is its lack a reason to refuse: that is the lock's business.

use std::{collections::BTreeSet, convert::Infallible, net::SocketAddr, sync::Arc};

use k8s_openapi::{
    api::{
        admissionregistration::v1::{RuleWithOperations, ValidatingWebhook},
        core::v1::Namespace,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, Client, Resource as _};
use kubewake_trail::{
    Clock,
    webhook::{
        certificates::{Keep, Terms},
        counters::UpkeepCounters,
        endpoint::Endpoint,
        registration::{Hooks, Registration},
        serve::Server,
        upkeep::{BeginError, Plan, Upkeep},
    },
};
use tokio::net::TcpListener;

use crate::names;

mod access;
mod answer;
mod case;
mod counters;
mod slots;

use answer::Door;
use counters::Counters;

/// Where an API server sends its calls.
pub const PATH: &str = "/validate";
/// As long as an API server waits. A few requests of our own fit into it; a writer who waits longer gives up.
const TIMEOUT_SECONDS: i32 = 5;
/// What a registration of ours is called.
const HOOK: &str = "validate.telemetry.kubewake.io";

/// How the webhook is reached, and where things are.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the operator.
    pub namespace: String,
    /// How API servers reach it.
    pub endpoint: Endpoint,
    /// The Secret, in that namespace, in which replicas share their certificates. Without it they are in memory.
    pub certificates: Option<String>,
    /// How long certificates live.
    pub terms: Terms,
}

/// Why there is no webhook.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Without certificates or registration.
    #[error("the admission webhook does not start")]
    Begin(#[from] BeginError),
    /// What it would show is of no use.
    #[error("the certificate cannot be used")]
    Tls(#[from] rustls::Error),
    /// The socket is of no use.
    #[error("the admission webhook cannot listen")]
    Listen(#[from] std::io::Error),
    /// The namespace is not there.
    #[error("the operator's namespace cannot be read")]
    Namespace(#[source] Box<kube::Error>),
}

/// The running webhook.
#[derive(Debug)]
pub struct Admission {
    server: Server,
    upkeep: Upkeep,
    counters: Arc<Counters>,
    upkept: Arc<UpkeepCounters>,
    /// Nobody else answers: the registration must go with this process, or nothing could be written any more.
    alone: bool,
}

impl Admission {
    /// Serves, and registers. After this API servers call.
    ///
    /// # Errors
    /// If it cannot be served or registered.
    pub async fn begin(client: Client, listener: TcpListener, options: Options) -> Result<Self, Error> {
        let Options { namespace, endpoint, certificates, terms } = options;
        let (counters, upkept) = (Arc::<Counters>::default(), Arc::<UpkeepCounters>::default());
        let alone = matches!(endpoint, Endpoint::Url { .. });
        let hooks = Hooks::Validating(vec![hook(&endpoint)]);
        let mut registration = Registration::new(client.clone(), names::MANAGER, names::MANAGER, hooks);
        if !alone {
            registration = registration.owned_by(owner(&client, &namespace).await?);
        }
        let keep = match certificates {
            Some(name) => Keep::Secret { api: Box::new(Api::namespaced(client.clone(), &namespace)), name },
            None => Keep::Memory,
        };
        let plan = Plan {
            keep,
            terms,
            names: endpoint.names(),
            registrations: vec![registration],
            clock: Clock::default(),
            counters: Arc::clone(&upkept),
        };
        let mut upkeep = Upkeep::begin(plan).await?;
        let door = Door::new(client, &namespace, Arc::clone(&counters));
        let server = Server::start(listener, upkeep.serving().config()?, door.router())?;
        upkeep.register().await?;
        Ok(Self { server, upkeep, counters, upkept, alone })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Its part of the page for Prometheus, whenever it is asked for.
    pub fn page(&self) -> impl Fn() -> String + Clone + Send + Sync + use<> {
        let (counters, upkept) = (Arc::clone(&self.counters), Arc::clone(&self.upkept));
        move || counters.page() + &upkept.page("kubewake_operator_webhook")
    }

    /// Keeps certificates and registration up, for as long as it is polled.
    pub async fn run(&mut self) -> Infallible {
        self.upkeep.run().await
    }

    /// Ends. Others who serve the same registration go on to be called.
    pub async fn stop(mut self) {
        if self.alone {
            self.upkeep.unregister().await;
        }
        self.server.stop().await;
    }
}

/// What is registered.
fn hook(endpoint: &Endpoint) -> ValidatingWebhook {
    let text = |text: &str| Some(text.to_owned());
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    ValidatingWebhook {
        name: HOOK.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: endpoint.client_config(PATH),
        failure_policy: text("Fail"),
        match_policy: text("Equivalent"),
        rules: Some(vec![RuleWithOperations {
            api_groups: texts(&["telemetry.kubewake.io"]),
            api_versions: texts(&["v1alpha1"]),
            // Neither deletions nor subresources, so that nothing keeps a status from being written and a pipeline from going.
            operations: texts(&["CREATE", "UPDATE"]),
            resources: texts(&["tracepipelines", "logpipelines", "metricpipelines", "telemetries"]),
            scope: text("Cluster"),
        }]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
        ..ValidatingWebhook::default()
    }
}

/// The registration goes with the operator's namespace: without anybody who answers it would keep pipelines from being written.
async fn owner(client: &Client, namespace: &str) -> Result<OwnerReference, Error> {
    let found = Api::<Namespace>::all(client.clone()).get(namespace).await;
    let found = found.map_err(|error| Error::Namespace(Box::new(error)))?;
    let uid = found.metadata.uid.unwrap_or_default();
    Ok(OwnerReference {
        api_version: Namespace::api_version(&()).into_owned(),
        kind: Namespace::kind(&()).into_owned(),
        name: namespace.to_owned(),
        uid,
        ..OwnerReference::default()
    })
}

/// An object that a pipeline names.
type Objects = BTreeSet<access::Object>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_deletions_nor_statuses_are_asked_about_and_silence_is_a_refusal() {
        let hook = hook(&Endpoint::service("kubewake-system", "kubewake-operator", 443));
        let rule = hook.rules.unwrap().remove(0);
        assert_eq!(rule.operations.unwrap(), ["CREATE", "UPDATE"]);
        assert!(rule.resources.unwrap().iter().all(|resource| !resource.contains(['/', '*'])));
        assert_eq!(hook.failure_policy.as_deref(), Some("Fail"));
        assert_eq!(hook.client_config.service.unwrap().path.as_deref(), Some(PATH));
    }
}
