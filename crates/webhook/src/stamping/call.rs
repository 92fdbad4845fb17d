//! Handles one call of an API server, from its body to its response, as a span.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use kube::core::admission::Operation;
use kubewake_trail::{attributes, context, error_chain, sampler::UNTRUSTED};
use opentelemetry::{
    Context, KeyValue,
    trace::{Link, Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _},
};
use serde_json::Value;

use super::{
    StampWebhook,
    counters::{CallOutcome, CallTrouble},
    decision::{self, StampDecision, StampInput},
    patch, selection,
};
use crate::review::{ReviewDecision, ReviewParseError, ReviewRequest};

/// The response to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResponse {
    /// Any status but 200 means to an API server that the call failed; the object then passes unchanged.
    pub status: StatusCode,
    /// A review, or an error message.
    pub body: Vec<u8>,
}

/// The patch of an object, and the outcome to count.
struct StampPlan {
    operations: Vec<Value>,
    outcome: CallOutcome,
}

impl StampWebhook {
    /// Responds to a call whose body was read. It never refuses an object: an object whose call fails passes
    /// unchanged.
    pub fn handle_call(&self, headers: &HeaderMap, body: &[u8], arrived: SystemTime) -> CallResponse {
        let caller = context::extract(headers);
        match ReviewRequest::parse(body) {
            Ok(review) => self.handle_review(&review, caller.as_ref(), arrived),
            Err(error) => {
                let answer = match &error {
                    ReviewParseError::Answerable { uid, .. } => {
                        CallResponse { status: StatusCode::OK, body: ReviewDecision::pass().to_response_body(uid, &[]) }
                    }
                    ReviewParseError::NotAReview(_) => {
                        CallResponse { status: StatusCode::BAD_REQUEST, body: error.to_string().into_bytes() }
                    }
                };
                self.record_trouble(CallTrouble::NoReview, &error, caller.as_ref(), arrived);
                answer
            }
        }
    }

    /// Counts and records a call that could not be read.
    pub(super) fn record_trouble(
        &self,
        trouble: CallTrouble,
        error: &(dyn std::error::Error + 'static),
        caller: Option<&SpanContext>,
        arrived: SystemTime,
    ) {
        let times = self.counters.count_trouble(trouble);
        if should_log(times) {
            tracing::warn!(
                times,
                error = error_chain(error),
                "failed to read an admission request; its object was admitted unchanged"
            );
        }
        let mut span = self.start_span("stamp".into(), caller, Vec::new(), arrived);
        record_failure(&mut span, trouble, error);
    }

    fn handle_review(&self, review: &ReviewRequest, caller: Option<&SpanContext>, arrived: SystemTime) -> CallResponse {
        let decision = if is_stampable(review) { self.decide(review) } else { Ok(None) };
        let (parent, mut links) = parent_and_links(decision.as_ref().ok().and_then(Option::as_ref), caller);
        links.extend(self.untrusted_link(review));
        if !self.trusts_namespace(review) {
            links.iter_mut().for_each(|link| link.attributes = vec![KeyValue::new(UNTRUSTED, true)]);
        }
        let mut span =
            self.start_span(format!("stamp {}", truncated_name(&review.kind.kind)), parent.as_ref(), links, arrived);
        set_review_attributes(&mut span, review);
        let own = Some(span.span_context()).filter(|own| own.is_valid()).cloned();
        // Where no span is recorded, the API server's own context is stamped.
        let own = own.or_else(|| caller.cloned());
        let plan = decision.map_err(StampFailure::from).and_then(|decision| match decision {
            Some(decision) => self.build_plan(review, &decision, own.as_ref()),
            None => Ok(StampPlan { operations: Vec::new(), outcome: CallOutcome::Skipped }),
        });
        let operations = match plan {
            Ok(plan) => {
                self.counters.count_call(plan.outcome);
                span.set_attribute(KeyValue::new(attributes::OUTCOME, plan.outcome.name()));
                plan.operations
            }
            Err(failure) => {
                let times = self.counters.count_trouble(failure.trouble_kind());
                if should_log(times) {
                    let kind = truncated_name(&review.kind.kind);
                    let namespace = truncated_name(&review.namespace);
                    let name = truncated_name(review.display_name());
                    tracing::warn!(
                        kind,
                        namespace,
                        name,
                        times,
                        error = error_chain(&failure),
                        "failed to stamp object; it was admitted unchanged"
                    );
                }
                record_failure(&mut span, failure.trouble_kind(), &failure);
                Vec::new()
            }
        };
        CallResponse {
            status: StatusCode::OK,
            body: ReviewDecision::Pass { operations }.to_response_body(&review.uid, &[]),
        }
    }

    fn decide(&self, review: &ReviewRequest) -> Result<Option<StampDecision>, decision::InvalidAnnotations> {
        let old = (review.operation == Operation::Update).then_some(&review.old_object);
        let question = StampInput { old, new: &review.object, is_trusted: self.trusts_namespace(review) };
        decision::decide(question, &self.options.keys).map(Some)
    }

    fn trusts_namespace(&self, review: &ReviewRequest) -> bool {
        self.options.trust.is_trusted(Some(&*review.namespace).filter(|namespace| !namespace.is_empty()))
    }

    /// A link to the context of an untrusted writer, if such links are enabled.
    fn untrusted_link(&self, review: &ReviewRequest) -> Option<Link> {
        let wanted = self.options.trust.links_others() && !self.trusts_namespace(review) && is_stampable(review);
        let new = wanted.then(|| decision::object_annotations(&review.object).ok().flatten()).flatten()?;
        let old = decision::object_annotations(&review.old_object).ok().flatten().unwrap_or_default();
        let found = decision::writer_context(&new, &old, &self.options.keys)?;
        Some(Link::with_context(found.context))
    }

    fn build_plan(
        &self,
        review: &ReviewRequest,
        decision: &StampDecision,
        own: Option<&SpanContext>,
    ) -> Result<StampPlan, StampFailure> {
        let now = decision::object_annotations(&review.object)?;
        let none = Default::default();
        let wanted =
            decision.entries(&self.options.keys, own, self.options.clock.timestamp(), now.as_ref().unwrap_or(&none));
        self.counters.count_unreadable(self.options.keys.read(now.as_ref()).unreadable);
        let operations = patch::patch_operations(now.as_ref(), &wanted, &self.options.keys)?;
        let outcome = match decision {
            StampDecision::Keep { .. } => CallOutcome::Kept,
            _ if operations.is_empty() => CallOutcome::Unchanged,
            StampDecision::Stamp { .. } => CallOutcome::Stamped,
            StampDecision::Restore { .. } => CallOutcome::Restored,
        };
        Ok(StampPlan { operations, outcome })
    }

    fn start_span(
        &self,
        name: String,
        parent: Option<&SpanContext>,
        links: Vec<Link>,
        arrived: SystemTime,
    ) -> opentelemetry::global::BoxedSpan {
        let parent = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent.clone()));
        let builder =
            SpanBuilder::from_name(name).with_kind(SpanKind::Server).with_start_time(arrived).with_links(links);
        self.tracer.build_with_context(builder, &parent)
    }
}

