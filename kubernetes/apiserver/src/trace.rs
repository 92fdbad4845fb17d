//! The server's own tracing, as KEP-647 specifies.
//!
//! This is the only module that knows OpenTelemetry: the rest of the server records through [`Tracer`],
//! [`TraceSpan`] and [`SpanContext`]. A span is encoded into OTLP while it is filled, so that a finished one is
//! bytes in a bounded queue; a full queue drops spans and counts them. Without a pipeline nothing is recorded,
//! and the trace context of callers is passed on unchanged.

pub mod config;
mod context;
mod encode;
pub mod export;
pub mod outgoing;
mod pipeline;
pub mod reload;
mod span;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::ArcSwapOption;

pub use self::{
    context::{SpanContext, SpanId, TraceId},
    pipeline::{FinishedSpan, SpanCounts, SpanPipeline, SpanSampling},
    span::{InstrumentationScope, SpanAttributeValue, SpanStart, TraceSpan, TraceSpanKind},
};

/// Starts spans while a pipeline is set.
#[derive(Debug, Default)]
pub struct Tracer {
    /// The feature gate is off: not even contexts are read.
    off: AtomicBool,
    pipeline: ArcSwapOption<SpanPipeline>,
}

/// The origin of a span.
#[derive(Clone, Debug)]
pub enum SpanOrigin<'a> {
    /// The context of a trusted caller, which becomes the parent.
    Parent(&'a SpanContext),
    /// The context of an untrusted caller: the span is a new root with a link to it.
    Link(&'a SpanContext),
    Root,
}

impl Tracer {
    /// A tracer that neither records nor passes contexts on.
    pub fn off() -> Self {
        Self { off: AtomicBool::new(true), pipeline: ArcSwapOption::default() }
    }

    /// Whether not even contexts are read.
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Starts recording with a pipeline, or stops it.
    pub fn set_pipeline(&self, pipeline: Option<Arc<SpanPipeline>>) {
        self.pipeline.store(pipeline);
    }

    pub fn is_on(&self) -> bool {
        self.pipeline.load().is_some()
    }

    pub fn counts(&self) -> SpanCounts {
        self.pipeline.load().as_ref().map_or_else(SpanCounts::default, |pipeline| pipeline.counts())
    }

    /// Whether a caller is trusted. `is_in` tells whether the caller is in a group.
    pub fn trusts(&self, is_in: impl Fn(&str) -> bool) -> bool {
        self.pipeline.load().as_ref().is_some_and(|pipeline| pipeline.trusts(is_in))
    }

    /// Whether authentication starts no trace of its own where the caller has one.
    pub fn joins_authentication(&self) -> bool {
        self.pipeline.load().as_ref().is_some_and(|pipeline| pipeline.joins_authentication())
    }

    /// Starts the first span of this process in a trace.
    pub fn start(&self, origin: &SpanOrigin<'_>, begin: SpanStart<'_>) -> TraceSpan {
        let pipeline = self.pipeline.load();
        let Some(pipeline) = &*pipeline else { return TraceSpan::passthrough(origin) };
        let (trace, sampled, state) = match origin {
            SpanOrigin::Parent(context) => (context.trace, context.is_sampled(), context.state.clone()),
            SpanOrigin::Link(_) | SpanOrigin::Root => {
                let trace = TraceId::random();
                (trace, pipeline.samples(trace), None)
            }
        };
        let context = SpanContext { trace, span: SpanId::random(), flags: u8::from(sampled), state };
        TraceSpan::start_local_root(sampled.then(|| Arc::clone(pipeline)), context, origin, begin)
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
