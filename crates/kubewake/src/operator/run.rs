//! The operator as a process.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use futures_util::FutureExt as _;
use kube::Client;
use kubewake_operator::{
    admission::{self, Admission},
    context::Options,
    health,
    leader::Terms,
    metrics::Metrics,
    operator::Operator,
    status::READY,
};
use kubewake_release::Image;
use kubewake_trail::{
    Options as TrailOptions, Setup, Trail,
    webhook::{certificates, endpoint::Endpoint},
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

use crate::{client, logging};

/// The Secret in which replicas share the certificates of the webhook.
const CERTIFICATES: &str = "kubewake-operator-certificates";

/// Arguments of `kubewake operator` without a command.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
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
    #[arg(long, value_name = "IMAGE", default_value = Image::Collector.reference())]
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
    /// Where to serve the admission webhook, over TLS; without it there is none, and whoever may write pipelines can name every Secret
    #[arg(long, value_name = "ADDR")]
    webhook_listen: Option<SocketAddr>,
    /// The Service, in the operator's namespace, by which API servers reach the webhook at port 443 [default: the address that it listens on]
    #[arg(long, value_name = "NAME", requires = "webhook_listen")]
    webhook_service: Option<String>,
    /// How long the webhook serves on when the operator is told to end, in seconds, until API servers have learned to call another replica
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600))]
    shutdown_delay_seconds: u64,
}

pub(super) async fn run(args: RunArgs) -> anyhow::Result<()> {
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
    let config = client::config(args.kubeconfig.as_deref()).await?;
    let leases = Trail::off().client(client::quiet(config.clone())).context("the cluster cannot be reached")?;
    let client = trail.client(config).context("the cluster cannot be reached")?;
    // Before anybody is told that it is ready: a Service leads API servers here then.
    let mut admission = tokio::select! {
        admission = args.admission(&client) => admission?,
        () = stop.clone() => return Ok(()),
    };
    let (listener, metrics) = (bind(args.listen).await?, Arc::new(Metrics::default()));
    let (address, page) = (listener.local_addr()?, page(&metrics, admission.as_ref()));
    let (done, over) = oneshot::channel::<()>();
    let health = health::serve(listener, page, async { drop(over.await) });
    let operator = Operator { client, leases, trail, options: args.options(), terms: args.terms(), metrics };
    println!("ready operator on {address}");

    let delay = Duration::from_secs(admission.as_ref().map_or(0, |_| args.shutdown_delay_seconds));
    let work = async {
        // Whichever way it ends, nothing is left to be said.
        let operate = async {
            let ended = operator.run(stop).await;
            drop(done);
            ended
        };
        let ended = tokio::join!(operate, health);
        tokio::time::sleep(delay).await;
        ended
    };
    let (ended, health) = match &mut admission {
        Some(admission) => tokio::select! {
            never = admission.run() => match never {},
            ended = work => ended,
        },
        None => work.await,
    };
    if let Some(admission) = admission {
        admission.stop().await;
    }
    telemetry.shutdown();
    health.context("what it says of itself cannot be served")?;
    Ok(ended?)
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// What Prometheus gets to see.
fn page(metrics: &Arc<Metrics>, admission: Option<&Admission>) -> impl Fn() -> String + Clone + Send + Sync + use<> {
    let (metrics, admission) = (Arc::clone(metrics), admission.map(Admission::page));
    move || metrics.page() + &admission.as_ref().map(|page| page()).unwrap_or_default()
}

impl RunArgs {
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

    async fn admission(&self, client: &Client) -> anyhow::Result<Option<Admission>> {
        let Some(listen) = self.webhook_listen else { return Ok(None) };
        let listener = bind(listen).await?;
        let endpoint = match &self.webhook_service {
            Some(name) => Endpoint::service(&self.namespace, name, 443),
            None => Endpoint::listening(listener.local_addr()?).with_context(|| {
                format!("who serves the webhook on {listen} must say how it is reached: --webhook-service")
            })?,
        };
        let options = admission::Options {
            namespace: self.namespace.clone(),
            certificates: self.webhook_service.as_ref().map(|_| CERTIFICATES.to_owned()),
            endpoint,
            terms: certificates::Terms::default(),
        };
        Ok(Some(Admission::begin(client.clone(), listener, options).await?))
    }
}