/// The reason why an object passes without a stamp.
#[derive(Debug, thiserror::Error)]
enum StampFailure {
    #[error(transparent)]
    InvalidObject(#[from] decision::InvalidAnnotations),
    #[error(transparent)]
    AnnotationsTooLarge(#[from] patch::AnnotationsTooLarge),
}

impl StampFailure {
    fn trouble_kind(&self) -> CallTrouble {
        match self {
            Self::InvalidObject(_) => CallTrouble::BadObject,
            Self::AnnotationsTooLarge(_) => CallTrouble::NoRoom,
        }
    }
}

/// Whether the call creates or updates an object (not a subresource) of a kind that may be stamped.
fn is_stampable(review: &ReviewRequest) -> bool {
    let is_write = matches!(review.operation, Operation::Create | Operation::Update);
    is_write
        && review.sub_resource.is_empty()
        && !selection::is_never_stamped(&review.resource.group, &review.resource.resource)
}

/// The parent of the span of a call, and its links.
///
/// The parent is the API server's call. Where the writer set a context in another trace, that context is the
/// parent, and the API server's call is a link.
fn parent_and_links(
    decision: Option<&StampDecision>,
    caller: Option<&SpanContext>,
) -> (Option<SpanContext>, Vec<Link>) {
    let link = |context: &SpanContext| Link::with_context(context.clone());
    let mut links: Vec<Link> = decision.and_then(StampDecision::previous).map(link).into_iter().collect();
    let parent = match (decision, caller) {
        (Some(StampDecision::Keep { context, .. }), Some(caller)) if context.trace_id() != caller.trace_id() => {
            links.push(link(caller));
            Some(context)
        }
        (Some(StampDecision::Keep { context, .. }), None) => Some(context),
        (_, caller) => caller,
    };
    (parent.cloned(), links)
}

/// The longest name of a Kubernetes object.
const MAX_NAME_BYTES: usize = 253;

/// A name for logs, shortened: a caller may send anything.
fn truncated_name(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_NAME_BYTES)).unwrap_or_default()
}

/// Whether the nth failure is logged: fewer and fewer are, so that nobody can flood the log.
fn should_log(times: u64) -> bool {
    times.is_power_of_two()
}

fn set_review_attributes(span: &mut opentelemetry::global::BoxedSpan, review: &ReviewRequest) {
    if !span.is_recording() {
        return;
    }
    let operation = match review.operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    };
    for (key, value) in [
        (attributes::NAMESPACE, review.namespace.as_str()),
        (attributes::KIND, &review.kind.kind),
        (attributes::NAME, &review.name),
        (attributes::GENERATE_NAME, if review.name.is_empty() { review.display_name() } else { "" }),
        ("trail.operation", operation),
        ("trail.subresource", &review.sub_resource),
        // The attribute name that the API server uses in its own span of this call.
        ("UID", &review.uid),
    ] {
        if !value.is_empty() {
            span.set_attribute(KeyValue::new(key, truncated_name(value).to_owned()));
        }
    }
    if review.dry_run {
        span.set_attribute(KeyValue::new("trail.dry_run", true));
    }
}

fn record_failure(
    span: &mut opentelemetry::global::BoxedSpan,
    trouble: CallTrouble,
    error: &(dyn std::error::Error + 'static),
) {
    span.set_attribute(KeyValue::new(attributes::OUTCOME, CallOutcome::Failed.name()));
    span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, trouble.name()));
    span.set_status(Status::error(error_chain(error)));
}

#[cfg(test)]
mod tests;
