//! Attributes, trace states and bodies, changed in place.

mod apply;
mod edits;
mod list;
mod value;

#[cfg(test)]
mod tests;

pub use edits::{Edit, Edits, Rules};
pub use list::{AttributeList, Change, Verdict, When};
pub use value::Value;

use bytes::Bytes;

use crate::Signal;
use crate::edit::{Place, Walk, copy, edit, replace};
use crate::level::is_child;
use crate::memory::{Allowance, NoMemory, Unlimited};
use crate::numbers::{
    exponential_point, histogram_point, number_point, resource, resource_entry, scope, scope_entry, summary_point,
};
use crate::plan::Plan;
use crate::view::{MetricKind, Point, RecordRef, Resource, ResourceEntry, Scope, ScopeEntry, View};
use crate::wire::{Field, Fields};
use apply::{Target, Workspace};

/// Who says what to change. Each method is asked once for each of its things, in order, and adds what it wants done to
/// `edits`; it sees everything as it was before any change.
pub trait Editor {
    /// Whether it is asked about records and points. One that is not costs no walk over them.
    const RECORDS: bool = true;

    /// A resource. An entry that has none is asked for too, as an empty one, and gets one if an attribute is set.
    fn resource(&mut self, resource: Resource<'_>, edits: &mut Edits) {
        let _ = (resource, edits);
    }

    /// A scope. An entry that has none is asked for too, as for resources.
    fn scope(&mut self, scope: Scope<'_>, edits: &mut Edits) {
        let _ = (scope, edits);
    }

    /// A span or a log record.
    fn record(&mut self, record: &RecordRef<'_>, edits: &mut Edits) {
        let _ = (record, edits);
    }

    /// A data point of a metric.
    fn point(&mut self, metric: &RecordRef<'_>, point: &Point<'_>, edits: &mut Edits) {
        let _ = (metric, point, edits);
    }
}

/// Changes what an editor says.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: what is not edited is copied as it stands, unknown fields included, and
/// if nothing changes the same bytes are returned. Changed attributes keep their place, new ones come last. A metric's
/// points are edited in each of its data messages, though only the last message counts.
///
/// Assumed: the bytes were scanned. Others do not panic; what is not understood stays as it is. Not done: two attributes
/// with the same key are made one only where that key is edited.
pub fn rewrite(signal: Signal, bytes: &Bytes, editor: &mut impl Editor) -> Bytes {
    rewrite_within(signal, bytes, editor, &mut Unlimited).unwrap_or_else(|NoMemory| bytes.clone())
}

/// As [`rewrite`], with memory that is asked for before it is allocated.
///
/// # Errors
///
/// If the allowance does not grant what the result takes and what it takes to make it.
pub fn rewrite_within(
    signal: Signal,
    bytes: &Bytes,
    editor: &mut impl Editor,
    allowance: &mut dyn Allowance,
) -> Result<Bytes, NoMemory> {
    let mut rewriter = Rewriter { signal, editor, edits: Edits::default(), bench: Bench::default() };
    edit(bytes, &mut rewriter, Plan::within(allowance))
}

struct Rewriter<'e, E> {
    signal: Signal,
    editor: &'e mut E,
    edits: Edits,
    bench: Bench,
}

/// Where messages are changed; kept for its memory.
#[derive(Debug, Default)]
pub(crate) struct Bench {
    work: Workspace,
    /// The message that is being written.
    scratch: Vec<u8>,
}

impl Bench {
    /// Puts a span or a log record into the plan with the edits done, if that makes a difference.
    pub(crate) fn record(&mut self, plan: &mut Plan<'_>, signal: Signal, field: &Field<'_>, edits: &Edits) -> bool {
        let target = match signal {
            Signal::Traces => Target::SPAN,
            Signal::Logs => Target::LOG_RECORD,
            // Its points have what could be changed.
            Signal::Metrics => return false,
        };
        self.message(plan, field.number, field.value, target, edits)
    }

