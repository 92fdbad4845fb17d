//! A span processor that holds the spans of a [`Run`] until it is known whether the run did anything.
//!
//! It stands before the exporting processor. Spans outside of any run pass at once.
//! *Assumed*: it is the only processor of its provider, as each processor sees every span.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use opentelemetry::{
    Context,
    trace::{Span as _, SpanContext, SpanId, TraceId},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};

use crate::run::Run;

/// Holds spans before another processor. Clones share their state.
#[derive(Clone, Debug)]
pub struct DeferredSpanProcessor(Arc<DeferredSpanState>);

#[derive(Debug)]
struct DeferredSpanState {
    /// Locked for writing only when the provider is built.
    next: RwLock<Box<dyn SpanProcessor>>,
    /// Open spans of runs that are not settled.
    runs: Mutex<HashMap<(TraceId, SpanId), Run>>,
}

impl DeferredSpanProcessor {
    /// Creates a processor that holds spans before this one.
    pub fn new(next: impl SpanProcessor + 'static) -> Self {
        Self(Arc::new(DeferredSpanState { next: RwLock::new(Box::new(next)), runs: Mutex::default() }))
    }

    /// Takes a span that the SDK did not make: passes it on, or holds it with its run.
    pub(crate) fn record(&self, span: SpanData, run: Option<&Run>) {
        let span = match run {
            Some(run) => run.hold_span(span),
            None => Some(span),
        };
        if let Some(span) = span {
            self.export(span);
        }
    }

    /// Settles a run: exports its spans or drops them.
    pub(crate) fn settle(&self, run: &Run, keep: bool) {
        run.settle(keep).into_iter().for_each(|span| self.export(span));
    }

    fn export(&self, span: SpanData) {
        self.0.next.read().unwrap_or_else(PoisonError::into_inner).on_end(span);
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<(TraceId, SpanId), Run>> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn span_key(context: &SpanContext) -> (TraceId, SpanId) {
    (context.trace_id(), context.span_id())
}

impl SpanProcessor for DeferredSpanProcessor {
    fn on_start(&self, span: &mut Span, context: &Context) {
        if let Some(run) = context.get::<Run>() {
            self.runs().insert(span_key(span.span_context()), run.clone());
        }
        self.0.next.read().unwrap_or_else(PoisonError::into_inner).on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        let run = self.runs().remove(&span_key(&span.span_context));
        self.record(span, run.as_ref());
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.next.read().unwrap_or_else(PoisonError::into_inner).force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.next.read().unwrap_or_else(PoisonError::into_inner).shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.next.write().unwrap_or_else(PoisonError::into_inner).set_resource(resource);
    }
}
