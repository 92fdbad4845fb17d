//! The command line: of the program, and of a command of `kubewake`.

use std::path::PathBuf;

use anyhow::Context as _;
use kubewake_trail::{NamespaceTrust, Options, TelemetryGuard, TelemetrySetup, TraceMode, Trail, connect};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    manifests,
    operator::{self, build::OperandSettings},
    scheduler::{self, SchedulerIdentity},
};

/// The service name in the spans of a scheduler.
const SCHEDULER_SERVICE_NAME: &str = "demo-scheduler";

/// The commands of the program.
#[derive(Debug, clap::Subcommand)]
pub enum SchedulerCommand {
    /// Runs the operator for the Schedulers of a namespace
    Operator(OperatorArgs),
    /// Runs a scheduler, as the operator does for each Scheduler
    Schedule(ScheduleArgs),
    /// Prints the custom resource definition
    Crds,
}

/// Arguments of the operator.
#[derive(Debug, clap::Args)]
pub struct OperatorArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, or the pod's ServiceAccount]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the Schedulers [default: that of the kubeconfig's context]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Image of the schedulers
    #[arg(long, value_name = "IMAGE", default_value = kubewake_release::ReleaseImage::DemoScheduler.reference())]
    image: String,
    /// ServiceAccount of the schedulers
    #[arg(long, value_name = "NAME", default_value = "demo-scheduler")]
    service_account: String,
    #[command(flatten)]
    tracing: TracingArgs,
}

/// How spans relate to the trace of the change that caused them.
#[derive(Debug, clap::Args)]
struct TracingArgs {
    /// Whether work continues the trace of a change, or starts a new trace with a link
    #[arg(long, value_enum, default_value_t = TraceModeArg::Tree)]
    mode: TraceModeArg,
    /// A namespace whose trace context is not trusted; can be repeated
    #[arg(long, value_name = "NAMESPACE")]
    distrust: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TraceModeArg {
    Tree,
    Links,
}

/// Arguments of a scheduler.
#[derive(Debug, clap::Args)]
pub struct ScheduleArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, or the pod's ServiceAccount]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Name of its Scheduler object
    #[arg(long, value_name = "NAME")]
    scheduler: String,
    /// The `spec.schedulerName` of its pods
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Name of the ConfigMap with its configuration
    #[arg(long, value_name = "NAME")]
    config_map: String,
    #[command(flatten)]
    tracing: TracingArgs,
}

/// Runs a command. An operator or scheduler runs until SIGTERM or Ctrl-C.
///
/// # Errors
/// If the telemetry or the client for the cluster cannot be set up.
pub async fn run(command: SchedulerCommand) -> anyhow::Result<()> {
    match command {
        SchedulerCommand::Operator(args) => run_operator(args).await,
        SchedulerCommand::Schedule(args) => run_scheduler(args).await,
        SchedulerCommand::Crds => {
            print!("{}", manifests::crds_yaml()?);
            Ok(())
        }
    }
}

async fn run_operator(args: OperatorArgs) -> anyhow::Result<()> {
    // The schedulers trace as the operator does.
    let scheduler_args = args.tracing.to_scheduler_args();
    let (telemetry, trail) = setup_tracing("scheduler-operator", args.tracing)?;
    let config = connect::config(args.kubeconfig.as_deref()).await?;
    let namespace = args.namespace.unwrap_or_else(|| config.default_namespace.clone());
    let client = trail.client(config).context("failed to create a client for the cluster")?;
    let operand = OperandSettings {
        image: args.image,
        command: Vec::new(),
        args: scheduler_args,
        service_account: args.service_account,
        telemetry_env: trail.exporter_env(),
    };
    let stop = shutdown_signal()?;
    println!("ready operator of the Schedulers in {namespace}");
    operator::run(client, trail, &namespace, operand, stop).await;
    telemetry.shutdown();
    Ok(())
}

async fn run_scheduler(args: ScheduleArgs) -> anyhow::Result<()> {
    let (telemetry, trail) = setup_tracing(SCHEDULER_SERVICE_NAME, args.tracing)?;
    let config = connect::config(args.kubeconfig.as_deref()).await?;
    let namespace = config.default_namespace.clone();
    let client = trail.client(config).context("failed to create a client for the cluster")?;
    let pod = std::env::var("POD_NAME").unwrap_or_else(|_| args.scheduler.clone());
    let scheduler = args.scheduler;
    let name = args.name;
    let config_map = args.config_map;
    let stop = shutdown_signal()?;
    println!("ready scheduler of pods that name {name}");
    scheduler::run(client, trail, SchedulerIdentity { namespace, scheduler, name, config_map, pod }, stop).await;
    telemetry.shutdown();
    Ok(())
}

/// Sets up the spans and log lines of the operator or of a scheduler.
fn setup_tracing(service: &str, tracing: TracingArgs) -> anyhow::Result<(TelemetryGuard, Trail)> {
    let setup = TelemetrySetup::new(service).version(env!("CARGO_PKG_VERSION")).options(tracing.into_trail_options());
    setup.start().context("failed to set up telemetry")
}

impl TracingArgs {
    fn to_scheduler_args(&self) -> Vec<String> {
        let mode = match self.mode {
            TraceModeArg::Tree => None,
            TraceModeArg::Links => Some("--mode=links".to_owned()),
        };
        let distrust = self.distrust.iter().map(|namespace| format!("--distrust={namespace}"));
        mode.into_iter().chain(distrust).collect()
    }

    fn into_trail_options(self) -> Options {
        let mode = match self.mode {
            TraceModeArg::Tree => TraceMode::Tree,
            TraceModeArg::Links => TraceMode::Links,
        };
        Options { mode, trust: NamespaceTrust::except(self.distrust), ..Options::default() }
    }
}

fn shutdown_signal() -> anyhow::Result<impl Future<Output = ()> + Send + Sync + 'static> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to register a signal handler")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    })
}
