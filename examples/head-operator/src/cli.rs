//! The command line, for a program of its own and for one that has it among others.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use kubewake_trail::{NamespaceTrust, TelemetrySetup, TraceMode, connect};
use tokio::signal::unix::{SignalKind, signal};

use crate::{manifests, operator};

/// What can be done.
#[derive(Debug, clap::Subcommand)]
pub enum HeadOperatorCommand {
    /// Works until SIGTERM; spans go where the OTEL_* variables say
    Run(HeadOperatorArgs),
    /// Prints the custom resource definitions
    Crds,
}

/// Arguments of the operator.
#[derive(Debug, clap::Args)]
pub struct HeadOperatorArgs {
    /// The cluster to work on; else $KUBECONFIG, or the one that it is a pod of
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace to work in; all of them without it
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Whether a reconcile is a child of the context on its object, or a new trace with a link to it
    #[arg(long, value_enum, default_value_t = TraceModeArg::Tree)]
    mode: TraceModeArg,
    /// A namespace whose contexts are not followed; may be given more than once
    #[arg(long, value_name = "NAMESPACE")]
    distrust: Vec<String>,
    /// How long an object is left alone when nothing happens to it, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    resync_ms: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TraceModeArg {
    Tree,
    Links,
}

/// Does it, until it is told to stop.
///
/// # Errors
/// It cannot begin.
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
        let client = trail.client(config).context("the cluster cannot be reached")?;
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
