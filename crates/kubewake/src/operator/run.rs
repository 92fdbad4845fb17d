//! The operator as a process.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use futures_util::FutureExt as _;
use kube::Client;
use kubewake_operator::{
    LeaseConfig, Operator, OperatorMetrics, OperatorOptions, READY_CONDITION,
    admission::{self, AdmissionServer},
    health, names,
};
use kubewake_release::ReleaseImage;
use kubewake_trail::{Options as TrailOptions, TelemetrySetup, Trail};
use kubewake_webhook::{certificates, target::WebhookTarget};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

use crate::{kube_client, logging};

/// The Secret in which replicas share the certificates of the webhook.
const CERTIFICATES_SECRET: &str = "kubewake-operator-certificates";

/// Arguments of `kubewake operator` without a command.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's ServiceAccount]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the collectors, of the operator's Lease and of its locks
    #[arg(long, value_name = "NAMESPACE", default_value = "kubewake-system")]
    namespace: String,
    /// Address for /healthz, /readyz and /metrics; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Image of the collectors, unless a Telemetry sets spec.image
    #[arg(long, value_name = "IMAGE", default_value = ReleaseImage::Collector.reference())]
    collector_image: String,
    /// Identity of this replica in the Lease, unique among replicas [default: $POD_NAME, or the host and
    /// the process id]
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// Duration of the Lease, in seconds: another replica takes over if the leader does not renew the Lease in time
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(2..=600))]
    lease_seconds: u64,
    /// Interval of periodic reconciles of each pipeline, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    resync_seconds: u64,
    /// Address of the admission webhook, over TLS. Without the webhook, every author of pipelines can reference every
    /// Secret [default: no webhook]
    #[arg(long, value_name = "ADDR")]
    webhook_listen: Option<SocketAddr>,
    /// Service in the operator's namespace through which API servers call the webhook, on port 443 [default:
    /// the address of --webhook-listen]
    #[arg(long, value_name = "NAME", requires = "webhook_listen")]
    webhook_service: Option<String>,
    /// How long the webhook continues to serve after SIGTERM, in seconds, until API servers call another
    /// replica
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600))]
    shutdown_delay_seconds: u64,
}

pub(super) async fn run(args: RunArgs) -> anyhow::Result<()> {
    let _logging = logging::start(&kubewake_config::model::LogsConfig::default());
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    let stop = stop.boxed().shared();
    // A pipeline has converged when collectors accept its data.
    let traced = TrailOptions { ready: READY_CONDITION.to_owned(), ..TrailOptions::default() };
    let setup = TelemetrySetup::new("kubewake-operator").version(env!("CARGO_PKG_VERSION")).options(traced);
    let (telemetry, trail) = setup.without_subscriber().start()?;
    let config = kube_client::load_config(args.kubeconfig.as_deref()).await?;
    let leases = Trail::disabled()
        .client(kube_client::without_tracing(config.clone()))
        .context("failed to create a client for the cluster")?;
    let client = trail.client(config).context("failed to create a client for the cluster")?;
    // Before readiness is reported: from then on the Service routes API servers here.
    let mut admission = tokio::select! {
        admission = args.start_admission(&client) => admission?,
        () = stop.clone() => return Ok(()),
    };
    let listener = bind(args.listen).await?;
    let metrics = Arc::new(OperatorMetrics::default());
    let address = listener.local_addr()?;
    let page = render_metrics(&metrics, admission.as_ref());
    let (done, over) = oneshot::channel::<()>();
    let health = health::serve(listener, page, async { drop(over.await) });
    let operator = Operator {
        client,
        lease_client: leases,
        trail,
        options: args.options(),
        lease_config: args.lease_config(),
        metrics,
    };
    println!("ready operator on {address}");

    let delay = Duration::from_secs(admission.as_ref().map_or(0, |_| args.shutdown_delay_seconds));
    let work = async {
        // The health server stops with the operator, whatever the result.
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
    health.context("failed to serve health checks and metrics")?;
    Ok(ended?)
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("failed to listen on {address}"))
}

/// What Prometheus gets to see.
fn render_metrics(
    metrics: &Arc<OperatorMetrics>,
    admission: Option<&AdmissionServer>,
) -> impl Fn() -> String + Clone + Send + Sync + use<> {
    let metrics = Arc::clone(metrics);
    let admission = admission.map(AdmissionServer::metrics_page);
    move || metrics.render() + &admission.as_ref().map(|page| page()).unwrap_or_default()
}

impl RunArgs {
    fn options(&self) -> OperatorOptions {
        OperatorOptions {
            namespace: self.namespace.clone(),
            agent_namespace: names::AGENT_NAMESPACE.to_owned(),
            image: self.collector_image.clone(),
            resync: Duration::from_secs(self.resync_seconds),
        }
    }

    fn lease_config(&self) -> LeaseConfig {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let host = || variable("HOSTNAME").unwrap_or_else(|| "operator".to_owned());
        let identity = self.identity.clone().or_else(|| variable("POD_NAME"));
        let identity = identity.unwrap_or_else(|| format!("{}-{}", host(), std::process::id()));
        LeaseConfig { identity, seconds: self.lease_seconds }
    }

    async fn start_admission(&self, client: &Client) -> anyhow::Result<Option<AdmissionServer>> {
        let Some(listen) = self.webhook_listen else { return Ok(None) };
        let listener = bind(listen).await?;
        let endpoint = match &self.webhook_service {
            Some(name) => WebhookTarget::from_service(&self.namespace, name, 443),
            None => WebhookTarget::from_listen_address(listener.local_addr()?).with_context(|| {
                format!("no address for the webhook, which listens on {listen}: set --webhook-service")
            })?,
        };
        let options = admission::AdmissionOptions {
            namespace: self.namespace.clone(),
            certificates: self.webhook_service.as_ref().map(|_| CERTIFICATES_SECRET.to_owned()),
            endpoint,
            terms: certificates::CertificateTerms::default(),
        };
        Ok(Some(AdmissionServer::start(client.clone(), listener, options).await?))
    }
}
