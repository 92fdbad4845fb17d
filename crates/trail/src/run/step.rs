//! A step of a run: a span with a run of its own, so that a step which changed nothing leaves no spans.

use std::sync::Arc;

use kube::Resource;
use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _},
};

use crate::{attributes, errors::error_chain, run::Run, trail::TrailState};

/// A step in progress.
pub(crate) struct RunStep {
    shared: Arc<TrailState>,
    run: Option<Run>,
    /// The context inside the step.
    pub(crate) context: Context,
}

impl RunStep {
    /// Begins a step about an object. Outside of any span it records nothing.
    pub(crate) fn start<K: Resource>(
        shared: &Arc<TrailState>,
        name: String,
        span: SpanKind,
        object: &K,
        kind: &K::DynamicType,
    ) -> Self {
        let current = Context::current();
        if !current.span().span_context().is_valid() {
            return Self { shared: Arc::clone(shared), run: None, context: current };
        }
        let run = current.get::<Run>().map(Run::inside);
        let parent = run.clone().map_or_else(|| current.clone(), |run| current.with_value(run));
        let builder = shared.tracer.span_builder(name).with_kind(span);
        let context = parent.with_span(shared.tracer.build_with_context(builder, &parent));
        if context.span().is_recording() {
            context.span().set_attributes(attributes::object_attributes(object, kind));
        }
        Self { shared: Arc::clone(shared), run, context }
    }

    /// The context to stamp on the object.
    pub(crate) fn stamp_context(&self) -> Option<SpanContext> {
        Some(self.context.span().span_context().clone()).filter(SpanContext::is_valid)
    }

    /// Marks the step as one that repeats an earlier write.
    pub(crate) fn expect_nothing(&self) {
        self.run.iter().for_each(Run::expect_nothing);
    }

    /// Whether the step changed something; true where that is unknown.
    pub(crate) fn has_changed(&self) -> bool {
        self.run.as_ref().is_none_or(Run::has_changed)
    }

    pub(crate) fn finish<T>(self, answer: &kube::Result<T>) {
        let span = self.context.span();
        if let Err(error) = answer {
            span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, error_type(error)));
            span.set_status(Status::error(error_chain(error)));
        }
        if let Some(run) = &self.run {
            let keep = answer.is_err() || run.has_changed() || run.is_exposed();
            self.shared.processor.settle(run, keep);
            span.end();
        } else if self.context.span().is_recording() {
            span.end();
        }
    }
}

/// The reason of the API server, or the stage at which the call failed.
fn error_type(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.reason.clone(),
        kube::Error::SerdeError(_) => "serialization".to_owned(),
        _ => "connection".to_owned(),
    }
}
