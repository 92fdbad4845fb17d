//! `kubewake apiserver`: Kubernetes' API in one process.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use kubewake_apiserver::server::{ApiServer, FeatureGates, Options};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::logging;

/// Arguments of `kubewake apiserver`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake apiserver --kubeconfig ./kubeconfig
  KUBECONFIG=./kubeconfig kubectl get namespaces
  kubewake apiserver --data-dir ./data --tracing-config-file tracing.yaml")]
pub(crate) struct ApiServerArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// How to run an API server, alone or in a cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct ServerArgs {
    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// File for the administrator's kubeconfig; missing directories are created
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Directory for objects and certificates [default: only in memory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// File of bearer tokens: token,user,uid,"group1,group2" in each line
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// For tests: cache the validation of a token for this number of seconds, as kube-apiserver does for
    /// 10 seconds, even if its ServiceAccount is deleted
    #[arg(long, value_name = "SECONDS", hide = true, value_parser = clap::value_parser!(u64).range(1..=3600))]
    token_cache_ttl: Option<u64>,
    /// Accept requests without credentials as system:anonymous
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    anonymous_auth: bool,
    /// Kubeconfig of the webhook that authenticates tokens (TokenReview)
    #[arg(long, value_name = "FILE")]
    authentication_token_webhook_config_file: Option<PathBuf>,
    /// Kubeconfig of the webhook that authorizes requests after RBAC (SubjectAccessReview)
    #[arg(long, value_name = "FILE")]
    authorization_webhook_config_file: Option<PathBuf>,
    /// Tracing configuration: a TracingConfiguration, or KEP-647's OpenTelemetryClientConfiguration
    #[arg(long, value_name = "FILE")]
    tracing_config_file: Option<PathBuf>,
    /// Alias of --tracing-config-file in KEP-647
    #[arg(long, value_name = "FILE", conflicts_with = "tracing_config_file")]
    opentelemetry_config_file: Option<PathBuf>,
    /// Feature gates: APIServerTracing=true|false
    #[arg(long, value_name = "GATE=BOOL,…", default_value = "")]
    feature_gates: FeatureGates,
    /// Additional host name of the server, for its certificate; can be repeated
    #[arg(long = "tls-name", value_name = "NAME")]
    names: Vec<String>,
    /// Maximum number of connections; further connections are closed
    #[arg(long, value_name = "N", default_value_t = Options::default().max_connections)]
    max_connections: usize,
    /// Maximum number of read requests in flight; further ones are refused with 429. 0 means no limit
    #[arg(long, value_name = "N", default_value_t = Options::default().max_requests_in_flight)]
    max_requests_inflight: usize,
    /// Maximum number of write requests in flight; further ones are refused with 429. 0 means no limit
    #[arg(long, value_name = "N", default_value_t = Options::default().max_mutating_requests_in_flight)]
    max_mutating_requests_inflight: usize,
}

impl ServerArgs {
    pub(crate) fn options(&self) -> Options {
        Options {
            listen: self.listen,
            data_dir: self.data_dir.clone(),
            names: self.names.clone(),
            token_file: self.token_auth_file.clone(),
            token_cache_ttl: self.token_cache_ttl.map(Duration::from_secs),
            anonymous: self.anonymous_auth,
            token_webhook: self.authentication_token_webhook_config_file.clone(),
            access_webhook: self.authorization_webhook_config_file.clone(),
            tracing_config_file: self.tracing_config_file.clone().or(self.opentelemetry_config_file.clone()),
            feature_gates: self.feature_gates,
            max_connections: self.max_connections,
            max_requests_in_flight: self.max_requests_inflight,
            max_mutating_requests_in_flight: self.max_mutating_requests_inflight,
            ..Options::default()
        }
    }

    /// Writes the administrator's kubeconfig where it was asked for.
    pub(crate) fn write_kubeconfig(&self, server: &ApiServer) -> anyhow::Result<()> {
        let Some(path) = &self.kubeconfig else { return Ok(()) };
        server.kubeconfig().write(path).with_context(|| format!("failed to write the kubeconfig {}", path.display()))
    }
}

/// The signals that a server listens to, from before it is ready.
pub(crate) struct ServerSignals {
    terminate: Signal,
    hangup: Signal,
}

impl ServerSignals {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, hangup: signal(SignalKind::hangup())? })
    }

    /// Waits for the one that says to end, and lets the server read again what may have changed when told so.
    pub(crate) async fn wait_for_shutdown(mut self, server: &ApiServer) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = tokio::signal::ctrl_c() => return,
                _ = self.hangup.recv() => server.reload(),
            }
        }
    }
}

pub(crate) async fn run(args: ApiServerArgs) -> anyhow::Result<()> {
    let _logging = logging::start(&kubewake_config::model::LogsConfig::default());
    let signals = ServerSignals::new()?;
    let server = ApiServer::start(args.server.options()).await.context("failed to start the API server")?;
    args.server.write_kubeconfig(&server)?;
    println!("ready apiserver on {}", server.address());
    signals.wait_for_shutdown(&server).await;
    server.stop().await;
    Ok(())
}
