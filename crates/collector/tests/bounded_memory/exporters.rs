//! Memory that exporters allocate for their input, however their destinations respond.

use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use kubewake_collector::{
    components::{ExporterContext, ExporterSite},
    core::StatsRegistry,
    exporter,
};
use kubewake_config::{ComponentId, PipelineId, model::ExporterConfig};
use kubewake_otlp::Signal;
use tokio::time::Instant;

use super::{
    AMPLE_BYTES, BODY_BYTES, Findings, SCARCE_BYTES, Sender,
    bodies::{self, Load},
    destination::{Destination, Manner},
    meter, send, settings, take_turn,
};

/// What an exporter may allocate without a charge: the buffers of its connections and of the requests that it
/// sends at once.
const EXPORTER_BYTES: i64 = 1 << 20;

/// The compressors that it keeps, at most one for each core.
const COMPRESSOR_BYTES: i64 = 320 << 10;

/// The budget, the kind of sender, and the behaviour of the destination.
const CONDITIONS: [(u64, Sender, Manner); 6] = [
    (AMPLE_BYTES, Sender::Waits, Manner::Takes),
    (SCARCE_BYTES, Sender::WasAnswered, Manner::Takes),
    (AMPLE_BYTES, Sender::Waits, Manner::TakesPart),
    (AMPLE_BYTES, Sender::Waits, Manner::Refuses),
    (SCARCE_BYTES, Sender::WasAnswered, Manner::Refuses),
    (AMPLE_BYTES, Sender::Waits, Manner::IsBusy),
];

async fn measure_exporter(settings: &ExporterConfig, signal: Signal, load: &Load, limit: u64, sender: Sender) -> i64 {
    meter::budget().resize(limit, limit / 8);
    let registry = Arc::new(StatsRegistry::default());
    let id = ComponentId::new("measured");
    let pipeline = PipelineId { signal, name: None };
    let prepared = exporter::prepare(settings, &ExporterContext { id: &id, pipeline: &pipeline, auth: None });
    let prepared = prepared.unwrap_or_else(|error| panic!("{error}"));
    let node = prepared.start(&ExporterSite { id: &id, pipeline: &pipeline, registry: &registry });
    meter::begin();
    send(load, signal, node.clone(), sender, &registry).await;
    node.drain(Instant::now() + Duration::from_secs(60)).await;
    let uncharged = meter::end();
    node.retire();
    uncharged
}

/// The destinations with one behaviour.
struct Places {
    grpc: Destination,
    other: Destination,
    http: Destination,
}

impl Places {
    async fn serve(manner: Manner) -> Self {
        Self {
            grpc: Destination::serve(true, manner).await,
            // Only one of the peers of `load_balancing` refuses, so that its data is offered to the other.
            other: Destination::serve(true, if manner == Manner::IsBusy { Manner::Takes } else { manner }).await,
            http: Destination::serve(false, manner).await,
        }
    }

    fn asked(&self) -> usize {
        [&self.grpc, &self.other, &self.http].iter().map(|destination| destination.asked()).sum()
    }
}

/// Measures the exporters whose settings `is_meant` selects.
fn measure_exporters(signal: Signal, is_meant: impl Fn(&str) -> bool) {
    let _turn = take_turn();
    let mut findings = Findings::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as i64;
    let allowed = EXPORTER_BYTES + cores * COMPRESSOR_BYTES;
    let loads = bodies::worst(signal, BODY_BYTES);
    for (number, (limit, sender, manner)) in CONDITIONS.into_iter().enumerate() {
        let meant: Vec<&Load> = loads.iter().filter(|load| number == 0 || load.stands_for_others()).collect();
        let places = runtime.block_on(Places::serve(manner));
        let words = [
            ("GRPC", format!("'{}'", places.grpc.address)),
            ("OTHER", format!("'{}'", places.other.address)),
            // A port without a listener.
            ("NOBODY", "'127.0.0.1:1'".to_owned()),
            ("HTTP", places.http.address.to_string()),
            ("DIR", directory.path().display().to_string()),
        ];
        for (name, settings) in settings::exporters(&words).iter().filter(|(name, _)| is_meant(name)) {
            let has_destination = settings::has_destination(settings);
            let signals = settings.signals();
            // Responses of a destination are the same for all signals of the exporter.
            let is_measured = manner == Manner::Takes || (has_destination && signals.first() == Some(&signal));
            if !signals.contains(&signal) || !is_measured {
                continue;
            }
            let asked = places.asked();
            for load in &meant {
                let uncharged = runtime.block_on(measure_exporter(settings, signal, load, limit, sender));
                let what = format!("{name}, {manner:?}, {signal}, {}, {limit}, {sender:?}", load.name);
                findings.note(uncharged, allowed, what);
            }
            let is_asked = limit < AMPLE_BYTES || places.asked() > asked;
            assert!(!has_destination || is_asked, "nothing was sent: {name}, {manner:?}");
        }
    }
    findings.settle();
}

/// Measures all exporters, `debug` in a separate process, because its output does not belong in the output of
/// tests.
fn measure_all_exporters(signal: Signal) {
    measure_exporters(signal, |name| !name.starts_with("debug:"));
    let report = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["exporters::debug_exporter_in_a_process_of_its_own", "--exact", "--ignored", "--nocapture"]);
    child.env("REPORT", report.path()).env("SIGNAL", signal.name());
    let status = child.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{}", std::fs::read_to_string(report.path()).unwrap());
}

#[test]
fn exporters_allocate_for_traces_what_was_charged() {
    measure_all_exporters(Signal::Traces);
}

#[test]
fn exporters_allocate_for_logs_what_was_charged() {
    measure_all_exporters(Signal::Logs);
}

#[test]
fn exporters_allocate_for_metrics_what_was_charged() {
    measure_all_exporters(Signal::Metrics);
}

#[test]
#[ignore = "it writes megabytes to its output; the tests of all exporters run it"]
fn debug_exporter_in_a_process_of_its_own() {
    let Some(report) = std::env::var_os("REPORT") else { return };
    std::panic::set_hook(Box::new(move |panic| std::fs::write(&report, panic.to_string()).unwrap()));
    let name = std::env::var("SIGNAL").unwrap_or_default();
    let signal = Signal::ALL.into_iter().find(|signal| signal.name() == name).unwrap_or(Signal::Traces);
    measure_exporters(signal, |name| name.starts_with("debug:"));
}
