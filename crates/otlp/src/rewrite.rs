//! Edits attributes, trace states and bodies.

mod apply;
mod attribute_list;
mod edits;
mod value;

#[cfg(test)]
mod tests;

pub use attribute_list::{AttributeChange, AttributeDisposition, AttributeList, SetCondition};
pub use edits::{EditList, MessageEdit, UniformEditor};
pub use value::Value;

use bytes::Bytes;

use crate::Signal;
use crate::edit_visitor::{EditVisitor, RecordContext, copy, edit, replace};
use crate::field_numbers::{
    exponential_point, histogram_point, number_point, resource, resource_entry, scope, scope_entry, summary_point,
};
use crate::memory::{Allowance, NoMemory, UnlimitedAllowance};
use crate::nesting::is_child;
use crate::view::{DataPoint, MessageView, MetricKind, RecordRef, Resource, ResourceEntry, Scope, ScopeEntry};
use crate::wire::{WireField, WireFields};
use crate::write_plan::WritePlan;
use apply::{EditBuffers, EditTarget};

/// Decides on edits. Each method is called once for each message of its type, in order, and adds its edits to
/// `edits`; it sees everything as it was before any edit.
pub trait RecordEditor {
    /// Whether records and points are visited. An editor without them costs no walk over them.
    const VISITS_RECORDS: bool = true;

    /// Visits a resource. An entry without a resource is visited with an empty one, which is added if an
    /// attribute is set.
    fn resource(&mut self, resource: Resource<'_>, edits: &mut EditList) {
        let _ = (resource, edits);
    }

    /// Visits a scope. An entry without a scope is visited as for resources.
    fn scope(&mut self, scope: Scope<'_>, edits: &mut EditList) {
        let _ = (scope, edits);
    }

    /// Visits a span or a log record.
    fn record(&mut self, record: &RecordRef<'_>, edits: &mut EditList) {
        let _ = (record, edits);
    }

    /// Visits a data point of a metric.
    fn point(&mut self, metric: &RecordRef<'_>, point: &DataPoint<'_>, edits: &mut EditList) {
        let _ = (metric, point, edits);
    }
}

/// Applies the edits of an editor.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: everything that is not edited is copied unchanged,
/// unknown fields included, and if nothing changes the same bytes are returned. Changed attributes keep their
/// position, new ones come last. A metric's points are edited in each of its data messages, though only the
/// last message counts.
///
/// Assumed: the bytes were scanned. Other bytes do not panic; parts that are not understood stay unchanged. Not
/// done: duplicate attributes are only merged where their key is edited.
pub fn rewrite(signal: Signal, bytes: &Bytes, editor: &mut impl RecordEditor) -> Bytes {
    rewrite_within(signal, bytes, editor, &mut UnlimitedAllowance).unwrap_or_else(|NoMemory| bytes.clone())
}

/// As [`rewrite`], but reserves memory before it allocates.
///
/// # Errors
///
/// If the allowance refuses the memory for the result and the work.
pub fn rewrite_within(
    signal: Signal,
    bytes: &Bytes,
    editor: &mut impl RecordEditor,
    allowance: &mut dyn Allowance,
) -> Result<Bytes, NoMemory> {
    let mut rewriter =
        RequestRewriter { signal, editor, edits: EditList::default(), bench: MessageRewriter::default() };
    edit(bytes, &mut rewriter, WritePlan::within(allowance))
}

struct RequestRewriter<'e, E> {
    signal: Signal,
    editor: &'e mut E,
    edits: EditList,
    bench: MessageRewriter,
}

/// Buffers for edited messages; kept for their memory.
#[derive(Debug, Default)]
pub(crate) struct MessageRewriter {
    work: EditBuffers,
    /// The message that is being written.
    scratch: Vec<u8>,
}

impl MessageRewriter {
    /// Puts a span or a log record with the edits into the plan, if they change it.
    pub(crate) fn record(
        &mut self,
        plan: &mut WritePlan<'_>,
        signal: Signal,
        field: &WireField<'_>,
        edits: &EditList,
    ) -> bool {
        let target = match signal {
            Signal::Traces => EditTarget::SPAN,
            Signal::Logs => EditTarget::LOG_RECORD,
            // Edits of a metric apply to its points.
            Signal::Metrics => return false,
        };
        self.message(plan, field.number, field.value, target, edits)
    }

