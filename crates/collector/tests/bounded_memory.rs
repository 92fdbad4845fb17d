//! Whatever a request makes a component allocate is charged before, or is bounded by a constant times what was charged.
//!
//! This is shown for every processor and every exporter of the component table, which a component cannot be added to without settings
//! here, with the requests that make them allocate most. The allocator compares what is allocated with what is charged whenever
//! something is allocated.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]
#![allow(unsafe_code, reason = "an allocator that counts is unsafe to write, and is in this test alone")]

#[path = "bounded_memory/bodies.rs"]
mod bodies;
#[path = "bounded_memory/destination.rs"]
mod destination;
#[path = "bounded_memory/meter.rs"]
mod meter;
#[path = "bounded_memory/settings.rs"]
mod settings;

use std::{
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bodies::Load;
use bytes::Bytes;
use kubewake_collector::{
    components::{self, Role, Sink, Step},
    core::{
        Allowance, Answer, Batch, Consumer, DropReason, Intake, Link, PART_BYTES, Part, Pipeline, Pressure, Registry,
    },
};
use kubewake_config::{
    ComponentId, PipelineId,
    model::{Exporter, Processor},
};
use kubewake_otlp::Signal;
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: meter::Metered = meter::Metered;

/// What a processor may allocate without a charge: what operations take for requests of usual size.
const PROCESSOR_BYTES: i64 = 384 << 10;

/// What `tail_sampling` may: a segment, and what it takes to write some thousands of spans, for each shard.
const SHARD_BYTES: i64 = 1 << 20;

/// What an exporter may: the buffers of its connections and of the requests that it sends at once.
const EXPORTER_BYTES: i64 = 1 << 20;

/// The compressors that it keeps, of which there may be one for each core.
const COMPRESSOR_BYTES: i64 = 320 << 10;

/// A budget with room for whatever is asked for.
const AMPLE_BYTES: u64 = 1 << 30;

/// A budget with room for not much more than a request.
const SCARCE_BYTES: u64 = 512 << 10;

/// Measurements must not be beside each other.
static TURN: Mutex<()> = Mutex::new(());

/// Keeps what senders that wait send, as a queue would. What was acknowledged may wait for memory, so that it is let go of.
#[derive(Default)]
struct Holder(Mutex<Vec<Batch>>);

impl Consumer for Holder {
    fn consume(self: Arc<Self>, batch: Batch, pressure: Pressure) -> Answer {
        if pressure == Pressure::Refuse {
            self.0.lock().unwrap().push(batch);
        }
        Answer::Now(Ok(()))
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, _: &Batch, _: DropReason) {}
}

/// Who offers the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// One that can be refused.
    Waits,
    /// A step that has acknowledged them.
    WasAnswered,
}

/// Sends requests as receivers do: memory first.
async fn send(load: &Load, signal: Signal, first: Arc<dyn Consumer>, sender: Sender, registry: &Registry) {
    let id = PipelineId { signal, name: None };
    let allowance = Allowance { member: meter::budget().join(), limiter: None };
    let pipeline = Pipeline::new(id.clone(), allowance, registry.pipeline(&id));
    pipeline.head().point_at(vec![first.clone()]);
    let (intake, link, origin) = (Intake::default(), Link::default(), Arc::default());
    link.point_at(vec![first]);
    intake.point_at(signal, vec![pipeline.clone()]);
    for body in &load.requests {
        let Ok(admission) = intake.admit(signal, body.len()) else { continue };
        let summary = kubewake_otlp::scan(signal, body).unwrap_or_else(|error| panic!("{}: {error}", load.name));
        match sender {
            Sender::Waits => {
                let bytes = Bytes::from(body.clone());
                let _ = admission.submit(bytes, summary.items, summary.traits, Arc::clone(&origin)).wait().await;
            }
            Sender::WasAnswered => {
                let Some(charge) = pipeline.admit(body.len().max(PART_BYTES) as u64) else { continue };
                drop(admission);
                let part = Part::new(Bytes::from(body.clone()), summary.items, origin.clone(), Arc::new(charge));
                link.deliver(Batch::single(signal, part)).await;
            }
        }
    }
}

/// Collects what was found, to tell all of it.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn note(&mut self, uncharged: i64, allowed: i64, what: String) {
        if uncharged > allowed {
            self.0.push(format!("{uncharged} bytes beyond what was charged: {what}"));
        }
    }

    fn settle(self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n"));
    }
}

