//! `kubewake load`: sends OTLP and reports the responses.
//!
//! A request is encoded once, and copied with new ids and times, so that the generator costs little compared
//! with the program under test. Every item has an id that the sink can check (see [`ids`]).

mod client;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod histogram;
pub(crate) mod ids;
mod progress;
mod report;
mod response;
mod schedule;
pub(crate) mod shape;
pub(crate) mod template;
mod worker;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use kubewake_otlp::Signal;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

pub(crate) use self::response::GRPC_NAMES;
use self::{
    client::{GrpcChannel, HttpChannel, LoadClient, LoadTarget},
    ids::RunSeed,
    report::{LoadRunReport, RequestTally},
    schedule::RequestSchedule,
    shape::RequestShape,
    template::{BodyFormat, RequestTemplates},
    worker::LoadRun,
};

/// Arguments of `kubewake load`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake load --target http://127.0.0.1:4317 --rate 80000 --seconds 20
  kubewake load --target http://127.0.0.1:4318 --protocol http --compression gzip --requests 1000 --json")]
pub(crate) struct LoadArgs {
    /// URL of the receiver, as http://host:port
    #[arg(long, value_name = "URL")]
    target: String,
    /// Protocol of requests
    #[arg(long, value_enum, default_value_t = LoadProtocol::Grpc)]
    protocol: LoadProtocol,
    /// Signal to send
    #[arg(long, value_enum, default_value_t = SignalArg::Traces)]
    signal: SignalArg,
    /// Items per second over all connections [default: no limit]
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    rate: Option<f64>,
    /// Duration of the run in seconds [default: 10 without --requests]
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    seconds: Option<f64>,
    /// Number of requests to send
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Items per request: spans, log records or data points
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    spans: u64,
    /// Traces per request
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    traces: u64,
    /// Number of consecutive requests over which the items of each trace are spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    spread: u64,
    /// Attributes per item
    #[arg(long, value_name = "N", default_value_t = 10)]
    attributes: usize,
    /// Share of items with an error, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = crate::sink::mode::parse_share)]
    error_share: f64,
    /// Number of connections
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Requests in flight per connection; with HTTP, each of them has its own connection
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: u32,
    /// Compression of request bodies
    #[arg(long, value_enum, default_value_t = LoadCompression::None)]
    compression: LoadCompression,
    /// Retry requests after retryable responses, with the delay that the receiver requests
    #[arg(long)]
    retry: bool,
    /// How long after the end of the run refused requests are retried
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    grace: f64,
    /// Time limit for a response
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = parse_positive)]
    timeout: f64,
    /// Number of the run, which is part of all ids [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// File for the acknowledged items, as lines of `seed first end`, the input of the sink's /missing
    #[arg(long, value_name = "FILE")]
    acked_file: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LoadProtocol {
    Grpc,
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LoadCompression {
    None,
    Gzip,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SignalArg {
    Traces,
    Logs,
    Metrics,
}

impl From<SignalArg> for Signal {
    fn from(signal: SignalArg) -> Self {
        match signal {
            SignalArg::Traces => Signal::Traces,
            SignalArg::Logs => Signal::Logs,
            SignalArg::Metrics => Signal::Metrics,
        }
    }
}

fn parse_positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("the number must be above 0".to_owned()),
    }
}

/// Sends, then reports. Fails only when it could not do that; a refused request is a result.
pub(crate) async fn run(args: LoadArgs) -> anyhow::Result<()> {
    let target = Arc::new(args.resolve_target()?);
    let run = Arc::new(args.plan_run());
    stop_on_signal(&run)?;
    let progress = tokio::spawn(progress::show_progress(Arc::clone(&run), args.expected_items()));
    let tally = send(&args, &run, &target).await;
    progress.abort();
    let mut report = LoadRunReport {
        seed: run.seed,
        items: args.spans,
        message_bytes: run.templates.message_len(),
        elapsed: run.schedule.elapsed(),
        worst_lag: run.schedule.worst_lag(),
        tally,
        connections: LoadRunReport::connection_counts(target.connections()),
    };
    if let Some(path) = &args.acked_file {
        report.write_acknowledged(path).with_context(|| format!("failed to write {}", path.display()))?;
    }
    if args.json {
        println!("{}", report.to_json());
    } else {
        println!("{report}");
    }
    ensure!(!report.all_failed(), "no request was accepted or refused by the receiver");
    Ok(())
}

