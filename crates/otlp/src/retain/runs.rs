//! Spans by their trace alone: neighbours of one trace are a run, which is decided on at once and kept as one piece.

use super::{Chooser, Output, Records};
use crate::level::is_child;
use crate::numbers::{scope_entry, span};
use crate::view::{ResourceEntry, Span, View};
use crate::wire::{Field, LEN, read_varint, tag};

/// The id of a trace.
pub type TraceId = [u8; 16];

/// What becomes of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They go.
    Drop,
    /// They stay as they are.
    Keep,
    /// They stay, and each gets this as its trace state. Where there is one already this one stands behind it, and counts.
    Mark(Vec<u8>),
}

pub(super) struct Runs<D> {
    decide: D,
}

impl<D: FnMut(&TraceId, usize) -> Fate> Runs<D> {
    pub(super) fn new(decide: D) -> Self {
        Self { decide }
    }

    #[inline(always)]
    fn run<'s>(&mut self, out: &mut Output<'s, '_>, run: &Run<'s>, records: &mut Records) {
        records.before += run.spans;
        match (self.decide)(run.trace_id, run.spans) {
            Fate::Drop => return out.drop(run.spans),
            Fate::Keep => out.keep(run.raw),
            Fate::Mark(state) => {
                run.mark(out, &state);
                records.edited = true;
            }
        }
        out.kept(run.spans);
        records.after += run.spans;
    }

    /// A run that nobody writes, out of the way of those that everybody does.
    #[cold]
    #[inline(never)]
    fn alone<'s>(&mut self, out: &mut Output<'s, '_>, run: &Run<'s>, records: &mut Records) {
        self.run(out, run, records);
    }

    /// Anything else: a span whose tag takes more bytes than one, one of which it is not known to what trace it belongs, what is no span.
    fn other<'s>(&mut self, out: &mut Output<'s, '_>, rest: &mut &'s [u8], records: &mut Records) {
        let Ok(field) = Field::read(rest) else { return out.keep(std::mem::take(rest)) };
        if is_child(2, &field) {
            if let Some(trace_id) = Span::new(field.value).leading_trace_id() {
                return self.alone(out, &Run { trace_id, spans: 1, raw: field.raw }, records);
            }
            records.before += 1;
            records.after += 1;
            out.kept(1);
        }
        out.keep(field.raw);
    }
}

impl<D: FnMut(&TraceId, usize) -> Fate> Chooser for Runs<D> {
    fn scope<'s>(&mut self, out: &mut Output<'s, '_>, _: &ResourceEntry<'_>, content: &'s [u8]) -> Records {
        let mut records = Records::default();
        let mut rest = content;
        while !rest.is_empty() && !out.plan.is_exhausted() {
            match Run::take(&mut rest) {
                Some(run) => self.run(out, &run, &mut records),
                None => self.other(out, &mut rest, &mut records),
            }
        }
        records
    }
}

/// Spans of one trace, side by side.
struct Run<'s> {
    trace_id: &'s TraceId,
    spans: usize,
    /// Their fields.
    raw: &'s [u8],
}

impl<'s> Run<'s> {
    /// Takes the spans that stand first.
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

    fn mark(&self, out: &mut Output<'s, '_>, state: &[u8]) {
        let mut rest = self.raw;
        while !out.plan.is_exhausted()
            && let Ok(field) = Field::read(&mut rest)
        {
            out.plan.open(field.number);
            out.keep(field.value);
            out.plan.new_field(span::TRACE_STATE, state);
            out.plan.close();
        }
        out.changed = true;
    }
}

/// The trace of the span that stands first, and what is behind the span.
#[inline(always)]
fn first_span(rest: &[u8]) -> Option<(&TraceId, &[u8])> {
    const SPAN: u8 = tag(scope_entry::RECORDS, LEN);
    let [SPAN, sized @ ..] = rest else { return None };
    let mut content = sized;
    let size = usize::try_from(read_varint(&mut content).ok()?).ok()?;
    let (content, behind) = content.split_at_checked(size)?;
    Some((Span::new(content).leading_trace_id()?, behind))
}
