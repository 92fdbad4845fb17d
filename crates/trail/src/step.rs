//! A step inside a run: a span whose calls are a run of their own, so that a step which changed nothing leaves nothing.

use std::sync::Arc;

use kube::Resource;
use opentelemetry::{
    Context, KeyValue,
    trace::{SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _},
};

use crate::{attributes, errors::in_words, run::Run, trail::Shared};

/// A step that has begun.
pub(crate) struct Step {
    shared: Arc<Shared>,
    run: Option<Run>,
    /// What is current inside.
    pub(crate) context: Context,
}

impl Step {
    /// Begins a step about an object. Outside of any span it records nothing.
    pub(crate) fn start<K: Resource>(
        shared: &Arc<Shared>,
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
            context.span().set_attributes(attributes::object(object, kind));
        }
        Self { shared: Arc::clone(shared), run, context }
    }

    /// The context that whoever works on the object continues.
    pub(crate) fn stamp(&self) -> Option<SpanContext> {
        Some(self.context.span().span_context().clone()).filter(SpanContext::is_valid)
    }

    /// The same was asked for before.
    pub(crate) fn expect_nothing(&self) {
        self.run.iter().for_each(Run::expect_nothing);
    }

    /// Whether something was changed in this step.
    pub(crate) fn has_changed(&self) -> bool {
        self.run.as_ref().is_none_or(Run::has_changed)
    }

    pub(crate) fn finish<T>(self, answer: &kube::Result<T>) {
        let span = self.context.span();
        if let Err(error) = answer {
            span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, error_type(error)));
            span.set_status(Status::error(in_words(error)));
        }
        if let Some(run) = &self.run {
            let keep = answer.is_err() || run.has_changed() || run.is_exposed();
            self.shared.hold.settle(run, keep);
            span.end();
        } else if self.context.span().is_recording() {
            span.end();
        }
    }
}

/// The reason that the API server gave, or where it went wrong.
fn error_type(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.reason.clone(),
        kube::Error::SerdeError(_) => "serialization".to_owned(),
        _ => "connection".to_owned(),
    }
}
