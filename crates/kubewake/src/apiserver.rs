//! `kubewake apiserver`: Kubernetes' API in one process.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use kubewake_apiserver::server::{ApiServer, Options};
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
    /// Another name that clients use for the server; may be given more than once
    #[arg(long = "tls-name", value_name = "NAME")]
    names: Vec<String>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let _logging = logging::start(&kubewake_config::model::Logs::default());
    let options = Options {
        listen: args.listen,
        data_dir: args.data_dir,
        names: args.names,
        token_file: args.token_auth_file,
        anonymous: args.anonymous_auth,
        ..Options::default()
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let server = ApiServer::start(options).await.context("the API server does not start")?;
    if let Some(path) = &args.kubeconfig {
        server.kubeconfig().write(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    println!("ready apiserver on {}", server.address());
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    server.stop().await;
    Ok(())
}
