//! One call of an API server, from its body to its answer, as a span.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use kube::core::admission::Operation;
use opentelemetry::{
    Context, KeyValue,
    trace::{Link, Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _},
};
use serde_json::Value;

use super::{
    Webhook,
    counters::{Outcome, Trouble},
    patch,
    review::{NoReview, Review, Verdict},
    select,
    stamp::{self, Decision, Question},
};
use crate::{attributes, context, in_words, sampler::UNTRUSTED};

/// What a call is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Anything but 200 means to an API server that there is no answer, and the object passes.
    pub status: StatusCode,
    /// A review, or why there is none.
    pub body: Vec<u8>,
}

/// What is to be done with an object, and what for.
struct Plan {
    operations: Vec<Value>,
    outcome: Outcome,
}

impl Webhook {
    /// Answers a call whose body is there. It never refuses an object: whatever is wrong with a call, the object passes as it is.
    pub fn answer(&self, headers: &HeaderMap, body: &[u8], arrived: SystemTime) -> Answer {
        let caller = context::extract(headers);
        match Review::read(body) {
            Ok(review) => self.judge(&review, caller.as_ref(), arrived),
            Err(error) => {
                let answer = match &error {
                    NoReview::Answerable { uid, .. } => {
                        Answer { status: StatusCode::OK, body: Verdict::pass().answer(uid, &[]) }
                    }
                    NoReview::Other(_) => {
                        Answer { status: StatusCode::BAD_REQUEST, body: error.to_string().into_bytes() }
                    }
                };
                self.trouble(Trouble::NoReview, &error, caller.as_ref(), arrived);
                answer
            }
        }
    }

