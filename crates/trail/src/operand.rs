//! Tracing in operands, the programs that an operator runs. They have no reconciles, but they do the work that
//! objects ask for: a scheduler reads its configuration from a ConfigMap and selects nodes for Pods. This
//! module lets their spans continue the traces of these objects, and passes the operator's export settings on
//! to them.
//!
//! ```
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use kubewake_trail::{Trail, operand::OperandWork};
//! # use opentelemetry::trace::{SpanBuilder, TraceContextExt};
//! # fn take(trail: &Trail, config_map: &ConfigMap) {
//! // Whoever changed the ConfigMap finds this span in the trace of the change.
//! let context = trail.follow(config_map, OperandWork::Repeated, SpanBuilder::from_name("takeConfiguration"));
//! // … what is done with `context` is inside …
//! context.span().end();
//! # }
//! ```
//!
//! *Guaranteed*: for any content of the object, [`Trail::follow`] returns a context with a span, unless tracing
//! is disabled. The variables of [`Trail::exporter_env`] are the same for each call, so that they roll out
//! nothing, and they hold no secret. *Not done*: dropping spans of work that changed nothing, as for
//! reconciles; an operand decides itself which of its work is worth a span.

use k8s_openapi::api::core::v1::EnvVar;
use kube::Resource;
use opentelemetry::{
    Context,
    trace::{SpanBuilder, SpanContext, SpanKind, TraceContextExt as _, Tracer as _},
};
use serde::Serialize;

use crate::{
    carrier::{Stamp, hash},
    context,
    lineage::{
        is_outdated,
        relation::{TraceRelation, TracedWork, choose_relation},
    },
    trail::Trail,
};

pub(crate) mod env;

/// The relation of a piece of work to the change of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandWork {
    /// The change asked for exactly this work, however long it had to wait, such as the scheduling of a Pod.
    Requested,
    /// The work may be repeated long after the change, such as at each start of a program that reads its
    /// configuration. A late repetition is a new root with a link, like the repair of drift.
    Repeated,
}

impl Trail {
    /// Begins a span that continues the trace on an object: a child of its context or, depending on mode, trust
    /// and age, a root with a link to it. Links of the builder are kept. Returns a context with the span;
    /// without tracing, the current context.
    pub fn follow<K: Resource + Serialize>(&self, object: &K, work: OperandWork, span: SpanBuilder) -> Context {
        let Some(shared) = self.shared() else { return Context::current() };
        let found = shared.read_context(object);
        let work = TracedWork {
            found: &found,
            is_outdated: found.any().is_some_and(|found| is_outdated(object, found, false)),
            was_converged: work == OperandWork::Repeated,
            causes: &[],
        };
        let TraceRelation { parent, links, .. } = choose_relation(shared, work);
        let parent = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent));
        let mut span = if span.span_kind.is_some() { span } else { span.with_kind(SpanKind::Consumer) };
        let links = links.into_iter().chain(span.links.take().into_iter().flatten()).collect();
        self.start(span.with_links(links), &parent)
    }

    /// Begins a span with this parent. Returns a context with the span; without tracing, the parent.
    #[must_use]
    pub fn start(&self, span: SpanBuilder, parent: &Context) -> Context {
        match self.shared() {
            Some(shared) => parent.with_span(shared.tracer.build_with_context(span, parent)),
            None => parent.clone(),
        }
    }

    /// The annotations that let others continue this span, for the given state of an object. They are meant for
    /// requests that add annotations, such as a Binding. Without a span there are none.
    pub fn annotations_for<K: Resource + Serialize>(&self, object: &K, span: &SpanContext) -> Vec<(String, String)> {
        let Some(shared) = self.shared().filter(|_| span.is_valid()) else { return Vec::new() };
        let found = shared.read_context(object);
        let previous = found.any().map(|found| &found.context).filter(|found| found.trace_id() != span.trace_id());
        let stamp = Stamp {
            context: span.clone(),
            spec: hash::hash_object(object).unwrap_or_default(),
            generation: object.meta().generation,
            stamped_at: shared.options.clock.timestamp(),
            previous: previous.cloned(),
        };
        stamp.entries(&shared.options.keys)
    }

    /// The variables for a pod template that make the workload export as this process does. They do not change
    /// while this process runs. Without tracing there are none. They always name the protocol, because the
    /// defaults of SDKs differ.
    ///
    /// Values that may hold a secret (headers, a URL with a password) or are valid only in this process (files,
    /// the service name) are left out.
    #[must_use]
    pub fn exporter_env(&self) -> Vec<EnvVar> {
        if !self.is_enabled() {
            return Vec::new();
        }
        // None of our variables holds invalid UTF-8.
        let variables = std::env::vars_os();
        env::exporter_variables(
            variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    /// `TRACEPARENT` and `TRACESTATE` of the current span, for objects that are created once and never changed:
    /// a Pod, a Job. In the template of a Deployment they would roll out its pods at each change.
    #[must_use]
    pub fn context_env(&self) -> Vec<EnvVar> {
        let current = Context::current().span().span_context().clone();
        if !self.is_enabled() || !current.is_valid() {
            return Vec::new();
        }
        let parent = ("TRACEPARENT", Some(context::traceparent(&current)));
        let state = ("TRACESTATE", context::tracestate(&current));
        [parent, state].into_iter().filter_map(|(name, value)| Some(env::variable(name, value?))).collect()
    }
}

/// The context that this process was started with, as set by [`Trail::context_env`].
#[must_use]
pub fn inherited_context() -> Option<SpanContext> {
    let state = std::env::var("TRACESTATE").ok();
    context::parse(&std::env::var("TRACEPARENT").ok()?, state.as_deref())
}

#[cfg(test)]
mod tests;
