//! The command line, for a program of its own and for one that has it among others.

use std::path::PathBuf;

use anyhow::Context as _;
use kubewake_trail::{Mode, Options, Setup, Telemetry, Trail, Trust, connect};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    manifests,
    operator::{self, build::Operand},
    scheduler::{self, Identity},
};

/// Who makes the spans of a scheduler.
const SCHEDULER: &str = "demo-scheduler";

/// What can be done.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Looks after the Schedulers of a namespace
    Operator(OperatorArgs),
    /// Gives pods a node: what the operator runs for each Scheduler
    Schedule(ScheduleArgs),
    /// Prints the custom resource
    Crds,
}

/// Arguments of the operator.
#[derive(Debug, clap::Args)]
pub struct OperatorArgs {
    /// How to reach the cluster; $KUBECONFIG, or the one around, unless given
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where its Schedulers are; where the kubeconfig says, unless given
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The image of schedulers
    #[arg(long, value_name = "IMAGE", default_value = kubewake_release::Image::DemoScheduler.reference())]
    image: String,
    /// The ServiceAccount of schedulers
    #[arg(long, value_name = "NAME", default_value = "demo-scheduler")]
    service_account: String,
    #[command(flatten)]
    tracing: TracingArgs,
}

/// How work hangs together with what caused it.
#[derive(Debug, clap::Args)]
struct TracingArgs {
    /// Whether the trace of a change goes on, or each piece of work has one of its own with a link to it
    #[arg(long, value_enum, default_value_t = Relation::Tree)]
    mode: Relation,
    /// A namespace whose contexts are not followed; may be given more than once
    #[arg(long, value_name = "NAMESPACE")]
    distrust: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Relation {
    Tree,
    Links,
}

/// Arguments of a scheduler.
#[derive(Debug, clap::Args)]
pub struct ScheduleArgs {
    /// How to reach the cluster; $KUBECONFIG, or the one around, unless given
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Its Scheduler
    #[arg(long, value_name = "NAME")]
    scheduler: String,
    /// The name that pods ask for it by
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The ConfigMap of its configuration
    #[arg(long, value_name = "NAME")]
    config_map: String,
    #[command(flatten)]
    tracing: TracingArgs,
}

/// Does it, until it is told to stop.
///
/// # Errors
/// It cannot begin.
pub async fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Operator(args) => operate(args).await,
        Command::Schedule(args) => schedule(args).await,
        Command::Crds => {
            print!("{}", manifests::crds()?);
            Ok(())
        }
    }
}

async fn operate(args: OperatorArgs) -> anyhow::Result<()> {
    let config = connect::config(args.kubeconfig.as_deref()).await?;
    let namespace = args.namespace.unwrap_or_else(|| config.default_namespace.clone());
    // What holds for the operator holds for its schedulers.
    let passed_on = args.tracing.passed_on();
    let (telemetry, trail) = setup("scheduler-operator", args.tracing)?;
    let client = trail.client(config).context("the kubeconfig is no good")?;
    let operand = Operand {
        image: args.image,
        command: Vec::new(),
        args: passed_on,
        account: args.service_account,
        telemetry: trail.exporter_env(),
    };
    let stop = until_told()?;
    println!("ready operator of the Schedulers in {namespace}");
    operator::run(client, trail, &namespace, operand, stop).await;
    telemetry.shutdown();
    Ok(())
}

async fn schedule(args: ScheduleArgs) -> anyhow::Result<()> {
    let config = connect::config(args.kubeconfig.as_deref()).await?;
    let namespace = config.default_namespace.clone();
    let (telemetry, trail) = setup(SCHEDULER, args.tracing)?;
    let client = trail.client(config).context("the kubeconfig is no good")?;
    let pod = std::env::var("POD_NAME").unwrap_or_else(|_| args.scheduler.clone());
    let (scheduler, name, config_map) = (args.scheduler, args.name, args.config_map);
    let stop = until_told()?;
    println!("ready scheduler of pods that name {name}");
    scheduler::run(client, trail, Identity { namespace, scheduler, name, config_map, pod }, stop).await;
    telemetry.shutdown();
    Ok(())
}

/// Spans and log lines of one of the two programs that this is.
fn setup(service: &str, tracing: TracingArgs) -> anyhow::Result<(Telemetry, Trail)> {
    let setup = Setup::new(service).version(env!("CARGO_PKG_VERSION")).options(tracing.options());
    setup.start().context("telemetry cannot be set up")
}

impl TracingArgs {
    fn passed_on(&self) -> Vec<String> {
        let mode = match self.mode {
            Relation::Tree => None,
            Relation::Links => Some("--mode=links".to_owned()),
        };
        let distrust = self.distrust.iter().map(|namespace| format!("--distrust={namespace}"));
        mode.into_iter().chain(distrust).collect()
    }

    fn options(self) -> Options {
        let mode = match self.mode {
            Relation::Tree => Mode::Tree,
            Relation::Links => Mode::Links,
        };
        Options { mode, trust: Trust::except(self.distrust), ..Options::default() }
    }
}

fn until_told() -> anyhow::Result<impl Future<Output = ()> + Send + Sync + 'static> {
    let mut terminate = signal(SignalKind::terminate()).context("signals cannot be heard")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    })
}
