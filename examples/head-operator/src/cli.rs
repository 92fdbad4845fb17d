//! The command line: of the program, and of a command of `kubewake`.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use kubewake_trail::{NamespaceTrust, TelemetrySetup, TraceMode, connect};
use tokio::signal::unix::{SignalKind, signal};

use crate::{manifests, operator};

/// The commands of the program.
#[derive(Debug, clap::Subcommand)]
pub enum HeadOperatorCommand {
    /// Runs the operator until SIGTERM; the OTEL_* variables configure the export of spans
    Run(HeadOperatorArgs),
    /// Prints the custom resource definitions
    Crds,
}

/// Arguments of the operator.
#[derive(Debug, clap::Args)]
pub struct HeadOperatorArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, or the pod's ServiceAccount]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the objects [default: all namespaces]
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Whether a reconcile continues the trace context of its object, or starts a new trace with a link
    #[arg(long, value_enum, default_value_t = TraceModeArg::Tree)]
    mode: TraceModeArg,
    /// A namespace whose trace context is not trusted; can be repeated
    #[arg(long, value_name = "NAMESPACE")]
    distrust: Vec<String>,
    /// Interval of periodic reconciles of each object, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    resync_ms: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TraceModeArg {
    Tree,
    Links,
}

/// Runs a command. The operator runs until SIGTERM or Ctrl-C.
///
/// # Errors
/// If the telemetry or the client for the cluster cannot be set up.
pub async fn run(command: HeadOperatorCommand) -> anyhow::Result<()> {
    match command {
        HeadOperatorCommand::Run(args) => args.run().await,
        HeadOperatorCommand::Crds => {
            print!("{}", manifests::crds_yaml()?);
            Ok(())
        }
    }
}

impl HeadOperatorArgs {
    async fn run(self) -> anyhow::Result<()> {
        let setup =
            TelemetrySetup::new("head-operator").version(env!("CARGO_PKG_VERSION")).options(self.trail_options());
        let (telemetry, trail) = setup.start()?;
        let config = connect::config(self.kubeconfig.as_deref()).await?;
        let client = trail.client(config).context("failed to create a client for the cluster")?;
        let mut terminate = signal(SignalKind::terminate())?;
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        let options = operator::HeadOperatorOptions {
            resync_interval: Duration::from_millis(self.resync_ms),
            namespace: self.namespace,
        };
        operator::run(client, trail, &options, || println!("ready head-operator"), stop).await;
        telemetry.shutdown();
        Ok(())
    }

    fn trail_options(&self) -> kubewake_trail::Options {
        let mode = match self.mode {
            TraceModeArg::Tree => TraceMode::Tree,
            TraceModeArg::Links => TraceMode::Links,
        };
        kubewake_trail::Options {
            mode,
            trust: NamespaceTrust::except(self.distrust.clone()),
            ..kubewake_trail::Options::default()
        }
    }
}