    fn message(
        &mut self,
        plan: &mut WritePlan<'_>,
        number: u32,
        content: &[u8],
        target: EditTarget,
        edits: &EditList,
    ) -> bool {
        if edits.is_empty() || !apply::apply(edits.as_slice(), content, target, &mut self.work, &mut self.scratch) {
            return false;
        }
        plan.open(number);
        plan.new_bytes(&self.scratch);
        plan.close();
        true
    }
}

impl<E: RecordEditor> EditVisitor for RequestRewriter<'_, E> {
    const VISITS_RECORDS: bool = E::VISITS_RECORDS;

    fn resource(&mut self, plan: &mut WritePlan<'_>, entry: &ResourceEntry<'_>) -> bool {
        let resource = entry.resource();
        if !plan.reserve_work(resource.as_bytes()) {
            return false;
        }
        self.edits.clear();
        self.editor.resource(resource, &mut self.edits);
        let target = EditTarget::attributes(resource::ATTRIBUTES);
        self.bench.message(plan, resource_entry::RESOURCE, resource.as_bytes(), target, &self.edits)
    }

    fn scope(&mut self, plan: &mut WritePlan<'_>, entry: &ScopeEntry<'_>) -> bool {
        let scope = entry.scope();
        if !plan.reserve_work(scope.as_bytes()) {
            return false;
        }
        self.edits.clear();
        self.editor.scope(scope, &mut self.edits);
        let target = EditTarget::attributes(scope::ATTRIBUTES);
        self.bench.message(plan, scope_entry::SCOPE, scope.as_bytes(), target, &self.edits)
    }

    fn record(&mut self, plan: &mut WritePlan<'_>, place: &RecordContext<'_>, field: &WireField<'_>) -> bool {
        let record = RecordRef::new(self.signal, place.resource, place.scope, field.value);
        if self.signal == Signal::Metrics {
            return self.metric(plan, place, &record, field);
        }
        if !plan.reserve_work(field.value) {
            return false;
        }
        self.edits.clear();
        self.editor.record(&record, &mut self.edits);
        self.bench.record(plan, self.signal, field, &self.edits)
    }
}

impl<E: RecordEditor> RequestRewriter<'_, E> {
    fn metric(
        &mut self,
        plan: &mut WritePlan<'_>,
        place: &RecordContext<'_>,
        record: &RecordRef<'_>,
        field: &WireField<'_>,
    ) -> bool {
        replace(plan, field, |plan| {
            let mut changed = false;
            let mut fields = WireFields::new(field.value);
            for inner in fields.by_ref() {
                changed |=
                    is_child(3, &inner) && self.data(plan, place, record, &inner) || copy(plan, place.source, &inner);
            }
            plan.run(place.source, fields.rest());
            changed
        })
    }

    fn data(
        &mut self,
        plan: &mut WritePlan<'_>,
        place: &RecordContext<'_>,
        record: &RecordRef<'_>,
        data: &WireField<'_>,
    ) -> bool {
        replace(plan, data, |plan| {
            let mut changed = false;
            let mut fields = WireFields::new(data.value);
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

    fn point(&mut self, plan: &mut WritePlan<'_>, metric: &RecordRef<'_>, data: u32, field: &WireField<'_>) -> bool {
        let Some(point) = MetricKind::from_field_number(data).map(|kind| DataPoint::new(kind, field.value)) else {
            return false;
        };
        let attributes = match point {
            DataPoint::Number(_) => number_point::ATTRIBUTES,
            DataPoint::Histogram(_) => histogram_point::ATTRIBUTES,
            DataPoint::ExponentialHistogram(_) => exponential_point::ATTRIBUTES,
            DataPoint::Summary(_) => summary_point::ATTRIBUTES,
        };
        if !plan.reserve_work(field.value) {
            return false;
        }
        self.edits.clear();
        self.editor.point(metric, &point, &mut self.edits);
        self.bench.message(plan, field.number, field.value, EditTarget::attributes(attributes), &self.edits)
    }
}
