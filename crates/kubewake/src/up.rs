//! `kubewake up`: everything, on this machine. Today that is the collector.

use std::{
    cell::Cell,
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use kubewake_collector::{engine::Options, service::Service};

use crate::collector;

/// What runs unless its owner wrote something else.
const DOCUMENT: &str = include_str!("up/collector.yaml");

/// Arguments of `kubewake up`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the configuration is kept [default: kubewake in the user's state folder]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

pub(crate) async fn run(args: Args) -> ExitCode {
    let folder = args.data_dir.unwrap_or_else(default_folder);
    let config = match prepare(&folder) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("error: cannot prepare {}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
    };
    let started = Cell::new(false);
    let code = collector::serve(&config, Options::default(), async |service: &Service| {
        started.set(true);
        greet(service, &config).await;
    })
    .await;
    if !started.get() {
        eprintln!(
            "The configuration is {}. Change it there: a busy port, for example, is an `endpoint`.",
            config.display()
        );
    }
    code
}

/// The document, written down if it is not there: it can be edited while it runs.
fn prepare(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let config = folder.join("collector.yaml");
    match fs::OpenOptions::new().write(true).create_new(true).open(&config) {
        Ok(mut file) => io::Write::write_all(&mut file, DOCUMENT.as_bytes())?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    Ok(config)
}

fn default_folder() -> PathBuf {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    state.or_else(home).unwrap_or_else(std::env::temp_dir).join("kubewake")
}

async fn greet(service: &Service, config: &Path) {
    let endpoints = service.endpoints().await;
    let overview = service.engine().overview();
    let at = |wanted: &str| overview.listeners.iter().find(|(_, protocol, _)| *protocol == wanted).map(|(.., at)| *at);
    println!("The collector takes OTLP and shows what it gets here.");
    if let Some(grpc) = at("grpc") {
        println!("  gRPC     export OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_ENDPOINT=http://{grpc}");
    }
    if let Some(http) = at("http") {
        println!(
            "  HTTP     export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_EXPORTER_OTLP_ENDPOINT=http://{http}"
        );
    }
    if let Some(health) = endpoints.health {
        println!("  status   http://{health}/status");
    }
    if let Some(metrics) = endpoints.metrics {
        println!("  metrics  http://{metrics}/metrics");
    }
    println!("  config   {} (edit it: changes are picked up)", config.display());
    println!("ready");
}
