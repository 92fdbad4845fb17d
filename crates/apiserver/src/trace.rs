//! The server's own tracing, as KEP-647 says.
//!
//! This is the only module that knows OpenTelemetry: the rest of the server says what happens through [`Tracer`], [`Span`] and
//! [`Context`]. A span is encoded into OTLP as it is filled, so that a finished one is bytes that wait in a bounded queue; a full
//! queue drops and counts. Without a pipeline nothing is recorded, and what callers send is passed on untouched.

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
    context::{Context, SpanId, TraceId},
    pipeline::{Counts, Finished, Pipeline, Sampling},
    span::{Attribute, Begin, Kind, Scope, Span},
};

/// Makes spans while a pipeline is set.
#[derive(Debug, Default)]
pub struct Tracer {
    /// The feature gate says no: not even contexts are looked at.
    off: AtomicBool,
    pipeline: ArcSwapOption<Pipeline>,
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
    /// One that neither records nor passes anything on.
    pub fn off() -> Self {
        Self { off: AtomicBool::new(true), pipeline: ArcSwapOption::default() }
    }

    /// Whether it does not even look at contexts.
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }

    /// Records from now on, or no longer.
    pub fn set(&self, pipeline: Option<Arc<Pipeline>>) {
        self.pipeline.store(pipeline);
    }

    /// Whether spans are recorded at all.
    pub fn is_on(&self) -> bool {
        self.pipeline.load().is_some()
    }

    /// What became of spans.
    pub fn counts(&self) -> Counts {
        self.pipeline.load().as_ref().map_or_else(Counts::default, |pipeline| pipeline.counts())
    }

    /// Whether somebody is trusted who is in the groups of which `is_in` says so.
    pub fn trusts(&self, is_in: impl Fn(&str) -> bool) -> bool {
        self.pipeline.load().as_ref().is_some_and(|pipeline| pipeline.trusts(is_in))
    }

    /// Whether authentication leaves no trace of its own where the caller has one.
    pub fn joins_authentication(&self) -> bool {
        self.pipeline.load().as_ref().is_some_and(|pipeline| pipeline.joins_authentication())
    }

    /// The first span of this process in a trace.
    pub fn start(&self, origin: &Origin<'_>, begin: Begin<'_>) -> Span {
        let pipeline = self.pipeline.load();
        let Some(pipeline) = &*pipeline else { return Span::passing(origin) };
        let (trace, sampled, state) = match origin {
            Origin::Parent(context) => (context.trace, context.is_sampled(), context.state.clone()),
            Origin::Link(_) | Origin::Root => {
                let trace = TraceId::random();
                (trace, pipeline.samples(trace), None)
            }
        };
        let context = Context { trace, span: SpanId::random(), flags: u8::from(sampled), state };
        Span::first(sampled.then(|| Arc::clone(pipeline)), context, origin, begin)
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
