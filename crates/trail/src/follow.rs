//! Work on an object that is no reconcile: an operand takes a configuration, a scheduler places a pod.
//!
//! It continues the trace of the object by the same rules as a reconcile: a child or a link by [`Mode`](crate::Mode), a root with a link where the
//! context belongs to an older state of the object, a root where it is not believed.

use std::{borrow::Cow, sync::Arc, time::Duration};

use kube::Resource;
use opentelemetry::{
    Context,
    global::BoxedTracer,
    trace::{Link, SpanBuilder, SpanContext, TraceContextExt as _, Tracer as _, noop::NoopTracer},
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    carrier::{Found, Stamp, hash},
    controller::relation::{Facts, MAX_LINKS, Relation, relation},
    status,
    trail::{Shared, Trail},
};

impl Trail {
    /// Makes spans of the program's own, that are exported with ours.
    #[must_use]
    pub fn tracer(&self) -> BoxedTracer {
        match self.shared() {
            Some(shared) => BoxedTracer::new(Box::new(shared.tracer.clone())),
            None => BoxedTracer::new(Box::new(NoopTracer::new())),
        }
    }

    /// Where work on an object belongs.
    ///
    /// ```
    /// # use kubewake_trail::Trail;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use opentelemetry::trace::TraceContextExt as _;
    /// # let (trail, configuration) = (Trail::off(), ConfigMap::default());
    /// let work = trail.follow(&configuration).start("take configuration");
    /// // … `with_context(work.clone())` on a future makes the span current …
    /// work.span().end();
    /// ```
    #[must_use]
    pub fn follow<K: Resource + Serialize>(&self, object: &K) -> Following {
        let (relation, old) = self.shared().map(|shared| shared.relate(object)).unwrap_or_default();
        let parent = relation.parent.map(|parent| Context::new().with_remote_span_context(parent));
        Following { trail: self.clone(), parent: parent.unwrap_or_default(), links: relation.links, old }
    }

    /// The annotations that leave a context on an object as it is now, for a writer of its own kind, such as a binding.
    pub fn stamp_entries<K: Resource + Serialize>(&self, context: &SpanContext, object: &K) -> Vec<(String, String)> {
        let Some(shared) = self.shared() else { return Vec::new() };
        let (found, believed) = shared.read(object);
        let stamp = Stamp {
            context: context.clone(),
            spec: hash::of(object).unwrap_or_default(),
            generation: object.meta().generation,
            changed: shared.options.clock.timestamp(),
            previous: found.filter(|_| believed).map(|found| found.context),
        };
        stamp.entries(&shared.options.keys)
    }
}

/// Where a span belongs.
#[derive(Clone, Debug)]
pub struct Following {
    trail: Trail,
    /// The parent, or a context without a span for a root.
    pub parent: Context,
    /// What the span is linked to.
    pub links: Vec<Link>,
    /// The change is long over.
    old: bool,
}

impl Following {
    /// Links something else, too. More than a handful of links are not kept.
    #[must_use]
    pub fn link(mut self, context: SpanContext) -> Self {
        if context.is_valid() && self.links.len() < MAX_LINKS {
            self.links.push(Link::with_context(context));
        }
        self
    }

    /// For what is done again and again, such as at each start of a program that reads its configuration: long after the change it is no part of that any more,
    /// but a root with a link, as the repair of drift is.
    #[must_use]
    pub fn repeated(mut self) -> Self {
        let parent = self.parent.span().span_context().clone();
        if self.old && parent.is_valid() {
            self.parent = Context::new();
            self.links.insert(0, Link::with_context(parent));
        }
        self
    }

    /// A span that belongs there, not started yet, for [`Tracer::build_with_context`](opentelemetry::trace::Tracer::build_with_context) with
    /// [`parent`](Self::parent).
    pub fn builder(&self, name: impl Into<Cow<'static, str>>) -> SpanBuilder {
        SpanBuilder::from_name(name).with_links(self.links.clone())
    }

    /// Starts a span that belongs there. It is current where the context is, and ends when its span is ended or dropped.
    pub fn start(self, name: impl Into<Cow<'static, str>>) -> Context {
        let builder = self.builder(name);
        self.parent.with_span(self.trail.tracer().build_with_context(builder, &self.parent))
    }
}

