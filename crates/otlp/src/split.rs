//! Splits a request into several, each within a limit.

#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::ops::Range;

use bytes::Bytes;

use crate::Signal;
use crate::memory::{Allowance, MemoryMeter};
use crate::nesting::{RECORD_LEVEL, count_items, is_child, leaf};
use crate::wire::{WireField, WireFields};
use crate::write_plan::WritePlan;

/// The size limit of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitLimit {
    /// So many spans, log records or data points.
    Items(NonZeroUsize),
    /// So many encoded bytes. A single larger item, with the headers around it, is a piece of its own.
    Bytes(NonZeroUsize),
}

/// A part of a request, as a request of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPiece {
    /// The encoded request.
    pub bytes: Bytes,
    /// Number of items in the piece.
    pub items: usize,
}

/// Splits a request into pieces within a limit, in the order of its items.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: the pieces together have every item once. Each
/// piece is filled as far as the limit allows. A resource, scope or metric is cut only where it does not fit,
/// and then everything in it beside items (the resource, the scope, the schema url, the name, unknown fields)
/// is repeated in each of its parts. Uncut messages are copied unchanged, and a piece of whole resource entries
/// shares the memory of the input. Entries without items stay. A metric with more than one data message is
/// never cut.
///
/// Repeated headers cost bytes. By bytes, an entry whose headers take more than seven eighths of the limit is
/// not cut, so that the pieces together are never more than about eight times the request; by items there is no
/// such bound: the caller sets the limit, keeps the pieces and counts their bytes.
///
/// Assumed: the bytes were scanned. Other bytes do not panic; parts that are not understood stay together.
pub fn split(signal: Signal, bytes: &Bytes, limit: SplitLimit) -> SplitPieces<'static> {
    SplitPieces::new(signal, bytes, limit, WritePlan::unlimited())
}

/// As [`split`], but reserves memory before it allocates. After a refusal the pieces end early, and
/// [`SplitPieces::is_exhausted`] is true.
pub fn split_within<'m>(
    signal: Signal,
    bytes: &Bytes,
    limit: SplitLimit,
    allowance: &'m mut dyn Allowance,
) -> SplitPieces<'m> {
    SplitPieces::new(signal, bytes, limit, WritePlan::within(allowance))
}

/// The pieces of a request; see [`split`].
#[derive(Debug)]
pub struct SplitPieces<'m> {
    signal: Signal,
    bytes: Bytes,
    limit: SplitLimit,
    /// The messages that are being cut, from the request inwards; the index is the level.
    frames: Vec<SplitFrame>,
    plan: WritePlan<'m>,
    /// Items in the piece so far.
    items: usize,
    /// Whether the piece has any content.
    taken: bool,
}

/// The part of a byte limit that repeated headers may take: seven eighths. Without it, a sender of a large
/// resource with many tiny spans would have the resource written once for each of them.
const MAX_HEADER_FRACTION: (usize, usize) = (7, 8);

/// A message that is being cut.
#[derive(Debug)]
struct SplitFrame {
    /// The number of its field in its parent.
    number: u32,
    /// The offset of the fields that are in no piece yet.
    at: usize,
    end: usize,
    /// The fields that every part repeats.
    headers: Vec<Range<usize>>,
    header_size: usize,
    /// Number of children in the piece.
    kept: usize,
}

enum SplitStep {
    More,
    PieceFull,
    End,
}

impl Iterator for SplitPieces<'_> {
    type Item = SplitPiece;

    fn next(&mut self) -> Option<SplitPiece> {
        self.begin();
        // A second handle, so that fields borrowed from it outlive changes to `self`.
        let bytes = self.bytes.clone();
        while !self.plan.is_exhausted() && matches!(self.step(&bytes), SplitStep::More) {}
        for level in (1..self.frames.len()).rev() {
            self.end_part(level);
        }
        let written = self.taken.then(|| self.plan.write(&self.bytes).ok()).flatten()?;
        Some(SplitPiece { bytes: written, items: self.items })
    }
}

impl<'m> SplitPieces<'m> {
    fn new(signal: Signal, bytes: &Bytes, limit: SplitLimit, plan: WritePlan<'m>) -> Self {
        let request = SplitFrame { number: 0, at: 0, end: bytes.len(), headers: Vec::new(), header_size: 0, kept: 0 };
        Self { signal, bytes: bytes.clone(), limit, frames: vec![request], plan, items: 0, taken: false }
    }

    /// Whether the pieces ended because memory was refused.
    pub fn is_exhausted(&self) -> bool {
        self.plan.is_exhausted()
    }

    /// Sets the limit of the remaining pieces.
    pub fn set_limit(&mut self, limit: SplitLimit) {
        self.limit = limit;
    }

    /// Begins a piece: messages that are still open continue, with their headers repeated.
    fn begin(&mut self) {
        self.plan.clear();
        self.items = 0;
        self.taken = false;
        for frame in self.frames.iter_mut().skip(1) {
            frame.kept = 0;
            frame.begin_part(&mut self.plan);
        }
    }

    /// Ends the part of the message at `level` that is in this piece. A part without children would be headers
    /// alone.
    fn end_part(&mut self, level: usize) {
        if self.frames.get(level).is_some_and(|frame| frame.kept > 0) {
            self.plan.close();
            self.keep_child(level - 1);
        } else {
            self.plan.abandon();
        }
    }

