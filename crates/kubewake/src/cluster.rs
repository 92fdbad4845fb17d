//! `kubewake cluster`: Kubernetes on this machine, its pods local processes.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use clap::error::ErrorKind;
use kubewake_apiserver::schema::quantity::Quantity;
use kubewake_node::{
    addresses,
    cluster::{ClusterOptions, EmbeddedCluster},
    controller::autoscaler::AutoscalerSettings,
    images::{ImageEntrypoint, ImageError, ImageStore},
    kubelet::logs::LogRotation,
};
use kubewake_release::ReleaseImage;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::{
    apiserver::{ServerArgs, ServerSignals},
    logging,
};

/// Arguments of `kubewake cluster`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake cluster --kubeconfig ./kubeconfig --image example/shell=/bin/sh
  KUBECONFIG=./kubeconfig kubectl run clock --image example/shell -- -c 'while date; do sleep 1; done'
  KUBECONFIG=./kubeconfig kubectl logs -f clock
  kubewake cluster --nodes 3 --data-dir ./data

The image of a pod names a program on this machine. Image names are completed as by a kubelet: example/shell is
docker.io/example/shell:latest, and differs from example/shell:1. A program must listen on the address of its pod (the variable
POD_IP by a fieldRef to status.podIP), because all pods share the machine.")]
pub(crate) struct EmbeddedClusterArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Number of nodes, 15 at most; each node has its own addresses and capacity
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(addresses::MAX_NODES)))]
    nodes: u8,
    /// A program that pods can use as image, as NAME=PATH; can be repeated
    #[arg(long = "image", value_name = "NAME=PATH", value_parser = parse_image_entry)]
    images: Vec<String>,
    /// An archive of images for all nodes, such as one of `cargo xtask image`; can be
    /// repeated
    #[arg(long = "image-archive", value_name = "FILE")]
    image_archives: Vec<PathBuf>,
    /// Omit Kubewake's own images: nodes have only those of --image and --image-archive
    #[arg(long)]
    only_given_images: bool,
    /// Interval of the autoscaler, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600))]
    autoscaler_period: u64,
    /// Size from which a container's log file is rotated, such as 64Ki
    #[arg(long, value_name = "SIZE", default_value = "10Mi", value_parser = parse_size)]
    container_log_max_size: u64,
    /// Number of log files of a container, the current one and rotated ones
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..=1000))]
    container_log_max_files: u16,
    /// Interval at which the sizes of log files are checked, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    container_log_monitor_interval: u64,
}

impl EmbeddedClusterArgs {
    fn options(&self) -> anyhow::Result<ClusterOptions> {
        Ok(ClusterOptions {
            api: self.server.options(),
            nodes: self.nodes,
            images: add_given_images(
                if self.only_given_images { ImageStore::default() } else { builtin_images()? },
                &self.images,
            )?,
            image_archives: self.image_archives.clone(),
            autoscaler: AutoscalerSettings {
                period: Duration::from_secs(self.autoscaler_period),
                ..AutoscalerSettings::default()
            },
            log_rotation: LogRotation {
                max_bytes: self.container_log_max_size,
                max_files: self.container_log_max_files.into(),
                interval: Duration::from_secs(self.container_log_monitor_interval),
            },
            ..ClusterOptions::default()
        })
    }
}

/// A positive number of bytes, as in the configuration of a kubelet.
fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = Quantity::parse(text).map_err(|error| error.to_string())?.units(0);
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0).ok_or_else(|| "must be more than 0 bytes".to_owned())
}

/// This program, under the names that Kubewake's own workloads have.
pub(crate) fn builtin_images() -> anyhow::Result<ImageStore> {
    let this = std::env::current_exe().context("failed to find the path of this program")?;
    let add = |images: ImageStore, image: ReleaseImage| {
        images.with_image(image.reference(), ImageEntrypoint::new(this.clone()).arg(image.name()))
    };
    Ok([ReleaseImage::Collector, ReleaseImage::Operator, ReleaseImage::Webhook]
        .into_iter()
        .fold(ImageStore::default(), add))
}

/// An entry that the table of images takes.
pub(crate) fn parse_image_entry(entry: &str) -> Result<String, ImageError> {
    ImageStore::default().add_entry(entry).map(|()| entry.to_owned())
}

/// A table with what was given by `--image`. What is wrong with it is wrong with how the command was called.
pub(crate) fn add_given_images(mut images: ImageStore, given: &[String]) -> anyhow::Result<ImageStore> {
    let wrong = |error: ImageError| clap::Error::raw(ErrorKind::ArgumentConflict, format!("--image: {error}\n"));
    given.iter().try_for_each(|entry| images.add_entry(entry)).map_err(wrong)?;
    Ok(images)
}

/// As many open files as the system allows: a connection through a Service takes two.
pub(crate) fn raise_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "failed to raise the limit of open files");
    }
}

/// Pods are processes of whoever starts the cluster.
fn warn_about_root() {
    if rustix::process::geteuid().is_root() {
        tracing::warn!(
            "the cluster runs as root: containers with runAsNonRoot and without runAsUser, or with user 0, are refused \
             (CreateContainerConfigError), and all other containers run as root, regardless of their securityContext: start the \
             cluster as another user unless you trust all its containers"
        );
    }
}

pub(crate) async fn run(args: EmbeddedClusterArgs) -> anyhow::Result<()> {
    let options = args.options()?;
    let _logging = logging::start(&kubewake_config::model::LogsConfig::default());
    raise_file_limit();
    warn_about_root();
    let signals = ServerSignals::new()?;
    let cluster = EmbeddedCluster::start(options).await.context("failed to start the cluster")?;
    args.server.write_kubeconfig(cluster.api())?;
    println!("ready cluster on {}", cluster.api().address());
    signals.wait_for_shutdown(cluster.api()).await;
    cluster.stop().await.context("failed to stop the cluster")
}