impl Shared {
    /// The relation, and whether the change is long over.
    fn relate<K: Resource + Serialize>(self: &Arc<Self>, object: &K) -> (Relation, bool) {
        let (found, believed) = self.read(object);
        let outdated = found.as_ref().is_some_and(|found| is_outdated(object, found, false));
        let old = self.age(found.as_ref()).is_some_and(|age| age > self.options.drift_after);
        let ready = old && status::is_ready(object, object.meta().generation, &self.options.ready);
        (self.relation(found.as_ref(), believed, outdated, ready, &[]), old)
    }

    /// How a piece of work hangs together with the context on its object.
    pub(crate) fn relation(
        &self,
        found: Option<&Found>,
        believed: bool,
        outdated: bool,
        converged: bool,
        causes: &[SpanContext],
    ) -> Relation {
        relation(Facts {
            mode: self.options.mode,
            found,
            believed,
            link_others: self.options.trust.links_others(),
            outdated,
            converged,
            age: self.age(found),
            drift_after: self.options.drift_after,
            causes,
        })
    }

    /// How old a context is, where it says when it was stamped.
    pub(crate) fn age(&self, found: Option<&Found>) -> Option<Duration> {
        let changed = found?.changed?;
        Some(Duration::try_from(self.options.clock.timestamp().duration_since(changed)).unwrap_or_default())
    }
}

/// Whether somebody changed the object after the context was stamped, and left none. Objects with a generation tell by it; of those without one, only those
/// without a `spec` are as their writer wrote them, and tell by the hash.
pub(crate) fn is_outdated<K: Resource + Serialize>(object: &K, found: &Found, seen_before: bool) -> bool {
    match (found.generation, object.meta().generation, &found.spec) {
        (Some(_), Some(_), _) => found.is_outdated(object.meta().generation),
        (_, None, Some(spec)) => serde_json::to_value(object)
            .is_ok_and(|value| value.get("spec").is_none_or(Value::is_null) && hash::of_value(&value) != *spec),
        _ => seen_before,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::{SignedDuration, Timestamp};
    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SimpleSpanProcessor};

    use super::*;
    use crate::{Clock, Hold, Options, carrier::Source, context::parse};

    fn found(spec: Option<String>, generation: Option<i64>) -> Found {
        let context = parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).unwrap();
        Found { context, source: Source::Own, spec, generation, changed: None, previous: None }
    }

    fn config_map(value: &str) -> ConfigMap {
        let data = Some(BTreeMap::from([("key".to_owned(), value.to_owned())]));
        ConfigMap { data, ..ConfigMap::default() }
    }

    #[test]
    fn an_object_without_a_generation_tells_by_its_hash() {
        let found = found(hash::of(&config_map("a")), Some(1));
        assert!(!is_outdated(&config_map("a"), &found, true));
        assert!(is_outdated(&config_map("b"), &found, false));
    }

    #[test]
    fn an_object_with_a_generation_tells_by_it() {
        let mut pod = Pod::default();
        pod.metadata.generation = Some(2);
        assert!(is_outdated(&pod, &found(None, Some(1)), false));
        assert!(!is_outdated(&pod, &found(Some("other".to_owned()), Some(2)), true));
        assert!(is_outdated(&pod, &found(None, None), true), "this process saw the context with an older one");
    }
    fn following(minutes: i64) -> Following {
        let exporter = InMemorySpanExporter::default();
        let hold = Hold::new(SimpleSpanProcessor::new(exporter));
        let provider = SdkTracerProvider::builder().with_span_processor(hold.clone()).build();
        let mut config_map = config_map("a");
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let options = Options { clock: Clock::new(move || now.into()), ..Options::default() };
        let changed = (now - SignedDuration::from_mins(minutes)).to_string();
        config_map.metadata.annotations = Some(BTreeMap::from([
            (options.keys.traceparent.clone(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
            (options.keys.changed.clone(), changed),
        ]));
        Trail::new(&provider, hold, options).follow(&config_map)
    }

    #[test]
    fn what_is_done_again_long_after_is_a_root_with_a_link() {
        let place = |following: Following| (following.parent.span().span_context().is_valid(), following.links.len());
        assert_eq!(place(following(5).repeated()), (true, 0));
        assert_eq!(place(following(50).repeated()), (false, 1));
        assert_eq!(place(following(50)), (true, 0), "it had to wait so long");
    }
}
