//! One request into several, each within a limit.

#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::ops::Range;

use bytes::Bytes;

use crate::Signal;
use crate::level::{RECORD, count_items, is_child, leaf};
use crate::memory::{Allowance, Meter};
use crate::plan::Plan;
use crate::wire::{Field, Fields};

/// How large a piece may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many spans, log records or data points.
    Items(NonZeroUsize),
    /// So many encoded bytes. A single item that is larger, with the headers around it, is a piece of its own.
    Bytes(NonZeroUsize),
}

/// A request that was cut from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The encoded request.
    pub bytes: Bytes,
    /// How many items are in it.
    pub items: usize,
}

/// Cuts a request into pieces within a limit, in the order of its items.
///
/// Guaranteed for bytes that [`scan`](crate::scan) accepted: the pieces together hold every item once. Each piece is
/// filled as far as the limit allows. A resource, scope or metric is cut only where it does not fit, and then everything
/// in it that is no item (the resource, the scope, the schema url, the name, unknown fields) is repeated in each of its
/// parts. What was not cut is copied as it stands, and a piece of whole resource entries shares the memory of the input.
/// Entries without items stay. A metric with more than one data message is never cut.
///
/// Repeated headers cost bytes. By bytes, an entry whose headers take more than seven eighths of the limit is not cut, so
/// that the pieces together are never more than about eight times the request; by items there is no such bound: it is
/// for whoever sets the limit and keeps the pieces to count their bytes.
///
/// Assumed: the bytes were scanned. Others do not panic; what is not understood stays together.
pub fn split(signal: Signal, bytes: &Bytes, limit: Limit) -> Split<'static> {
    Split::new(signal, bytes, limit, Plan::unlimited())
}

/// As [`split`], with memory that is asked for before it is allocated. When there is none the pieces end early, and
/// [`Split::is_exhausted`] says so.
pub fn split_within<'m>(signal: Signal, bytes: &Bytes, limit: Limit, allowance: &'m mut dyn Allowance) -> Split<'m> {
    Split::new(signal, bytes, limit, Plan::within(allowance))
}

/// The pieces of a request; see [`split`].
#[derive(Debug)]
pub struct Split<'m> {
    signal: Signal,
    bytes: Bytes,
    limit: Limit,
    /// The messages that are being cut, from the request inwards; the index is the level.
    frames: Vec<Frame>,
    plan: Plan<'m>,
    /// Items in the piece so far.
    items: usize,
    /// Whether anything is in the piece.
    taken: bool,
}

/// The part of a byte limit that repeated headers may take: seven eighths. Without it, a sender of a large resource with
/// many tiny spans would have the resource written once for each of them.
const HEADER_SHARE: (usize, usize) = (7, 8);

/// A message that is being cut.
#[derive(Debug)]
struct Frame {
    /// The field that it is in its parent.
    number: u32,
    /// Where the fields begin that no piece has yet.
    at: usize,
    end: usize,
    /// The fields that every part repeats.
    headers: Vec<Range<usize>>,
    header_size: usize,
    /// How many children are in the piece.
    kept: usize,
}

enum Step {
    More,
    PieceFull,
    End,
}

impl Iterator for Split<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.begin();
        // A second handle, so that fields borrowed from it outlive changes to `self`.
        let bytes = self.bytes.clone();
        while !self.plan.is_exhausted() && matches!(self.step(&bytes), Step::More) {}
        for level in (1..self.frames.len()).rev() {
            self.end_part(level);
        }
        let written = self.taken.then(|| self.plan.write(&self.bytes).ok()).flatten()?;
        Some(Piece { bytes: written, items: self.items })
    }
}

impl<'m> Split<'m> {
    fn new(signal: Signal, bytes: &Bytes, limit: Limit, plan: Plan<'m>) -> Self {
        let request = Frame { number: 0, at: 0, end: bytes.len(), headers: Vec::new(), header_size: 0, kept: 0 };
        Self { signal, bytes: bytes.clone(), limit, frames: vec![request], plan, items: 0, taken: false }
    }

    /// Whether the pieces ended for want of memory.
    pub fn is_exhausted(&self) -> bool {
        self.plan.is_exhausted()
    }

    /// Sets the limit of the pieces that are still to come.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// Begins a piece: the messages that the last one left open go on with their headers.
    fn begin(&mut self) {
        self.plan.clear();
        self.items = 0;
        self.taken = false;
        for frame in self.frames.iter_mut().skip(1) {
            frame.kept = 0;
            frame.begin_part(&mut self.plan);
        }
    }