    fn message(&mut self, plan: &mut Plan<'_>, number: u32, content: &[u8], target: Target, edits: &Edits) -> bool {
        if edits.is_empty() || !apply::apply(edits.as_slice(), content, target, &mut self.work, &mut self.scratch) {
            return false;
        }
        plan.open(number);
        plan.new_bytes(&self.scratch);
        plan.close();
        true
    }
}

impl<E: Editor> Walk for Rewriter<'_, E> {
    const RECORDS: bool = E::RECORDS;

    fn resource(&mut self, plan: &mut Plan<'_>, entry: &ResourceEntry<'_>) -> bool {
        let resource = entry.resource();
        if !plan.covers_work_on(resource.as_bytes()) {
            return false;
        }
        self.edits.clear();
        self.editor.resource(resource, &mut self.edits);
        let target = Target::attributes(resource::ATTRIBUTES);
        self.bench.message(plan, resource_entry::RESOURCE, resource.as_bytes(), target, &self.edits)
    }

    fn scope(&mut self, plan: &mut Plan<'_>, entry: &ScopeEntry<'_>) -> bool {
        let scope = entry.scope();
        if !plan.covers_work_on(scope.as_bytes()) {
            return false;
        }
        self.edits.clear();
        self.editor.scope(scope, &mut self.edits);
        let target = Target::attributes(scope::ATTRIBUTES);
        self.bench.message(plan, scope_entry::SCOPE, scope.as_bytes(), target, &self.edits)
    }

    fn record(&mut self, plan: &mut Plan<'_>, place: &Place<'_>, field: &Field<'_>) -> bool {
        let record = RecordRef::new(self.signal, place.resource, place.scope, field.value);
        if self.signal == Signal::Metrics {
            return self.metric(plan, place, &record, field);
        }
        if !plan.covers_work_on(field.value) {
            return false;
        }
        self.edits.clear();
        self.editor.record(&record, &mut self.edits);
        self.bench.record(plan, self.signal, field, &self.edits)
    }
}

impl<E: Editor> Rewriter<'_, E> {
    fn metric(&mut self, plan: &mut Plan<'_>, place: &Place<'_>, record: &RecordRef<'_>, field: &Field<'_>) -> bool {
        replace(plan, field, |plan| {
            let mut changed = false;
            let mut fields = Fields::new(field.value);
            for inner in fields.by_ref() {
                changed |=
                    is_child(3, &inner) && self.data(plan, place, record, &inner) || copy(plan, place.source, &inner);
            }
            plan.run(place.source, fields.rest());
            changed
        })
    }

    fn data(&mut self, plan: &mut Plan<'_>, place: &Place<'_>, record: &RecordRef<'_>, data: &Field<'_>) -> bool {
        replace(plan, data, |plan| {
            let mut changed = false;
            let mut fields = Fields::new(data.value);
            for inner in fields.by_ref() {
                changed |= is_child(4, &inner) && self.point(plan, record, data.number, &inner)
                    || copy(plan, place.source, &inner);
                if plan.is_exhausted() {
                    break;
                }
            }
            plan.run(place.source, fields.rest());
            changed
        })
    }

    fn point(&mut self, plan: &mut Plan<'_>, metric: &RecordRef<'_>, data: u32, field: &Field<'_>) -> bool {
        let Some(point) = MetricKind::of(data).map(|kind| Point::new(kind, field.value)) else { return false };
        let attributes = match point {
            Point::Number(_) => number_point::ATTRIBUTES,
            Point::Histogram(_) => histogram_point::ATTRIBUTES,
            Point::ExponentialHistogram(_) => exponential_point::ATTRIBUTES,
            Point::Summary(_) => summary_point::ATTRIBUTES,
        };
        if !plan.covers_work_on(field.value) {
            return false;
        }
        self.edits.clear();
        self.editor.point(metric, &point, &mut self.edits);
        self.bench.message(plan, field.number, field.value, Target::attributes(attributes), &self.edits)
    }
}
