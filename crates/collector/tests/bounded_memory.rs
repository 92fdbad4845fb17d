//! Memory that a component allocates for a request is charged before, or is bounded by a constant times the
//! charge.
//!
//! This is tested for every receiver, processor and exporter of the component table, with the requests that
//! make them allocate most. A component cannot be added to the table without settings here. The allocator
//! compares the allocated with the charged bytes at every allocation. *Does not* see allocations of C
//! libraries, which is zstd alone.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "bounded_memory/api_server.rs"]
mod api_server;
#[path = "bounded_memory/bodies.rs"]
mod bodies;
#[path = "bounded_memory/destination.rs"]
mod destination;
#[path = "bounded_memory/exporters.rs"]
mod exporters;
#[path = "bounded_memory/meter.rs"]
mod meter;
#[path = "bounded_memory/processors.rs"]
mod processors;
#[path = "bounded_memory/receivers.rs"]
mod receivers;
#[path = "bounded_memory/requests.rs"]
mod requests;
#[path = "bounded_memory/settings.rs"]
mod settings;

use std::sync::{Arc, MutexGuard};

use bodies::Load;
use bytes::Bytes;
use kubewake_collector::core::{
    Allowance, Batch, ConsumeOutcome, Consumer, ConsumerFanout, DropReason, Origin, OverflowPolicy,
    PART_OVERHEAD_BYTES, Part, Pipeline, PipelineSet, StatsRegistry,
};
use kubewake_config::PipelineId;
use kubewake_otlp::Signal;
use kubewake_runtime::lock::Mutex;

/// A budget with room for everything.
const AMPLE_BYTES: u64 = 1 << 30;

/// A budget with room for little more than one request.
const SCARCE_BYTES: u64 = 512 << 10;

/// The approximate length of the bodies for components: a list of 24 bytes for every second byte of one is more
/// than a component may allocate without a charge.
const BODY_BYTES: usize = 48 << 10;

/// Metadata of each sender: for a thousand senders it is more than a component may allocate without a charge.
const METADATA_BYTES: usize = 1 << 10;

/// Serializes the measurements.
static TURN: Mutex<()> = Mutex::new(());

fn take_turn() -> MutexGuard<'static, ()> {
    TURN.lock()
}

/// Holds the batches of waiting senders, as a queue would. Batches that were acknowledged may wait for memory,
/// so they are dropped.
#[derive(Default)]
struct Holder(Mutex<Vec<Batch>>);

impl Consumer for Holder {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        if pressure == OverflowPolicy::Refuse {
            self.0.lock().push(batch);
        }
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, _: &Batch, _: DropReason) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// A sender that waits, and can be refused.
    Waits,
    /// A component that has acknowledged the requests.
    WasAnswered,
}

/// The origin of the request with this number. Each has metadata of its own.
fn origin(number: usize) -> Arc<Origin> {
    let value = format!("{number:0METADATA_BYTES$}");
    let metadata = vec![("x-metadata".to_owned(), value)];
    Arc::new(Origin { peer: Some((api_server::POD_ADDRESS, 4242).into()), metadata, ..Origin::default() })
}

/// Sends requests as receivers do: memory is reserved first.
async fn send(load: &Load, signal: Signal, first: Arc<dyn Consumer>, sender: Sender, registry: &StatsRegistry) {
    let id = PipelineId { signal, name: None };
    let allowance = Allowance { member: meter::budget().join(), limiter: None };
    let pipeline = Pipeline::new(id.clone(), allowance, registry.pipeline(&id));
    pipeline.head().set_targets(vec![first.clone()]);
    let intake = PipelineSet::default();
    let link = ConsumerFanout::default();
    link.set_targets(vec![first]);
    intake.set_pipelines(signal, vec![pipeline.clone()]);
    for (number, body) in load.requests.iter().enumerate() {
        let Ok(mut admission) = intake.reserve(signal, body.len()) else { continue };
        let summary = kubewake_otlp::scan(signal, body).unwrap_or_else(|error| panic!("{}: {error}", load.name));
        let origin = origin(number);
        if admission.hold_origin(&origin).is_err() {
            continue;
        }
        match sender {
            Sender::Waits => {
                let bytes = Bytes::from(body.clone());
                let _ = admission.submit(bytes, summary.items, summary.traits, origin).wait().await;
            }
            Sender::WasAnswered => {
                let Some(charge) = pipeline.reserve(body.len().max(PART_OVERHEAD_BYTES) as u64) else { continue };
                drop(admission);
                let part = Part::new(Bytes::from(body.clone()), summary.items, origin, Arc::new(charge));
                link.deliver(Batch::single(signal, part)).await;
            }
        }
    }
}

/// Collects all findings, to report them together.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn note(&mut self, uncharged: i64, allowed: i64, what: String) {
        if std::env::var_os("SHOW_MEMORY").is_some() {
            eprintln!("{uncharged:>10} of {allowed}: {what}");
        }
        if uncharged > allowed {
            self.0.push(format!("{uncharged} bytes beyond what was charged, {allowed} are allowed: {what}"));
        }
    }

    fn settle(self) {
        assert!(self.0.is_empty(), "{}", self.0.join("\n"));
    }
}
