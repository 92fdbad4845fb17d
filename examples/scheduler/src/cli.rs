//! The command line, for a program of its own and for one that has it among others.

use std::path::PathBuf;

use anyhow::Context as _;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    manifests,
    operator::{self, build::Operand},
    scheduler::{self, Identity},
    telemetry,
};

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
    #[arg(long, value_name = "IMAGE", default_value = "kubewake/demo-scheduler")]
    image: String,
    /// The ServiceAccount of schedulers
    #[arg(long, value_name = "NAME", default_value = "demo-scheduler")]
    service_account: String,
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
    let config = config(args.kubeconfig).await?;
    let namespace = args.namespace.unwrap_or_else(|| config.default_namespace.clone());
    let (telemetry, trail) = telemetry::setup("scheduler-operator");
    let client = trail.client(config).context("the kubeconfig is no good")?;
    let (image, account) = (args.image, args.service_account);
    let operand = Operand { image, command: Vec::new(), account, telemetry: trail.exporter_env() };
    let stop = until_told()?;
    println!("ready operator of the Schedulers in {namespace}");
    operator::run(client, trail, &namespace, operand, stop).await;
    telemetry.shutdown()?;
    Ok(())
}

async fn schedule(args: ScheduleArgs) -> anyhow::Result<()> {
    let config = config(args.kubeconfig).await?;
    let namespace = config.default_namespace.clone();
    let (telemetry, trail) = telemetry::setup("demo-scheduler");
    let client = trail.client(config).context("the kubeconfig is no good")?;
    let pod = std::env::var("POD_NAME").unwrap_or_else(|_| args.scheduler.clone());
    let (scheduler, name, config_map) = (args.scheduler, args.name, args.config_map);
    let stop = until_told()?;
    println!("ready scheduler of pods that name {name}");
    scheduler::run(client, trail, Identity { namespace, scheduler, name, config_map, pod }, stop).await;
    telemetry.shutdown()?;
    Ok(())
}

/// How to reach the cluster.
async fn config(file: Option<PathBuf>) -> anyhow::Result<Config> {
    let Some(file) = file else {
        return Config::infer().await.context("there is no way to a cluster: give --kubeconfig or set KUBECONFIG");
    };
    let read = Kubeconfig::read_from(&file).with_context(|| format!("{} is no kubeconfig", file.display()))?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    config.with_context(|| format!("{} is no kubeconfig", file.display()))
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
