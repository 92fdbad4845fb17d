//! The whole server: sockets, store, controllers.

mod bootstrap;
mod claims;
#[cfg(feature = "client")]
pub mod client;
pub mod gates;
mod own_service;
mod services;

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
    access::{self, Access, Files},
    admission::Admission,
    api::identity,
    auth::{
        authenticate::Authenticator,
        certs::{
            self, Certs, Subjects,
            tls::{Serving, server_config},
        },
        kubeconfig::{ClientCredentials, Kubeconfig},
        token_cache::TokenCache,
    },
    client::Services,
    controller,
    core::Core,
    handler::{
        Front,
        heavy::HeavyWork,
        in_flight::{InFlightLimits, MAX_READS, MAX_WRITES},
    },
    http::Server,
    kinds::{self, Addresses},
    metrics::Metrics,
    nodes::Nodes,
    registry::Registry,
    store::{self, Store},
    trace::{
        self, Tracer,
        reload::{Settings, Tracing},
    },
};

pub use self::gates::FeatureGates;

/// kube-apiserver's own limit of a request.
const BODY_LIMIT: usize = 3 << 20;

/// More than the clients of a cluster on one machine open. A connection with a watch takes some 40 KiB.
const MAX_CONNECTIONS: usize = 10_000;

/// How to run a server.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 for any that is free.
    pub listen: SocketAddr,
    /// Objects and certificates are kept here; without it, in memory only.
    pub data_dir: Option<PathBuf>,
    /// Names that clients use for the server, beside the usual ones.
    pub names: Vec<String>,
    /// `token,user,uid,"group1,group2"` in each line.
    pub token_file: Option<PathBuf>,
    /// How long a token is taken after it was found to be good, although its ServiceAccount may be gone: ten seconds in kube-apiserver. Each request is
    /// looked at without it.
    pub token_cache_ttl: Option<Duration>,
    /// Whether requests without credentials are let in as `system:anonymous`, whatever the path.
    pub anonymous: bool,
    /// Callers in these groups are believed: their trace goes on here.
    pub trusted_groups: Vec<String>,
    /// `--authentication-token-webhook-config-file`: who is asked whose a token is.
    pub token_webhook: Option<PathBuf>,
    /// `--authorization-webhook-config-file`: who is asked, after RBAC, whether something may be done.
    pub access_webhook: Option<PathBuf>,
    /// `--tracing-config-file`: where spans go. Without it nothing is recorded.
    pub tracing_config_file: Option<PathBuf>,
    /// `--feature-gates`
    pub feature_gates: FeatureGates,
    /// Finds Services that spans are sent to, and those of webhooks; without it they are where their objects say.
    pub services: Option<Arc<dyn Services>>,
    /// Services get their addresses from here: a network, and how many bits of it are fixed.
    pub service_range: (Ipv4Addr, u8),
    /// Has the output of pods; without it no pod has any.
    pub nodes: Option<Arc<dyn Nodes>>,
    /// Whether a pod must have a ServiceAccount, and gets its token. Somebody has to make an account `default` in every namespace, and
    /// a ConfigMap `kube-root-ca.crt`.
    pub service_accounts: bool,
    /// How many connections are served at once; more are closed.
    pub max_connections: usize,
    /// `--max-requests-inflight`: how many requests that read are served at once; more are refused with 429. Zero is no limit.
    pub max_requests_in_flight: usize,
    /// `--max-mutating-requests-inflight`: the same for requests that write.
    pub max_mutating_requests_in_flight: usize,
    /// How much of the past is kept for watches and for lists in pages, in bytes.
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
            trusted_groups: crate::handler::TRUSTED.map(str::to_owned).to_vec(),
            token_webhook: None,
            access_webhook: None,
            tracing_config_file: None,
            feature_gates: FeatureGates::default(),
            services: None,
            service_range: Addresses::DEFAULT,
            nodes: None,
            service_accounts: false,
            max_connections: MAX_CONNECTIONS,
            max_requests_in_flight: MAX_READS,
            max_mutating_requests_in_flight: MAX_WRITES,
            history_bytes: store::Options::default().history_bytes,
        }
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StartError {
    #[error("the data directory {0:?} is not a directory: name another, or one that is not there yet")]
    DataDir(PathBuf),
    #[error("the data directory {path:?} cannot be made: {file:?} is not a directory")]
    UnderFile { path: PathBuf, file: PathBuf },
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the store cannot be opened")]
    Store(#[from] store::OpenError),
    #[error("the first objects cannot be written")]
    Bootstrap(#[from] store::WriteError),
    #[error("there are no certificates")]
    Certs(#[from] certs::Error),
    #[error("nobody can be let in")]
    Access(#[from] access::Error),
    #[error("the tracing configuration cannot be used")]
    Tracing(#[from] trace::config::Error),
}

/// Whether this can be a data directory: one that is not there yet is made.
///
/// # Errors
/// If something else is there, or where a directory above it would be.
pub fn check_data_dir(data_dir: Option<&Path>) -> Result<(), StartError> {
    let Some(path) = data_dir else { return Ok(()) };
    match path.ancestors().find(|above| above.exists()).filter(|above| !above.is_dir()) {
        Some(file) if file == path => Err(StartError::DataDir(file.to_owned())),
        Some(file) => Err(StartError::UnderFile { path: path.to_owned(), file: file.to_owned() }),
        None => Ok(()),
    }
}

/// Whether a server runs with this data directory.
pub fn is_data_dir_in_use(data_dir: &Path) -> bool {
    store::is_in_use(&objects(data_dir))
}

/// Where a data directory has the store.
fn objects(data_dir: &Path) -> PathBuf {
    data_dir.join("objects")
}

/// A running server. It stops when it is told to; dropped, it stops without waiting for anybody.
#[derive(Debug)]
pub struct ApiServer {
    core: Arc<Core>,
    server: Server,
    certs: Certs,
    tracing: Option<Tracing>,
    _controllers: JoinSet<()>,
}

impl ApiServer {
    /// Starts a server. When this returns, it serves.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        check_data_dir(options.data_dir.as_deref())?;
        let listener = TcpListener::bind(options.listen)
            .await
            .map_err(|source| StartError::Listen { address: options.listen, source })?;
        let certs = certificates(&options)?;
        let tls = server_config(Serving::new(&certs.server)?, [certs.authority.certificate()])?;
        let store = Store::open(store::Options {
            data_dir: options.data_dir.as_deref().map(objects),
            history_bytes: options.history_bytes,
            ..store::Options::default()
        })?;
        let tracing = tracing(&options, &store)?;
        let core = core(&options, store)?;
        core.tracer.set(tracing.as_ref().map(|tracing| Arc::clone(tracing.pipeline())));
        bootstrap::write(&core).await?;
        if let Ok(address) = listener.local_addr() {
            own_service::write(&core, options.service_range.0, address).await?;
        }
        // What was there at the start is no news to anybody.
        core.store.forget_history();
        controller::definitions::restore(&core);
        let controllers = controller::start(&core, certs.authority.certificate());
        let server = Server::start(listener, tls, Front::new(Arc::clone(&core)), options.max_connections)
            .map_err(|source| StartError::Listen { address: options.listen, source })?;
        core.set_port(server.address().port());
        Ok(Self { core, server, certs, tracing, _controllers: controllers })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// As in a kubeconfig.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// How an administrator reaches it.
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

    /// Ends watches, lets other requests end, sends the last spans, and closes the store.
    pub async fn stop(self) {
        self.core.stop.send_replace(true);
        self.server.stop().await;
        if let Some(tracing) = self.tracing {
            tracing.stop().await;
        }
        self.core.store.close();
    }
}

fn certificates(options: &Options) -> Result<Certs, certs::Error> {
    let subjects = Subjects { names: options.names.clone(), addresses: vec![options.listen.ip()] };
    match &options.data_dir {
        Some(dir) => Certs::in_directory(&dir.join("certificates"), &subjects, Timestamp::now()),
        None => Certs::generate(&subjects, Timestamp::now()),
    }
}

/// Spans on their way, if there is a file that says where to.
fn tracing(options: &Options, store: &Store) -> Result<Option<Tracing>, trace::config::Error> {
    let Some(file) = options.tracing_config_file.clone() else { return Ok(None) };
    if !options.feature_gates.tracing {
        tracing::warn!(file = %file.display(), "APIServerTracing is off: the tracing configuration is not used");
        return Ok(None);
    }
    let services = services(options, store);
    let instance = format!("apiserver-{}", identity::uid());
    let trusted_groups = options.trusted_groups.clone();
    Tracing::start(Settings { file, trusted_groups, services, instance }).map(Some)
}

fn services(options: &Options, store: &Store) -> Arc<dyn Services> {
    options.services.clone().unwrap_or_else(|| Arc::new(store.clone()))
}

fn core(options: &Options, store: Store) -> Result<Arc<Core>, StartError> {
    let key = options.data_dir.as_ref().map(|dir| dir.join("certificates").join("service-account.key"));
    let files = Files {
        tokens: options.token_file.as_deref(),
        token_webhook: options.token_webhook.as_deref(),
        access_webhook: options.access_webhook.as_deref(),
        signing_key: key.as_deref(),
    };
    let mut access = Access::new(&store, files, options.anonymous)?;
    if let Some(ttl) = options.token_cache_ttl {
        let cached = |it: Arc<dyn Authenticator>| Arc::new(TokenCache::new(it, ttl)) as Arc<dyn Authenticator>;
        access.authentication.tokens = access.authentication.tokens.into_iter().map(cached).collect();
    }
    let admission = Admission::new(services(options, &store));
    let (network, bits) = options.service_range;
    let addresses = Arc::new(Addresses::new(network, bits));
    addresses.ask(claims::holder(&store));
    Ok(Arc::new(Core {
        store,
        registry: Registry::new(kinds::catalog_with(&addresses)),
        access,
        admission,
        nodes: options.nodes.clone(),
        service_accounts: options.service_accounts,
        tracer: if options.feature_gates.tracing { Tracer::default() } else { Tracer::off() },
        metrics: Metrics::default(),
        clock: Timestamp::now,
        body_limit: BODY_LIMIT,
        in_flight: InFlightLimits::new(options.max_requests_in_flight, options.max_mutating_requests_in_flight),
        heavy: HeavyWork::default(),
        stop: watch::Sender::new(false),
        port: AtomicU16::new(0),
    }))
}

#[cfg(test)]
mod tests;