    fn keep_child(&mut self, level: usize) {
        self.taken = true;
        if let Some(parent) = self.frames.get_mut(level) {
            parent.kept += 1;
        }
    }

    /// Visits the next field of the innermost message.
    fn step(&mut self, bytes: &[u8]) -> SplitStep {
        let level = self.frames.len().saturating_sub(1);
        let Some(frame) = self.frames.last_mut() else { return SplitStep::End };
        let mut fields = WireFields::new(bytes.get(frame.at..frame.end).unwrap_or_default());
        let Some(field) = fields.next() else {
            return self.leave(level);
        };
        if is_child(level, &field) {
            return self.child(level, &field);
        }
        if level == 0 {
            let size = self.plan.size_with(field.raw.len());
            if self.taken && matches!(self.limit, SplitLimit::Bytes(limit) if size > limit.get()) {
                return SplitStep::PieceFull;
            }
            self.plan.run(bytes, field.raw);
            self.taken = true;
        }
        frame.at += field.raw.len();
        SplitStep::More
    }

    /// Ends the innermost message, which has no more fields.
    fn leave(&mut self, level: usize) -> SplitStep {
        if level > 0 {
            self.end_part(level);
            self.frames.pop();
            return SplitStep::More;
        }
        // Malformed bytes at the end, if any, are passed on.
        if let Some(request) = self.frames.last_mut().filter(|request| request.at < request.end) {
            self.plan.range(request.at, request.end);
            request.at = request.end;
            self.taken = true;
        }
        SplitStep::End
    }

    /// Takes a child whole if it fits; cuts it if that helps; else takes it all the same, as it would fit
    /// nowhere.
    fn child(&mut self, level: usize, field: &WireField<'_>) -> SplitStep {
        if let Some(items) = self.items_if_fits(level + 1, field) {
            self.take(level, field, items);
            return SplitStep::More;
        }
        let has_room = match self.limit {
            SplitLimit::Items(limit) => self.items < limit.get(),
            SplitLimit::Bytes(_) => true,
        };
        if has_room && self.cut(level, field) {
            return SplitStep::More;
        }
        if self.taken {
            return SplitStep::PieceFull;
        }
        self.take(level, field, count_items(self.signal, level + 1, field.value, usize::MAX));
        SplitStep::More
    }

    /// The items of a child, if it fits into the piece.
    fn items_if_fits(&self, level: usize, field: &WireField<'_>) -> Option<usize> {
        match self.limit {
            SplitLimit::Items(limit) => {
                let room = limit.get().saturating_sub(self.items);
                let items = count_items(self.signal, level, field.value, room);
                (items <= room).then_some(items)
            }
            SplitLimit::Bytes(limit) => (self.plan.size_with(field.raw.len()) <= limit.get())
                .then(|| count_items(self.signal, level, field.value, usize::MAX)),
        }
    }

    fn take(&mut self, level: usize, field: &WireField<'_>, items: usize) {
        self.plan.run(&self.bytes, field.raw);
        self.items += items;
        self.keep_child(level);
        if let Some(frame) = self.frames.last_mut() {
            frame.at += field.raw.len();
        }
    }

    /// Descends into a child, if it can be cut.
    fn cut(&mut self, level: usize, field: &WireField<'_>) -> bool {
        let Some(frame) = SplitFrame::from_field(self.signal, level + 1, &self.bytes, field, self.plan.meter()) else {
            return false;
        };
        if let SplitLimit::Bytes(limit) = self.limit {
            let headers = self.frames.iter().map(|frame| frame.header_size).sum::<usize>() + frame.header_size;
            if headers > limit.get().saturating_mul(MAX_HEADER_FRACTION.0) / MAX_HEADER_FRACTION.1 {
                return false;
            }
        }
        if let Some(parent) = self.frames.last_mut() {
            parent.at += field.raw.len();
        }
        frame.begin_part(&mut self.plan);
        self.frames.push(frame);
        true
    }
}

impl SplitFrame {
    /// The message in a field, if it can be cut: it has children, and all its fields are well formed.
    fn from_field(
        signal: Signal,
        level: usize,
        source: &[u8],
        field: &WireField<'_>,
        meter: &mut MemoryMeter<'_>,
    ) -> Option<SplitFrame> {
        if level >= leaf(signal) {
            return None;
        }
        let start = field.value.as_ptr().addr() - source.as_ptr().addr();
        let mut fields = WireFields::new(field.value);
        let mut headers = Vec::<Range<usize>>::new();
        let mut children = 0usize;
        let mut at = start;
        for inner in fields.by_ref() {
            let end = at + inner.raw.len();
            if is_child(level, &inner) {
                children += 1;
            } else if let Some(last) = headers.last_mut().filter(|last| last.end == at) {
                last.end = end;
            } else {
                meter.push(&mut headers, at..end);
            }
            at = end;
        }
        let header_size = headers.iter().map(Range::len).sum();
        let clear = fields.rest().is_empty() && children > 0 && (level != RECORD_LEVEL || children == 1);
        clear.then_some(SplitFrame { number: field.number, at: start, end: at, headers, header_size, kept: 0 })
    }

    fn begin_part(&self, plan: &mut WritePlan<'_>) {
        plan.open(self.number);
        plan.extend(&self.headers);
    }
}