async fn send(args: &LoadArgs, run: &Arc<LoadRun>, target: &Arc<LoadTarget>) -> RequestTally {
    let mut workers = JoinSet::new();
    for client in args.create_clients(target) {
        workers.spawn(worker::run_worker(Arc::clone(run), client));
    }
    let mut tally = RequestTally::default();
    let mut clients = Vec::new();
    while let Some(done) = workers.join_next().await {
        if let Ok((one, client)) = done {
            tally.merge(one);
            clients.push(client);
        }
    }
    target.finish();
    tally
}

/// An interrupted run still reports.
fn stop_on_signal(run: &Arc<LoadRun>) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let run = Arc::clone(run);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        run.schedule.stop();
    });
    Ok(())
}

impl LoadArgs {
    fn resolve_target(&self) -> anyhow::Result<LoadTarget> {
        let timeout = Duration::from_secs_f64(self.timeout);
        LoadTarget::new(&self.target, self.signal.into(), self.body_format().grpc, self.body_format().gzip, timeout)
    }

    fn body_format(&self) -> BodyFormat {
        BodyFormat { grpc: self.protocol == LoadProtocol::Grpc, gzip: self.compression == LoadCompression::Gzip }
    }

    fn plan_run(&self) -> LoadRun {
        let shape = RequestShape {
            signal: self.signal.into(),
            items: self.spans,
            traces: self.traces.min(self.spans),
            attributes: self.attributes,
            error_share: self.error_share,
        };
        let interval = self.rate.map(|rate| Duration::from_secs_f64(self.spans as f64 / rate));
        LoadRun {
            seed: RunSeed::new(self.seed.unwrap_or_else(|| fastrand::u64(..))),
            shape,
            spread: self.spread,
            templates: RequestTemplates::new(&shape, self.body_format()),
            schedule: RequestSchedule::new(
                interval,
                self.requests,
                self.duration_seconds().map(Duration::from_secs_f64),
            ),
            retry: self.retry.then(|| Duration::from_secs_f64(self.grace.max(0.0))),
            acknowledged: AtomicU64::new(0),
        }
    }

    /// A run has an end even when none is given.
    fn duration_seconds(&self) -> Option<f64> {
        if self.requests.is_some() { self.seconds } else { Some(self.seconds.unwrap_or(10.0)) }
    }

    fn expected_items(&self) -> Option<u64> {
        let by_time = self.rate.zip(self.duration_seconds()).map(|(rate, seconds)| (rate * seconds) as u64);
        let by_count = self.requests.map(|requests| requests * self.spans);
        by_time.into_iter().chain(by_count).min()
    }

    fn create_clients(&self, target: &Arc<LoadTarget>) -> Vec<LoadClient> {
        let mut clients = Vec::new();
        for _ in 0..self.connections {
            let shared = Arc::new(GrpcChannel::new(Arc::clone(target)));
            clients.extend((0..self.in_flight).map(|_| match self.protocol {
                LoadProtocol::Grpc => LoadClient::Grpc(Arc::clone(&shared)),
                LoadProtocol::Http => LoadClient::Http(HttpChannel::new(Arc::clone(target))),
            }));
        }
        clients
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches};

    use super::*;

    #[test]
    fn a_share_is_a_number_from_0_to_1() {
        let parse = |share: &str| {
            let words = ["load", "--target", "http://127.0.0.1:4317", "--error-share", share];
            let found = LoadArgs::augment_args(Command::new("load")).try_get_matches_from(words)?;
            LoadArgs::from_arg_matches(&found).map(|args| args.error_share)
        };
        assert_eq!(parse("0.25").unwrap(), 0.25);
        assert_eq!(parse("1").unwrap(), 1.0);
        for wrong in ["2", "nan", "inf", "x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("2").unwrap_err().to_string().contains("the number must be from 0 to 1"));
    }
}
