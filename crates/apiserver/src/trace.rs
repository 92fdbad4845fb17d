//! The server's own tracing, as KEP-647 says.
//!
//! This is the only module that knows OpenTelemetry: the rest of the server says what happens through [`Tracer`], [`Span`] and
//! [`Context`]. A span is encoded into OTLP as it is filled, so that a finished one is bytes that wait in a bounded queue; a full
//! queue drops and counts. Without a pipeline nothing is recorded, and what callers send is passed on untouched.

mod context;
mod encode;
pub mod export;
mod span;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use arc_swap::ArcSwapOption;
use tokio::sync::mpsc;

pub use self::{
    context::{Context, SpanId, TraceId},
    span::{Attribute, Kind, Scope, Span},
};

/// Spans that wait for the exporter: kube-apiserver's own bound.
const QUEUE: usize = 2048;

/// Makes spans while a pipeline is set.
#[derive(Debug, Default)]
pub struct Tracer {
    pipeline: ArcSwapOption<Pipeline>,
}

/// Where finished spans go.
#[derive(Debug)]
pub struct Pipeline {
    /// Roots are sampled if their trace id is below this share of all ids.
    threshold: u64,
    queue: mpsc::Sender<Finished>,
    dropped: AtomicU64,
}

/// A finished span, as OTLP's `Span`.
#[derive(Debug)]
pub struct Finished {
    /// Who made it.
    pub scope: Scope,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Where a span comes from.
#[derive(Clone, Debug)]
pub enum Origin<'a> {
    /// A caller that is trusted: its context is the parent.
    Parent(&'a Context),
    /// A caller that is not: a new root with a link.
    Link(&'a Context),
    /// Nobody.
    Root,
}

impl Tracer {
    /// Records from now on, or no longer.
    pub fn set(&self, pipeline: Option<Arc<Pipeline>>) {
        self.pipeline.store(pipeline);
    }

    /// Whether spans are recorded at all.
    pub fn is_on(&self) -> bool {
        self.pipeline.load().is_some()
    }

    /// Spans that the exporter of now was too slow for.
    pub fn dropped(&self) -> u64 {
        self.pipeline.load().as_ref().map_or(0, |pipeline| pipeline.dropped())
    }

    /// The first span of this process in a trace.
    pub fn start(&self, origin: &Origin<'_>, scope: Scope, kind: Kind, name: &str, start: SystemTime) -> Span {
        let Some(pipeline) = self.pipeline.load_full() else { return Span::passing(origin) };
        let trace = match origin {
            Origin::Parent(context) => context.trace,
            Origin::Link(_) | Origin::Root => TraceId::random(),
        };
        let sampled = match origin {
            Origin::Parent(context) => context.is_sampled(),
            Origin::Link(_) | Origin::Root => pipeline.samples(trace),
        };
        Span::first(pipeline, origin, trace, sampled, scope, kind, name, start)
    }
}

impl Pipeline {
    /// A pipeline that samples this many of a million roots, and where its spans come out.
    pub fn new(ratio_per_million: u32) -> (Arc<Self>, mpsc::Receiver<Finished>) {
        let (queue, finished) = mpsc::channel(QUEUE);
        // As OpenTelemetry's TraceIDRatioBased: the upper 63 bits of the lower half of the id.
        let threshold = (f64::from(ratio_per_million.min(1_000_000)) / 1e6 * (1_u64 << 63) as f64) as u64;
        (Arc::new(Self { threshold, queue, dropped: AtomicU64::new(0) }), finished)
    }

    /// Spans that were dropped because the exporter was too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn samples(&self, trace: TraceId) -> bool {
        trace.low() >> 1 < self.threshold
    }

    fn push(&self, finished: Finished) {
        if self.queue.try_send(finished).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
