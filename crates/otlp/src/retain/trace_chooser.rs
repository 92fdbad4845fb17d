//! Decides spans by their trace alone: consecutive spans of one trace are one run.

use super::{RecordChooser, RecordTally, RetainOutput};
use crate::field_numbers::{scope_entry, span};
use crate::nesting::is_child;
use crate::view::{MessageView, ResourceEntry, Span};
use crate::wire::{LEN, WireField, read_varint, tag};

pub type TraceId = [u8; 16];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanDisposition {
    Drop,
    /// The spans stay unchanged.
    Keep,
    /// The spans stay, and each gets this trace state. It is written behind an existing one, so that it counts.
    Mark(Vec<u8>),
}

pub(super) struct TraceChooser<D> {
    decide: D,
}

impl<D: FnMut(&TraceId, usize) -> SpanDisposition> TraceChooser<D> {
    pub(super) fn new(decide: D) -> Self {
        Self { decide }
    }

    #[inline(always)]
    fn run<'s>(&mut self, out: &mut RetainOutput<'s, '_>, run: &TraceRun<'s>, records: &mut RecordTally) {
        records.before += run.spans;
        match (self.decide)(run.trace_id, run.spans) {
            SpanDisposition::Drop => return out.count_dropped(run.spans),
            SpanDisposition::Keep => out.copy_bytes(run.raw),
            SpanDisposition::Mark(state) => {
                run.mark(out, &state);
                records.edited = true;
            }
        }
        out.count_kept(run.spans);
        records.after += run.spans;
    }

    /// A run in unusual encoding, out of line to keep the usual path short.
    #[cold]
    #[inline(never)]
    fn choose_single_span<'s>(
        &mut self,
        out: &mut RetainOutput<'s, '_>,
        run: &TraceRun<'s>,
        records: &mut RecordTally,
    ) {
        self.run(out, run, records);
    }

    /// Handles any other field: a span whose tag takes more than one byte or whose trace is unknown, and fields
    /// that are no span.
    fn choose_other_field<'s>(
        &mut self,
        out: &mut RetainOutput<'s, '_>,
        rest: &mut &'s [u8],
        records: &mut RecordTally,
    ) {
        let Ok(field) = WireField::read(rest) else { return out.copy_bytes(std::mem::take(rest)) };
        if is_child(2, &field) {
            if let Some(trace_id) = Span::new(field.value).leading_trace_id() {
                return self.choose_single_span(out, &TraceRun { trace_id, spans: 1, raw: field.raw }, records);
            }
            records.before += 1;
            records.after += 1;
            out.count_kept(1);
        }
        out.copy_bytes(field.raw);
    }
}

impl<D: FnMut(&TraceId, usize) -> SpanDisposition> RecordChooser for TraceChooser<D> {
    fn scope<'s>(&mut self, out: &mut RetainOutput<'s, '_>, _: &ResourceEntry<'_>, content: &'s [u8]) -> RecordTally {
        let mut records = RecordTally::default();
        let mut rest = content;
        while !rest.is_empty() && !out.plan.is_exhausted() {
            match TraceRun::take(&mut rest) {
                Some(run) => self.run(out, &run, &mut records),
                None => self.choose_other_field(out, &mut rest, &mut records),
            }
        }
        records
    }
}

/// Consecutive spans of one trace.
struct TraceRun<'s> {
    trace_id: &'s TraceId,
    spans: usize,
    raw: &'s [u8],
}

impl<'s> TraceRun<'s> {
    /// Takes the leading spans.
    #[inline(always)]
    fn take(rest: &mut &'s [u8]) -> Option<Self> {
        let start = *rest;
        let (trace_id, mut behind) = first_span(start)?;
        let mut spans = 1;
        while let Some((id, further)) = first_span(behind)
            && id == trace_id
        {
            spans += 1;
            behind = further;
        }
        let raw = start.get(..start.len() - behind.len())?;
        *rest = behind;
        Some(Self { trace_id, spans, raw })
    }

    fn mark(&self, out: &mut RetainOutput<'s, '_>, state: &[u8]) {
        let mut rest = self.raw;
        while !out.plan.is_exhausted()
            && let Ok(field) = WireField::read(&mut rest)
        {
            out.plan.open(field.number);
            out.copy_bytes(field.value);
            out.plan.new_field(span::TRACE_STATE, state);
            out.plan.close();
        }
        out.changed = true;
    }
}

/// The trace of the leading span, and the bytes behind the span.
#[inline(always)]
fn first_span(rest: &[u8]) -> Option<(&TraceId, &[u8])> {
    const SPAN: u8 = tag(scope_entry::RECORDS, LEN);
    let [SPAN, sized @ ..] = rest else { return None };
    let mut content = sized;
    let size = usize::try_from(read_varint(&mut content).ok()?).ok()?;
    let (content, behind) = content.split_at_checked(size)?;
    Some((Span::new(content).leading_trace_id()?, behind))
}
