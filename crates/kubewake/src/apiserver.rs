//! `kubewake apiserver`: Kubernetes' API in one process.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use kubewake_apiserver::server::{ApiServer, FeatureGates, Options};
use tokio::signal::unix::{SignalKind, signal};

use crate::logging;

/// Arguments of `kubewake apiserver`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake apiserver --kubeconfig ./kubeconfig
  KUBECONFIG=./kubeconfig kubectl get namespaces
  kubewake apiserver --data-dir ./data --tracing-config-file tracing.yaml")]
pub(crate) struct Args {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6443")]
    listen: SocketAddr,
    /// Where to write the administrator's kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Keep objects and certificates here; in memory without it
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Bearer tokens: token,user,uid,"group1,group2" in each line
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// Let requests without credentials in, as system:anonymous
    #[arg(long, value_name = "BOOL", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    anonymous_auth: bool,
    /// Who is asked whose a token is (TokenReview): a kubeconfig
    #[arg(long, value_name = "FILE")]
    authentication_token_webhook_config_file: Option<PathBuf>,
    /// Who is asked, after RBAC, whether something may be done (SubjectAccessReview): a kubeconfig
    #[arg(long, value_name = "FILE")]
    authorization_webhook_config_file: Option<PathBuf>,
    /// Where spans go: a TracingConfiguration, or KEP-647's OpenTelemetryClientConfiguration
    #[arg(long, value_name = "FILE")]
    tracing_config_file: Option<PathBuf>,
    /// The same, by the name that KEP-647 has for it
    #[arg(long, value_name = "FILE", conflicts_with = "tracing_config_file")]
    opentelemetry_config_file: Option<PathBuf>,
    /// Switches features: APIServerTracing=true|false
    #[arg(long, value_name = "GATE=BOOL,…", default_value = "")]
    feature_gates: FeatureGates,
    /// Another name that clients use for the server; may be given more than once
    #[arg(long = "tls-name", value_name = "NAME")]
    names: Vec<String>,
    /// How many connections are served at once; more are closed
    #[arg(long, value_name = "N", default_value_t = Options::default().max_connections)]
    max_connections: usize,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let _logging = logging::start(&kubewake_config::model::Logs::default());
    let options = Options {
        listen: args.listen,
        data_dir: args.data_dir,
        names: args.names,
        token_file: args.token_auth_file,
        anonymous: args.anonymous_auth,
        token_webhook: args.authentication_token_webhook_config_file,
        access_webhook: args.authorization_webhook_config_file,
        tracing_config_file: args.tracing_config_file.or(args.opentelemetry_config_file),
        feature_gates: args.feature_gates,
        max_connections: args.max_connections,
        ..Options::default()
    };
    let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let server = ApiServer::start(options).await.context("the API server does not start")?;
    if let Some(path) = &args.kubeconfig {
        server.kubeconfig().write(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("ready apiserver on {}", server.address());
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = tokio::signal::ctrl_c() => break,
            _ = hangup.recv() => server.reload(),
        }
    }
    server.stop().await;
    Ok(())
}
