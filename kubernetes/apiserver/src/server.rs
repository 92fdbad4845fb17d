//! Starts and stops a whole server: listeners, store, tracing and controllers.

mod allocation_index;
mod bootstrap;
#[cfg(feature = "client")]
pub mod client;
pub mod gates;
mod kubernetes_service;
mod service_resolver;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU16},
    time::Duration,
};

use jiff::Timestamp;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::{
    access::{self, AccessControl, AuthFiles},
    admission::AdmissionChain,
    api::identity,
    auth::{
        authenticate::TokenAuthenticator,
        certs::{
            self, ServerCertificates, SubjectAltNames,
            tls::{ServingCertificate, server_config},
        },
        kubeconfig::{ClientCredentials, Kubeconfig},
        token_cache::TokenCache,
    },
    client::ServiceAddressResolver,
    controller,
    handler::{
        ApiService,
        heavy_work::HeavyWork,
        in_flight::{InFlightLimits, MAX_MUTATING_REQUESTS_IN_FLIGHT, MAX_REQUESTS_IN_FLIGHT},
    },
    http::HttpsServer,
    kinds::{self, ServiceAllocator},
    kubelet_client::KubeletClient,
    metrics::ApiServerMetrics,
    registry::Registry,
    server_state::ServerState,
    store::{self, ObjectStore},
    trace::{
        self, Tracer,
        reload::{TracingReloader, TracingSettings},
    },
};

pub use self::gates::FeatureGates;

/// The request body limit of kube-apiserver.
const MAX_REQUEST_BODY_BYTES: usize = 3 << 20;

