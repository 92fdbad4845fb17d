//! Operands: the programs that an operator runs. They have no reconciles, but they do what objects ask for: a scheduler takes its configuration from a
//! ConfigMap and looks for nodes for Pods. Here is how their spans continue the traces of these objects, and how they get the settings
//! of their operator.
//!
//! ```
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use kubewake_trail::{Trail, operand::Work};
//! # use opentelemetry::trace::{SpanBuilder, TraceContextExt};
//! # fn take(trail: &Trail, config_map: &ConfigMap) {
//! // Whoever changed the ConfigMap finds this span in the trace of the change.
//! let context = trail.follow(config_map, Work::Repeated, SpanBuilder::from_name("takeConfiguration"));
//! // … what is done with `context` is inside …
//! context.span().end();
//! # }
//! ```
//!
//! Guaranteed: whatever stands on the object, `follow` gives a span or nothing is traced at all. The variables of [`Trail::exporter_env`] are the same
//! from one call to the next, so that they roll out nothing, and hold no secret.
//! Not done: an operand decides itself which of its work is worth a span. Nothing is held back and dropped as for reconciles.

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
    controller::relation::Relation,
    relate::is_outdated,
    trail::Trail,
};

pub(crate) mod env;

/// How what is done for an object belongs to its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It is what the change asked for, however long that had to wait: a Pod gets its node.
    Asked,
    /// It may be done again long after the change, such as at each start of a program that reads its configuration. Then it is a new root with a link, as the repair of
    /// drift is.
    Repeated,
}

impl Trail {
    /// Begins a span that continues the trace on an object: a child of that context or, where modes, trust and time say so, a root with a link to it. Links
    /// of the builder are kept. The context that is given back has the span; without tracing it is the current one.
    pub fn follow<K: Resource + Serialize>(&self, object: &K, work: Work, span: SpanBuilder) -> Context {
        let Some(shared) = self.shared() else { return Context::current() };
        let (found, believed) = shared.read(object);
        let outdated = found.as_ref().is_some_and(|found| is_outdated(object, found, false));
        let converged = work == Work::Repeated;
        let Relation { parent, links, .. } = shared.relation(found.as_ref(), believed, outdated, converged, &[]);
        let parent = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent));
        let mut span = if span.span_kind.is_some() { span } else { span.with_kind(SpanKind::Consumer) };
        let links = links.into_iter().chain(span.links.take().into_iter().flatten()).collect();
        self.start(span.with_links(links), &parent)
    }

    /// Begins a span inside another. The context that is given back has it; without tracing it is the one that was given.
    #[must_use]
    pub fn start(&self, span: SpanBuilder, parent: &Context) -> Context {
        match self.shared() {
            Some(shared) => parent.with_span(shared.tracer.build_with_context(span, parent)),
            None => parent.clone(),
        }
    }

    /// The annotations by which others continue this span, for an object as it will be. They are for requests that add annotations, such as a Binding; without a
    /// span there are none.
    pub fn annotations_for<K: Resource + Serialize>(&self, object: &K, span: &SpanContext) -> Vec<(String, String)> {
        let Some(shared) = self.shared().filter(|_| span.is_valid()) else { return Vec::new() };
        let (found, _) = shared.read(object);
        let previous = found.map(|found| found.context).filter(|it| it.trace_id() != span.trace_id());
        let stamp = Stamp {
            context: span.clone(),
            spec: hash::of(object).unwrap_or_default(),
            generation: object.meta().generation,
            changed: shared.options.clock.timestamp(),
            previous,
        };
        stamp.entries(&shared.options.keys)
    }

    /// The variables that make a workload export as this process does, for its pod template. They do not change while this process runs. Without tracing there are none. The protocol is always among
    /// them, as SDKs do not agree on what it is unless it is said.
    ///
    /// What may hold a secret (headers, an address with a password) or is true only here (files, the name of the service) is not among them.
    #[must_use]
    pub fn exporter_env(&self) -> Vec<EnvVar> {
        if !self.is_on() {
            return Vec::new();
        }
        // What is no text is nothing of ours.
        let variables = std::env::vars_os();
        env::exporter(variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))))
    }

    /// `TRACEPARENT` and `TRACESTATE` of the current span, for what is created once and never changed: a Pod, a Job. In the template of a Deployment they would roll out
    /// its pods at each change.
    #[must_use]
    pub fn context_env(&self) -> Vec<EnvVar> {
        let current = Context::current().span().span_context().clone();
        if !self.is_on() || !current.is_valid() {
            return Vec::new();
        }
        let parent = ("TRACEPARENT", Some(context::traceparent(&current)));
        let state = ("TRACESTATE", context::tracestate(&current));
        [parent, state].into_iter().filter_map(|(name, value)| Some(env::variable(name, value?))).collect()
    }
}

/// The context that this process was started with, as [`Trail::context_env`] left it.
#[must_use]
pub fn inherited() -> Option<SpanContext> {
    let state = std::env::var("TRACESTATE").ok();
    context::parse(&std::env::var("TRACEPARENT").ok()?, state.as_deref())
}

#[cfg(test)]
mod tests;
