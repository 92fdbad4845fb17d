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

Whoever can reach the page reads all traces: there is no sign-in.")]
pub(crate) struct ViewerRunArgs {
    /// Where the page is served
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:16686")]
    listen: SocketAddr,
    /// Where OTLP over gRPC is received
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4317")]
    otlp: SocketAddr,
    /// Where OTLP over HTTP is received
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4318")]
    otlp_http: SocketAddr,
    /// Keep traces here across restarts
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Show the pipelines and objects of this cluster
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where the operator and the collectors of that cluster run
    #[arg(long, value_name = "NAMESPACE", default_value = "kubewake-system")]
    namespace: String,
    /// How much memory traces may take; the oldest go when it is full
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_size)]
    memory: usize,
    /// A host name, beside addresses and localhost, by which the page, and OTLP over HTTP on a loopback
    /// address, may be asked for; may be given more than once
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
        eprintln!("warning: {} is not there: the cluster is shown once it is", file.display());
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
    let viewer = Viewer::start(options).await.context("the viewer does not start")?;
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
        .ok_or("a number with KiB, MiB or GiB is needed, for example 256MiB")?;
    let number: usize = number.parse().map_err(|_| format!("{number:?} is no number"))?;
    let size = number.checked_mul(unit).ok_or("this is more than there is")?;
    if size < MIN_STORE_BYTES { Err("1MiB at least".to_owned()) } else { Ok(size) }
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
