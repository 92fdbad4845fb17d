//! `kubewake operator`: pipelines as resources, and the collectors that they ask for.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use futures_util::FutureExt as _;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kubewake_operator::{context::Options, health, leader::Terms, metrics::Metrics, operator::Operator, status::READY};
use kubewake_trail::{Options as TrailOptions, Setup};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::logging;

/// Arguments of `kubewake operator`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake operator --kubeconfig ./kubeconfig
  kubewake operator --namespace telemetry --listen 0.0.0.0:8080

The custom resource definitions must be there. Its own spans go where OTEL_EXPORTER_OTLP_ENDPOINT and its kin say, which may be the
collectors that it makes.")]
pub(crate) struct Args {
    /// How to reach the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where collectors run; also where its Lease and its locks are
    #[arg(long, value_name = "NAMESPACE", default_value = "kubewake-system")]
    namespace: String,
    /// Where to serve /healthz, /readyz and /metrics; port 0 takes any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The collectors' image, unless a Telemetry names one
    #[arg(long, value_name = "IMAGE", default_value = "kubewake/collector")]
    collector_image: String,
    /// Who this is among replicas, each of which needs a name of its own [default: $POD_NAME, or the host and the process]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// After so many seconds without a word from the leader another replica takes over
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(2..=600))]
    lease_seconds: u64,
    /// How long a pipeline is left alone when nothing happens, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    resync_seconds: u64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let _logging = logging::start(&kubewake_config::model::Logs::default());
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    let stop = stop.boxed().shared();
    // What a pipeline waits for is collectors that take its data.
    let traced = TrailOptions { ready: READY.to_owned(), ..TrailOptions::default() };
    let setup = Setup::new("kubewake-operator").version(env!("CARGO_PKG_VERSION")).options(traced);
    let (telemetry, trail) = setup.without_subscriber().start()?;
    let client = trail.client(args.config().await?).context("the cluster cannot be reached")?;
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen on {}", args.listen))?;
    let (address, metrics) = (listener.local_addr()?, Arc::new(Metrics::default()));
    let health = health::serve(listener, Arc::clone(&metrics), stop.clone());
    let operator = Operator { client, trail, options: args.options(), terms: args.terms(), metrics };
    println!("ready operator on {address}");
    let (ended, health) = tokio::join!(operator.run(stop), health);
    telemetry.shutdown();
    health.context("what it says of itself cannot be served")?;
    Ok(ended?)
}

impl Args {
    fn options(&self) -> Options {
        Options {
            namespace: self.namespace.clone(),
            image: self.collector_image.clone(),
            resync: Duration::from_secs(self.resync_seconds),
        }
    }

    fn terms(&self) -> Terms {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let host = || variable("HOSTNAME").unwrap_or_else(|| "operator".to_owned());
        let identity = self.identity.clone().or_else(|| variable("POD_NAME"));
        let identity = identity.unwrap_or_else(|| format!("{}-{}", host(), std::process::id()));
        Terms { identity, seconds: self.lease_seconds }
    }

    /// By the given kubeconfig, else as kubectl finds it, else as a pod does.
    async fn config(&self) -> anyhow::Result<Config> {
        let Some(path) = &self.kubeconfig else {
            return Config::infer().await.context("there is no cluster: name one by --kubeconfig or KUBECONFIG");
        };
        let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
    }
}
