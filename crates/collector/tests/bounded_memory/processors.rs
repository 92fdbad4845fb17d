//! Memory that processors allocate for their input.

use std::{io::Write, sync::Arc};

use kubewake_collector::{
    components::{PreparedProcessor, ProcessorContext, ProcessorSite},
    core::{Consumer, Processor, StatsRegistry},
    processor,
};
use kubewake_config::{
    ComponentId,
    model::{KubernetesAttributesProcessor, ProcessorConfig},
};
use kubewake_otlp::Signal;
use tokio::runtime::Runtime;

use super::{
    AMPLE_BYTES, BODY_BYTES, Findings, Holder, SCARCE_BYTES, Sender, api_server,
    bodies::{self, Load},
    meter, send, settings, take_turn,
};

/// What a processor may allocate without a charge: the working memory for requests of usual size.
const PROCESSOR_BYTES: i64 = 384 << 10;

/// The same for `tail_sampling`: a segment, and the memory to write some thousands of spans, for each shard.
const SHARD_BYTES: i64 = 1 << 20;

/// A processor under test, and its counters.
struct Place {
    step: Option<Arc<dyn Processor>>,
    registry: StatsRegistry,
}

impl Place {
    fn new(settings: &ProcessorConfig, signal: Signal) -> Self {
        let registry = StatsRegistry::default();
        let id = ComponentId::new("measured");
        let prepared = processor::prepare(settings, &ProcessorContext { id: &id, signal });
        let step = match prepared.unwrap_or_else(|error| panic!("{error}")) {
            // A memory limiter is no processor node: its budget is that of all others.
            PreparedProcessor::MemoryBudget { .. } => None,
            PreparedProcessor::Node(node) => Some(node.start(&ProcessorSite { id: &id, signal, registry: &registry })),
        };
        Self { step, registry }
    }

    /// Waits until a processor that waits for its cluster takes data.
    async fn await_cluster(&self, signal: Signal) {
        let Some(step) = &self.step else { return };
        meter::budget().resize(AMPLE_BYTES, AMPLE_BYTES / 8);
        let holder = Arc::new(Holder::default());
        step.output().set_targets(vec![holder.clone()]);
        let probe = Load { name: "probe", requests: vec![bodies::entry(&[], &bodies::record(signal, &[]))] };
        while holder.0.lock().is_empty() {
            send(&probe, signal, step.clone(), Sender::Waits, &self.registry).await;
            tokio::task::yield_now().await;
        }
        let written = holder.0.lock().drain(..).map(|batch| batch.bytes()).sum::<usize>();
        assert!(written > api_server::KNOWN_BYTES, "the resource was given what is known, {written} bytes");
    }

    async fn measure(&self, is_sampler: bool, signal: Signal, load: &Load, limit: u64, sender: Sender) -> i64 {
        meter::budget().resize(limit, limit / 8);
        let holder = Arc::new(Holder::default());
        let first: Arc<dyn Consumer> = match &self.step {
            None => holder.clone(),
            Some(step) => {
                step.output().set_targets(vec![holder.clone()]);
                step.clone()
            }
        };
        // Data that arrives after the decision on its trace takes another code path.
        let rounds = if is_sampler { 2 } else { 1 };
        meter::begin();
        for _ in 0..rounds {
            send(load, signal, first.clone(), sender, &self.registry).await;
            if let Some(step) = &self.step {
                step.flush().await;
            }
        }
        let uncharged = meter::end();
        if let Some(step) = &self.step {
            step.output().set_targets(Vec::new());
        }
        uncharged
    }
}

/// Whether the settings need a cluster.
fn asks_cluster(settings: &ProcessorConfig) -> bool {
    matches!(settings, ProcessorConfig::KubernetesAttributes(settings) if !KubernetesAttributesProcessor::clone(settings).passthrough)
}

/// A runtime with a paused clock, so that no test waits for time to pass.
fn paused() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn measure_processors(signal: Signal) {
    let _turn = take_turn();
    let mut findings = Findings::default();
    let loads = bodies::worst(signal, BODY_BYTES);
    // The cluster is watched in real time, by a separate thread that is idle once everything is known.
    let watching = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut kubeconfig = tempfile::NamedTempFile::new().unwrap();
    kubeconfig.write_all(watching.block_on(api_server::serve()).as_bytes()).unwrap();
    for (name, settings) in settings::processors(&kubeconfig.path().display().to_string()) {
        if !settings.signals().contains(&signal) {
            continue;
        }
        let is_sampler = matches!(settings, ProcessorConfig::TailSampling(_));
        let allowed = if is_sampler { SHARD_BYTES } else { PROCESSOR_BYTES };
        let of_cluster = asks_cluster(&settings).then(|| {
            let _context = watching.enter();
            let place = Place::new(&settings, signal);
            watching.block_on(place.await_cluster(signal));
            place
        });
        for load in &loads {
            for (limit, sender) in [(AMPLE_BYTES, Sender::Waits), (SCARCE_BYTES, Sender::WasAnswered)] {
                let runtime = paused();
                let made;
                let place = match &of_cluster {
                    Some(place) => place,
                    None => {
                        let _context = runtime.enter();
                        made = Place::new(&settings, signal);
                        &made
                    }
                };
                let uncharged = runtime.block_on(place.measure(is_sampler, signal, load, limit, sender));
                if of_cluster.is_none() {
                    place.step.iter().for_each(|step| step.retire());
                }
                // Its tasks end here, and release their memory.
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