async fn measure_processor(settings: &Processor, signal: Signal, load: &Load, limit: u64, sender: Sender) -> i64 {
    meter::budget().resize(limit, limit / 8);
    let (registry, holder) = (Registry::default(), Arc::new(Holder::default()));
    let step = match components::role(settings) {
        // It is no step, but the account of all others.
        Role::Budget(..) => None,
        Role::Step => {
            let step = Step::build(&ComponentId::new("measured"), settings, signal, &registry);
            Some(step.unwrap_or_else(|error| panic!("{error}")))
        }
    };
    let first: Arc<dyn Consumer> = match &step {
        None => holder.clone(),
        Some(step) => {
            step.processor().next().point_at(vec![holder.clone()]);
            step.processor()
        }
    };
    // What comes after the decision on its trace takes another way.
    let rounds = if matches!(settings, Processor::TailSampling(_)) { 2 } else { 1 };
    meter::begin();
    for _ in 0..rounds {
        send(load, signal, first.clone(), sender, &registry).await;
        if let Some(step) = &step {
            step.processor().flush().await;
        }
    }
    let uncharged = meter::end();
    if let Some(step) = &step {
        step.processor().retire();
    }
    uncharged
}

/// On a paused clock, so that nobody waits for time to pass.
fn measure_processors(signal: Signal) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut findings = Findings::default();
    let loads = bodies::worst(signal);
    for (name, settings) in settings::processors() {
        if !settings.signals().contains(&signal) {
            continue;
        }
        let is_sampler = matches!(settings, Processor::TailSampling(_));
        let allowed = if is_sampler { SHARD_BYTES } else { PROCESSOR_BYTES };
        for load in &loads {
            for (limit, sender) in [(AMPLE_BYTES, Sender::Waits), (SCARCE_BYTES, Sender::WasAnswered)] {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_all().start_paused(true).build().unwrap();
                let uncharged = runtime.block_on(measure_processor(&settings, signal, load, limit, sender));
                // Its tasks end here, and so does what they hold.
                drop(runtime);
                findings.note(uncharged, allowed, format!("{name}, {signal}, {}, {limit}, {sender:?}", load.name));
            }
        }
    }
    findings.settle();
}

#[test]
fn processors_allocate_for_traces_what_was_charged() {
    measure_processors(Signal::Traces);
}

#[test]
fn processors_allocate_for_logs_what_was_charged() {
    measure_processors(Signal::Logs);
}

#[test]
fn processors_allocate_for_metrics_what_was_charged() {
    measure_processors(Signal::Metrics);
}

async fn measure_exporter(settings: &Exporter, signal: Signal, load: &Load) -> i64 {
    meter::budget().resize(AMPLE_BYTES, AMPLE_BYTES / 8);
    let (registry, id) = (Arc::new(Registry::default()), ComponentId::new("measured"));
    let built = components::build_exporter(settings, signal, None).unwrap_or_else(|error| panic!("{error}"));
    let sink = Sink::new(&id, &PipelineId { signal, name: None }, built, &registry);
    meter::begin();
    send(load, signal, sink.consumer(), Sender::Waits, &registry).await;
    sink.drain(Instant::now() + Duration::from_secs(10)).await;
    let uncharged = meter::end();
    sink.retire();
    uncharged
}

/// Measures the exporters whose settings are meant.
fn measure_exporters(signal: Signal, is_meant: impl Fn(&str) -> bool) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut findings = Findings::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (grpc, other, http) = runtime.block_on(async {
        (destination::serve(true).await, destination::serve(true).await, destination::serve(false).await)
    });
    let directory = tempfile::tempdir().unwrap();
    let words = [
        ("GRPC", format!("'{grpc}'")),
        ("OTHER", format!("'{other}'")),
        ("HTTP", http.to_string()),
        ("DIR", directory.path().display().to_string()),
    ];
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as i64;
    let allowed = EXPORTER_BYTES + cores * COMPRESSOR_BYTES;
    for (name, settings) in settings::exporters(&words).iter().filter(|(name, _)| is_meant(name)) {
        for load in &bodies::worst(signal) {
            let uncharged = runtime.block_on(measure_exporter(settings, signal, load));
            findings.note(uncharged, allowed, format!("{name}, {signal}, {}", load.name));
        }
    }
    findings.settle();
}

/// Measures all exporters. `debug` does so in a process of its own, as what it shows is nothing for the output of tests.
fn measure_all_exporters(signal: Signal) {
    measure_exporters(signal, |name| !name.starts_with("debug:"));
    let report = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["debug_exporter_in_a_process_of_its_own", "--exact", "--ignored", "--nocapture"]);
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
    if let Some(report) = std::env::var_os("REPORT") {
        std::panic::set_hook(Box::new(move |panic| std::fs::write(&report, panic.to_string()).unwrap()));
    }
    let name = std::env::var("SIGNAL").unwrap_or_default();
    let signal = Signal::ALL.into_iter().find(|signal| signal.name() == name).unwrap_or(Signal::Traces);
    measure_exporters(signal, |name| name.starts_with("debug:"));
}