/// More connections than the clients of a cluster on one machine open. One with a watch takes some 40 KiB.
const MAX_CONNECTIONS: usize = 10_000;

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on; port 0 is any free port.
    pub listen: SocketAddr,
    /// The directory of objects and certificates; without it they are in memory only.
    pub data_dir: Option<PathBuf>,
    /// Further names in the serving certificate, beside the usual ones.
    pub names: Vec<String>,
    /// The file of static tokens: `token,user,uid,"group1,group2"` in each line.
    pub token_file: Option<PathBuf>,
    /// How long a verified token is accepted without being checked again, although its ServiceAccount may be
    /// gone: ten seconds in kube-apiserver. Without it every request checks its token.
    pub token_cache_ttl: Option<Duration>,
    /// Whether requests without credentials are accepted as `system:anonymous`, whatever the path.
    pub anonymous: bool,
    /// Groups whose members are trusted with trace context: their trace is continued.
    pub trusted_groups: Vec<String>,
    /// `--authentication-token-webhook-config-file`: the webhook that authenticates tokens.
    pub token_webhook: Option<PathBuf>,
    /// `--authorization-webhook-config-file`: the webhook that authorizes requests that RBAC does not allow.
    pub access_webhook: Option<PathBuf>,
    /// `--tracing-config-file`: the export of spans. Without it nothing is recorded.
    pub tracing_config_file: Option<PathBuf>,
    pub feature_gates: FeatureGates,
    /// Resolves the Services of webhooks and of the span collector; without it the addresses in Service objects
    /// are used.
    pub services: Option<Arc<dyn ServiceAddressResolver>>,
    /// The range of Service addresses: a network and the length of its prefix.
    pub service_range: (Ipv4Addr, u8),
    /// Access to the logs of pods; without it no pod has any.
    pub nodes: Option<Arc<dyn KubeletClient>>,
    /// Whether a pod must have a ServiceAccount and gets its token. Another controller has to create the
    /// account `default` in every namespace, and the ConfigMap `kube-root-ca.crt`.
    pub service_accounts: bool,
    /// The limit of open connections; further ones are closed.
    pub max_connections: usize,
    /// `--max-requests-inflight`: the limit of concurrent read requests; further ones are refused with 429.
    /// Zero is no limit.
    pub max_requests_in_flight: usize,
    /// `--max-mutating-requests-inflight`: the same for requests that write.
    pub max_mutating_requests_in_flight: usize,
    /// The size of the history for watches and paged lists, in bytes.
    pub history_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 0).into(),
            data_dir: None,
            names: Vec::new(),
            token_file: None,
            token_cache_ttl: None,
            anonymous: false,
            trusted_groups: crate::handler::DEFAULT_TRUSTED_GROUPS.map(str::to_owned).to_vec(),
            token_webhook: None,
            access_webhook: None,
            tracing_config_file: None,
            feature_gates: FeatureGates::default(),
            services: None,
            service_range: ServiceAllocator::DEFAULT_RANGE,
            nodes: None,
            service_accounts: false,
            max_connections: MAX_CONNECTIONS,
            max_requests_in_flight: MAX_REQUESTS_IN_FLIGHT,
            max_mutating_requests_in_flight: MAX_MUTATING_REQUESTS_IN_FLIGHT,
            history_bytes: store::Options::default().history_bytes,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServerStartError {
    #[error("the data directory {0:?} is not a directory: choose another, or one that does not exist yet")]
    DataDir(PathBuf),
    #[error("failed to create data directory {path:?}: {file:?} is not a directory")]
    UnderFile { path: PathBuf, file: PathBuf },
    #[error("failed to listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("failed to open the store")]
    Store(#[from] store::OpenError),
    #[error("failed to write the initial objects")]
    Bootstrap(#[from] store::WriteError),
    #[error("failed to load or issue certificates")]
    Certs(#[from] certs::ServerCertificateError),
    #[error("failed to set up authentication and authorization")]
    Access(#[from] access::AccessError),
    #[error("failed to load the tracing configuration")]
    Tracing(#[from] trace::config::TracingConfigError),
}

/// Whether this can be a data directory: one that does not exist will be created.
///
/// # Errors
/// If the path, or one of its parents, exists and is not a directory.
pub fn check_data_dir(data_dir: Option<&Path>) -> Result<(), ServerStartError> {
    let Some(path) = data_dir else { return Ok(()) };
    match path.ancestors().find(|above| above.exists()).filter(|above| !above.is_dir()) {
        Some(file) if file == path => Err(ServerStartError::DataDir(file.to_owned())),
        Some(file) => Err(ServerStartError::UnderFile { path: path.to_owned(), file: file.to_owned() }),
        None => Ok(()),
    }
}

pub fn is_data_dir_in_use(data_dir: &Path) -> bool {
    store::is_in_use(&objects(data_dir))
}

/// The store's directory within a data directory.
fn objects(data_dir: &Path) -> PathBuf {
    data_dir.join("objects")
}

/// A running server. [`ApiServer::stop`] stops it; dropping it stops it without waiting.
#[derive(Debug)]
pub struct ApiServer {
    core: Arc<ServerState>,
    server: HttpsServer,
    certs: ServerCertificates,
    tracing: Option<TracingReloader>,
    _controllers: JoinSet<()>,
}

impl ApiServer {
    /// Starts a server. It serves requests when this returns.
    pub async fn start(options: Options) -> Result<Self, ServerStartError> {
        check_data_dir(options.data_dir.as_deref())?;
        let listener = TcpListener::bind(options.listen)
            .await
            .map_err(|source| ServerStartError::Listen { address: options.listen, source })?;
        let certs = certificates(&options)?;
        let tls = server_config(ServingCertificate::new(&certs.server)?, [certs.authority.certificate()])?;
        let store = ObjectStore::open(store::Options {
            data_dir: options.data_dir.as_deref().map(objects),
            history_bytes: options.history_bytes,
            ..store::Options::default()
        })?;
        let tracing = tracing(&options, &store)?;
        let core = core(&options, store)?;
        core.tracer.set_pipeline(tracing.as_ref().map(|tracing| Arc::clone(tracing.pipeline())));
        bootstrap::write(&core).await?;
        if let Ok(address) = listener.local_addr() {
            kubernetes_service::write(&core, options.service_range.0, address).await?;
        }
        // No client has seen the bootstrap objects being created, so that history is not needed.
        core.store.clear_history();
        controller::definitions::restore(&core);
        let controllers = controller::start(&core, certs.authority.certificate());
        let server = HttpsServer::start(listener, tls, ApiService::new(Arc::clone(&core)), options.max_connections)
            .map_err(|source| ServerStartError::Listen { address: options.listen, source })?;
        core.set_port(server.address().port());
        Ok(Self { core, server, certs, tracing, _controllers: controllers })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> Kubeconfig {
        Kubeconfig {
            name: "kubewake".into(),
            server: self.url(),
            certificate_authority: Some(self.certs.authority.certificate().to_owned()),
            credentials: ClientCredentials::Certificate(self.certs.admin.clone()),
        }
    }

    /// Reads the tracing configuration again, changed or not.
    pub fn reload(&self) {
        if let Some(tracing) = &self.tracing {
            tracing.reload();
        }
    }

    /// Ends watches, waits for other requests, exports the last spans, and closes the store.
    pub async fn stop(self) {
        self.core.stop.send_replace(true);
        self.server.stop().await;
        if let Some(tracing) = self.tracing {
            tracing.stop().await;
        }
        self.core.store.close();
    }
}

fn certificates(options: &Options) -> Result<ServerCertificates, certs::ServerCertificateError> {
    let subjects = SubjectAltNames { names: options.names.clone(), addresses: vec![options.listen.ip()] };
    match &options.data_dir {
        Some(dir) => ServerCertificates::load_or_generate(&dir.join("certificates"), &subjects, Timestamp::now()),
        None => ServerCertificates::generate(&subjects, Timestamp::now()),
    }
}

/// Starts the export of spans, if a configuration file is given.
fn tracing(
    options: &Options,
    store: &ObjectStore,
) -> Result<Option<TracingReloader>, trace::config::TracingConfigError> {
    let Some(file) = options.tracing_config_file.clone() else { return Ok(None) };
    if !options.feature_gates.tracing {
        tracing::warn!(file = %file.display(), "the tracing configuration is ignored: feature gate APIServerTracing is disabled");
        return Ok(None);
    }
    let services = services(options, store);
    let instance = format!("apiserver-{}", identity::uid());
    let trusted_groups = options.trusted_groups.clone();
    TracingReloader::start(TracingSettings { file, trusted_groups, services, instance }).map(Some)
}

fn services(options: &Options, store: &ObjectStore) -> Arc<dyn ServiceAddressResolver> {
    options.services.clone().unwrap_or_else(|| Arc::new(store.clone()))
}

fn core(options: &Options, store: ObjectStore) -> Result<Arc<ServerState>, ServerStartError> {
    let key = options.data_dir.as_ref().map(|dir| dir.join("certificates").join("service-account.key"));
    let files = AuthFiles {
        tokens: options.token_file.as_deref(),
        token_webhook: options.token_webhook.as_deref(),
        access_webhook: options.access_webhook.as_deref(),
        signing_key: key.as_deref(),
    };
    let mut access = AccessControl::new(&store, files, options.anonymous)?;
    if let Some(ttl) = options.token_cache_ttl {
        let cached =
            |it: Arc<dyn TokenAuthenticator>| Arc::new(TokenCache::new(it, ttl)) as Arc<dyn TokenAuthenticator>;
        access.authentication.tokens = access.authentication.tokens.into_iter().map(cached).collect();
    }
    let admission = AdmissionChain::new(services(options, &store));
    let (network, bits) = options.service_range;
    let addresses = Arc::new(ServiceAllocator::new(network, bits));
    addresses.ask(allocation_index::holder(&store));
    Ok(Arc::new(ServerState {
        store,
        registry: Registry::new(kinds::catalog_with(&addresses)),
        access,
        admission,
        nodes: options.nodes.clone(),
        service_accounts: options.service_accounts,
        tracer: if options.feature_gates.tracing { Tracer::default() } else { Tracer::off() },
        metrics: ApiServerMetrics::default(),
        clock: Timestamp::now,
        body_limit: MAX_REQUEST_BODY_BYTES,
        in_flight: InFlightLimits::new(options.max_requests_in_flight, options.max_mutating_requests_in_flight),
        heavy: HeavyWork::default(),
        stop: watch::Sender::new(false),
        port: AtomicU16::new(0),
    }))
}

#[cfg(test)]
mod tests;