    /// Counts and records a call that could not be read at all.
    pub(super) fn trouble(
        &self,
        trouble: Trouble,
        error: &(dyn std::error::Error + 'static),
        caller: Option<&SpanContext>,
        arrived: SystemTime,
    ) {
        let times = self.counters.troubled(trouble);
        if is_told(times) {
            tracing::warn!(times, error = in_words(error), "a call was let through unchanged");
        }
        let mut span = self.span("stamp".into(), caller, Vec::new(), arrived);
        fail(&mut span, trouble, error);
    }

    fn judge(&self, review: &Review, caller: Option<&SpanContext>, arrived: SystemTime) -> Answer {
        let decision = if is_stampable(review) { self.decide(review) } else { Ok(None) };
        let (parent, mut links) = relations(decision.as_ref().ok().and_then(Option::as_ref), caller);
        links.extend(self.unbelieved(review));
        if !self.believes(review) {
            links.iter_mut().for_each(|link| link.attributes = vec![KeyValue::new(UNTRUSTED, true)]);
        }
        let mut span = self.span(format!("stamp {}", shown(&review.kind.kind)), parent.as_ref(), links, arrived);
        describe(&mut span, review);
        let own = Some(span.span_context()).filter(|own| own.is_valid()).cloned();
        // Where nothing is recorded, the API server's own context is passed on.
        let own = own.or_else(|| caller.cloned());
        let plan = decision.map_err(Failure::from).and_then(|decision| match decision {
            Some(decision) => self.plan(review, &decision, own.as_ref()),
            None => Ok(Plan { operations: Vec::new(), outcome: Outcome::Skipped }),
        });
        let operations = match plan {
            Ok(plan) => {
                self.counters.called(plan.outcome);
                span.set_attribute(KeyValue::new(attributes::OUTCOME, plan.outcome.name()));
                plan.operations
            }
            Err(failure) => {
                let times = self.counters.troubled(failure.trouble());
                if is_told(times) {
                    let (kind, namespace, name) =
                        (shown(&review.kind.kind), shown(&review.namespace), shown(review.shown_name()));
                    tracing::warn!(
                        kind,
                        namespace,
                        name,
                        times,
                        error = in_words(&failure),
                        "an object was let through unchanged"
                    );
                }
                fail(&mut span, failure.trouble(), &failure);
                Vec::new()
            }
        };
        Answer { status: StatusCode::OK, body: Verdict::Pass { operations }.answer(&review.uid, &[]) }
    }

    fn decide(&self, review: &Review) -> Result<Option<Decision>, stamp::BadObject> {
        let old = (review.operation == Operation::Update).then_some(&review.old_object);
        let question = Question { old, new: &review.object, believed: self.believes(review) };
        stamp::decide(question, &self.options.keys).map(Some)
    }

    fn believes(&self, review: &Review) -> bool {
        self.options.trust.believes(Some(&*review.namespace).filter(|namespace| !namespace.is_empty()))
    }

    /// The context of a writer who is not believed, as a link, if that is wanted.
    fn unbelieved(&self, review: &Review) -> Option<Link> {
        let wanted = self.options.trust.links_others() && !self.believes(review) && is_stampable(review);
        let new = wanted.then(|| stamp::annotations(&review.object).ok().flatten()).flatten()?;
        let old = stamp::annotations(&review.old_object).ok().flatten().unwrap_or_default();
        let found = stamp::own_context(&new, &old, &self.options.keys)?;
        Some(Link::with_context(found.context))
    }

    fn plan(&self, review: &Review, decision: &Decision, own: Option<&SpanContext>) -> Result<Plan, Failure> {
        let now = stamp::annotations(&review.object)?;
        let none = Default::default();
        let wanted =
            decision.entries(&self.options.keys, own, self.options.clock.timestamp(), now.as_ref().unwrap_or(&none));
        self.counters.ignored(self.options.keys.read(now.as_ref()).garbage);
        let operations = patch::operations(now.as_ref(), &wanted, &self.options.keys)?;
        let outcome = match decision {
            Decision::Keep { .. } => Outcome::Kept,
            _ if operations.is_empty() => Outcome::Unchanged,
            Decision::Stamp { .. } => Outcome::Stamped,
            Decision::Restore { .. } => Outcome::Restored,
        };
        Ok(Plan { operations, outcome })
    }

    fn span(
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

/// Why an object is let through unchanged.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Object(#[from] stamp::BadObject),
    #[error(transparent)]
    Room(#[from] patch::NoRoom),
}

impl Failure {
    fn trouble(&self) -> Trouble {
        match self {
            Self::Object(_) => Trouble::BadObject,
            Self::Room(_) => Trouble::NoRoom,
        }
    }
}

/// Whether this is an object that is written, and not a part of it or something that never is.
fn is_stampable(review: &Review) -> bool {
    let is_write = matches!(review.operation, Operation::Create | Operation::Update);
    is_write && review.sub_resource.is_empty() && !select::is_never(&review.resource.group, &review.resource.resource)
}

/// What the span of a call continues, and what it is linked to.
///
/// It is the API server's call; but where the writer set a context in another trace, that one's, and the API server's is a link.
fn relations(decision: Option<&Decision>, caller: Option<&SpanContext>) -> (Option<SpanContext>, Vec<Link>) {
    let link = |context: &SpanContext| Link::with_context(context.clone());
    let mut links: Vec<Link> = decision.and_then(Decision::previous).map(link).into_iter().collect();
    let parent = match (decision, caller) {
        (Some(Decision::Keep { context, .. }), Some(caller)) if context.trace_id() != caller.trace_id() => {
            links.push(link(caller));
            Some(context)
        }
        (Some(Decision::Keep { context, .. }), None) => Some(context),
        (_, caller) => caller,
    };
    (parent.cloned(), links)
}

/// The longest name that anything has in Kubernetes.
const LONGEST_NAME: usize = 253;

/// A name as it is told. It came with the call, and who calls may be a stranger.
fn shown(name: &str) -> &str {
    name.get(..name.floor_char_boundary(LONGEST_NAME)).unwrap_or_default()
}

/// Whether trouble is logged that comes for this time: less and less often, so that nobody can fill the log.
fn is_told(times: u64) -> bool {
    times.is_power_of_two()
}

fn describe(span: &mut opentelemetry::global::BoxedSpan, review: &Review) {
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
        (attributes::GENERATE_NAME, if review.name.is_empty() { review.shown_name() } else { "" }),
        ("trail.operation", operation),
        ("trail.subresource", &review.sub_resource),
        // The API server calls it so in its own span of this call.
        ("UID", &review.uid),
    ] {
        if !value.is_empty() {
            span.set_attribute(KeyValue::new(key, shown(value).to_owned()));
        }
    }
    if review.dry_run {
        span.set_attribute(KeyValue::new("trail.dry_run", true));
    }
}

fn fail(span: &mut opentelemetry::global::BoxedSpan, trouble: Trouble, error: &(dyn std::error::Error + 'static)) {
    span.set_attribute(KeyValue::new(attributes::OUTCOME, Outcome::Failed.name()));
    span.set_attribute(KeyValue::new(attributes::ERROR_TYPE, trouble.name()));
    span.set_status(Status::error(in_words(error)));
}

#[cfg(test)]
mod tests;
