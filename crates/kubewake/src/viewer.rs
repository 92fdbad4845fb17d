//! `kubewake viewer`: a local backend for traces, with a page that shows them.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context;
use kubewake_viewer::{Viewer, ViewerOptions};
use tokio::signal::unix::{SignalKind, signal};

use crate::logging;

/// Arguments of `kubewake viewer`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake viewer
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf ./my-program
  kubewake viewer --data-dir ./traces --memory 1GiB
  kubewake viewer --kubeconfig ./kubeconfig
  kubewake viewer --listen 0.0.0.0:16686 --allow-host viewer.example

The page has no authentication: every client that reaches the page can read all traces.")]
pub(crate) struct ViewerRunArgs {
    /// Address of the page
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:16686")]
    listen: SocketAddr,
    /// Address for OTLP over gRPC
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4317")]
    otlp: SocketAddr,
    /// Address for OTLP over HTTP
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4318")]
    otlp_http: SocketAddr,
    /// Directory that keeps traces across restarts [default: only in memory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Kubeconfig of the cluster whose pipelines and objects the page shows
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the operator and the collectors of that cluster
    #[arg(long, value_name = "NAMESPACE", default_value = "kubewake-system")]
    namespace: String,
    /// Memory limit for traces; the oldest traces are evicted at the limit
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    memory: usize,
    /// A host name that requests may use for the page, and for OTLP over HTTP on a loopback address, beside addresses
    /// and localhost; can be repeated
    #[arg(long = "allow-host", value_name = "NAME")]
    hosts: Vec<String>,
}

pub(crate) async fn run(args: ViewerRunArgs) -> anyhow::Result<()> {
    let _logging = logging::start(&kubewake_config::model::LogsConfig::default());
    // A provider that is already installed is fine.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    if let Some(file) = args.kubeconfig.as_ref().filter(|file| !file.exists()) {
        eprintln!(
            "warning: kubeconfig {} does not exist: the page shows the cluster when the file exists",
            file.display()
        );
    }
    let options = ViewerOptions {
        listen: args.listen,
        otlp_grpc: Some(args.otlp),
        otlp_http: Some(args.otlp_http),
        memory: args.memory,
        data_dir: args.data_dir,
        kubeconfig: args.kubeconfig,
        namespace: args.namespace,
        hosts: args.hosts,
    };
    let viewer = Viewer::start(options).await.context("failed to start the viewer")?;
    println!("ready http://{}", viewer.addresses().page);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    viewer.stop().await;
    Ok(())
}

/// The least that is of use: one trace may take a quarter of it.
const MIN_STORE_BYTES: usize = 1 << 20;

/// A number of bytes with a unit.
fn parse_size(text: &str) -> Result<usize, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(name, unit)| text.strip_suffix(name).map(|number| (number.trim(), unit)))
        .ok_or("write a number with KiB, MiB or GiB, for example 256MiB")?;
    let number: usize = number.parse().map_err(|_| format!("{number:?} is not a number"))?;
    let size = number.checked_mul(unit).ok_or("the size is too large")?;
    if size < MIN_STORE_BYTES { Err("the size must be at least 1MiB".to_owned()) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(parse_size("256MiB"), Ok(256 << 20));
        assert_eq!(parse_size("2 GiB"), Ok(2 << 30));
        assert!(parse_size("256").is_err() && parse_size("xMiB").is_err() && parse_size("1KiB").is_err());
    }
}
