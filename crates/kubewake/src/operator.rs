//! `kubewake operator`: pipelines as resources, and the collectors that they ask for; and what it takes to install it.

mod manifests;
mod run;
mod tracing_config;

use clap::Subcommand;

/// Arguments of `kubewake operator`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  kubewake operator --kubeconfig ./kubeconfig
  kubewake operator --namespace telemetry --listen 0.0.0.0:8080
  kubewake operator manifests | kubectl apply -f -
  kubewake operator tracing-config > tracing.yaml

The custom resource definitions must be installed. The operator exports its own spans as the variables
OTEL_EXPORTER_OTLP_… configure; the endpoint may be the Service of the collectors."
)]
pub(crate) struct OperatorCliArgs {
    #[command(subcommand)]
    command: Option<OperatorCommand>,
    #[command(flatten)]
    run: run::RunArgs,
}

#[derive(Debug, Subcommand)]
enum OperatorCommand {
    /// Prints the manifests of the CRDs, the operator and its permissions
    Manifests(manifests::ManifestsArgs),
    /// Prints a tracing configuration with which kube-apiserver exports its spans to the pipelines
    TracingConfig(tracing_config::TracingConfigArgs),
}

/// What `kubewake operator manifests` prints.
#[cfg(feature = "cli")]
pub(crate) fn default_manifests() -> String {
    manifests::render_manifests(kubewake_release::ReleaseImage::Operator.reference(), None)
}

pub(crate) async fn run(args: OperatorCliArgs) -> anyhow::Result<()> {
    match args.command {
        None => run::run(args.run).await,
        Some(OperatorCommand::Manifests(args)) => manifests::run(&args),
        Some(OperatorCommand::TracingConfig(args)) => tracing_config::run(&args).await,
    }
}