    /// Ends the part of the message at `level` that is in this piece. A part without children would be headers alone.
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

    /// Looks at the next field of the innermost message.
    fn step(&mut self, bytes: &[u8]) -> Step {
        let level = self.frames.len().saturating_sub(1);
        let Some(frame) = self.frames.last_mut() else { return Step::End };
        let mut fields = Fields::new(bytes.get(frame.at..frame.end).unwrap_or_default());
        let Some(field) = fields.next() else {
            return self.leave(level);
        };
        if is_child(level, &field) {
            return self.child(level, &field);
        }
        if level == 0 {
            let size = self.plan.size_with(field.raw.len());
            if self.taken && matches!(self.limit, Limit::Bytes(limit) if size > limit.get()) {
                return Step::PieceFull;
            }
            self.plan.run(bytes, field.raw);
            self.taken = true;
        }
        frame.at += field.raw.len();
        Step::More
    }

    /// The innermost message has no more fields.
    fn leave(&mut self, level: usize) -> Step {
        if level > 0 {
            self.end_part(level);
            self.frames.pop();
            return Step::More;
        }
        // Bytes that are no field, if any: they are not ours to judge here.
        if let Some(request) = self.frames.last_mut().filter(|request| request.at < request.end) {
            self.plan.range(request.at, request.end);
            request.at = request.end;
            self.taken = true;
        }
        Step::End
    }

    /// Takes a child whole if it fits, cuts it if that helps, and takes it all the same if it would fit nowhere.
    fn child(&mut self, level: usize, field: &Field<'_>) -> Step {
        if let Some(items) = self.fitting(level + 1, field) {
            self.take(level, field, items);
            return Step::More;
        }
        let has_room = match self.limit {
            Limit::Items(limit) => self.items < limit.get(),
            Limit::Bytes(_) => true,
        };
        if has_room && self.cut(level, field) {
            return Step::More;
        }
        if self.taken {
            return Step::PieceFull;
        }
        self.take(level, field, count_items(self.signal, level + 1, field.value, usize::MAX));
        Step::More
    }

    /// The items of a child, if it fits into the piece.
    fn fitting(&self, level: usize, field: &Field<'_>) -> Option<usize> {
        match self.limit {
            Limit::Items(limit) => {
                let room = limit.get().saturating_sub(self.items);
                let items = count_items(self.signal, level, field.value, room);
                (items <= room).then_some(items)
            }
            Limit::Bytes(limit) => (self.plan.size_with(field.raw.len()) <= limit.get())
                .then(|| count_items(self.signal, level, field.value, usize::MAX)),
        }
    }

    fn take(&mut self, level: usize, field: &Field<'_>, items: usize) {
        self.plan.run(&self.bytes, field.raw);
        self.items += items;
        self.keep_child(level);
        if let Some(frame) = self.frames.last_mut() {
            frame.at += field.raw.len();
        }
    }

    /// Steps into a child, if it is one that can be cut.
    fn cut(&mut self, level: usize, field: &Field<'_>) -> bool {
        let Some(frame) = Frame::of(self.signal, level + 1, &self.bytes, field, self.plan.meter()) else {
            return false;
        };
        if let Limit::Bytes(limit) = self.limit {
            let headers = self.frames.iter().map(|frame| frame.header_size).sum::<usize>() + frame.header_size;
            if headers > limit.get().saturating_mul(HEADER_SHARE.0) / HEADER_SHARE.1 {
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

impl Frame {
    /// The message in a field, if it can be cut: it has children, and nothing in it is in doubt.
    fn of(signal: Signal, level: usize, source: &[u8], field: &Field<'_>, meter: &mut Meter<'_>) -> Option<Frame> {
        if level >= leaf(signal) {
            return None;
        }
        let start = field.value.as_ptr().addr() - source.as_ptr().addr();
        let mut fields = Fields::new(field.value);
        let (mut headers, mut children, mut at) = (Vec::<Range<usize>>::new(), 0usize, start);
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
        let clear = fields.rest().is_empty() && children > 0 && (level != RECORD || children == 1);
        clear.then_some(Frame { number: field.number, at: start, end: at, headers, header_size, kept: 0 })
    }

    fn begin_part(&self, plan: &mut Plan<'_>) {
        plan.open(self.number);
        plan.extend(&self.headers);
    }
}
