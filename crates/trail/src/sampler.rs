//! A sampler that follows links.
//!
//! A span follows its parent. A root with links is sampled when one of the linked spans is, and not sampled
//! otherwise, so that a chain of traces that are joined by links is recorded as a whole or not at all. A root
//! without links is decided by the root sampler. A link marked as untrusted (the attribute [`UNTRUSTED`]) is
//! ignored.

use opentelemetry::{
    Context, KeyValue,
    trace::{Link, SpanKind, TraceContextExt, TraceId},
};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, SamplingResult, ShouldSample};

/// The attribute of a link whose context was read from an object in an untrusted namespace.
pub const UNTRUSTED: &str = "trail.untrusted";

/// A sampler that follows the parent, else the links, else another sampler.
#[derive(Clone, Debug)]
pub struct FollowLinks {
    root: Box<dyn ShouldSample>,
}

impl FollowLinks {
    /// Creates a sampler that uses the given one for roots without links.
    pub fn new(root: impl ShouldSample + 'static) -> Self {
        Self { root: Box::new(root) }
    }

    /// Samples this share, 0 to 1, of the traces that begin here.
    #[must_use]
    pub fn with_ratio(share: f64) -> Self {
        Self::new(Sampler::TraceIdRatioBased(share))
    }
}

impl ShouldSample for FollowLinks {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let parent_span = parent.map(TraceContextExt::span);
        let parent_context = parent_span.as_ref().map(|span| span.span_context()).filter(|context| context.is_valid());
        let sampled = match parent_context {
            Some(context) => Some(context.is_sampled()),
            None => linked_decision(links),
        };
        let Some(sampled) = sampled else {
            return self.root.should_sample(parent, trace, name, kind, attributes, links);
        };
        SamplingResult {
            decision: if sampled { SamplingDecision::RecordAndSample } else { SamplingDecision::Drop },
            attributes: Vec::new(),
            trace_state: parent_context.map(|context| context.trace_state().clone()).unwrap_or_default(),
        }
    }
}

fn linked_decision(links: &[Link]) -> Option<bool> {
    let untrusted = |link: &Link| link.attributes.iter().any(|attribute| attribute.key.as_str() == UNTRUSTED);
    let mut believed = links.iter().filter(|link| !untrusted(link)).peekable();
    believed.peek()?;
    Some(believed.any(|link| link.span_context.is_sampled()))
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::SpanContext;

    use super::*;
    use crate::context::parse;

    fn context(sampled: bool) -> SpanContext {
        let flags = if sampled { "01" } else { "00" };
        parse(&format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}"), Some("a=1")).unwrap()
    }

    fn decide(root: Sampler, parent: Option<bool>, links: &[Link]) -> bool {
        let parent = parent.map(|sampled| Context::new().with_remote_span_context(context(sampled)));
        let trace = TraceId::from_bytes([1; 16]);
        let result = FollowLinks::new(root).should_sample(parent.as_ref(), trace, "", &SpanKind::Internal, &[], links);
        assert_eq!(result.trace_state.get("a").is_some(), parent.is_some());
        result.decision == SamplingDecision::RecordAndSample
    }

    fn link(sampled: bool) -> Link {
        Link::with_context(context(sampled))
    }

    #[test]
    fn the_parent_decides_then_links_then_the_root() {
        use Sampler::{AlwaysOff, AlwaysOn};
        assert!(decide(AlwaysOff, Some(true), &[link(false)]));
        assert!(!decide(AlwaysOn, Some(false), &[link(true)]));
        assert!(decide(AlwaysOff, None, &[link(false), link(true)]));
        assert!(!decide(AlwaysOn, None, &[link(false)]));
        assert!(decide(AlwaysOn, None, &[]));
        assert!(!decide(AlwaysOff, None, &[]));
    }

    #[test]
    fn who_is_not_believed_decides_nothing() {
        let untrusted = Link::new(context(true), vec![KeyValue::new(UNTRUSTED, true)], 0);
        assert!(!decide(Sampler::AlwaysOff, None, std::slice::from_ref(&untrusted)));
        assert!(decide(Sampler::AlwaysOn, None, &[untrusted]));
    }
}
