//! A plan of the bytes to write: ranges of a source, new bytes, and messages around them.
//!
//! Lengths precede contents in protobuf, so operations plan before they write: all sizes are known then, the
//! output is allocated once and exactly, and consecutive ranges are copied as one.

use std::ops::Range;

use bytes::Bytes;

use crate::memory::{Allowance, MemoryMeter, NoMemory};
use crate::wire::{len_field_size, put_header, tag_size, varint_size};

/// Limit of open messages: a resource, a scope, a record.
const MAX_OPEN_MESSAGES: usize = 4;
/// Minimum growth of the list of new bytes.
const MIN_NEW_BYTES_GROWTH: usize = 512;

/// The parts to write, in order. It is reused for many outputs: [`WritePlan::clear`] keeps its memory.
///
/// It reserves memory before it becomes long. After a refusal it takes no more parts, and [`WritePlan::write`]
/// fails; until then it can be used like any other.
#[derive(Debug)]
pub(crate) struct WritePlan<'m> {
    meter: MemoryMeter<'m>,
    parts: Vec<PlanPart>,
    /// New bytes that [`PlanPart::New`] points into.
    new: Vec<u8>,
    /// The open messages: the index of their part, and the size of their content so far.
    open: Vec<(usize, usize)>,
    /// The size of the parts outside of open messages.
    size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanPart {
    /// This range of the source.
    Run { start: usize, end: usize },
    /// This range of the new bytes.
    New { start: usize, end: usize },
    /// The tag and length of a message field, whose content is the parts that follow.
    Open { number: u32, len: usize },
}

impl WritePlan<'_> {
    /// Creates a plan without a memory limit.
    pub(crate) fn unlimited() -> Self {
        Self::new(MemoryMeter::unlimited())
    }
}

impl<'m> WritePlan<'m> {
    /// Creates a plan that reserves its memory.
    pub(crate) fn within(allowance: &'m mut dyn Allowance) -> Self {
        Self::new(MemoryMeter::new(allowance))
    }

    pub(crate) fn new(meter: MemoryMeter<'m>) -> Self {
        Self { meter, parts: Vec::new(), new: Vec::new(), open: Vec::new(), size: 0 }
    }

    /// Adds capacity for so many parts, which are few.
    #[must_use]
    pub(crate) fn with_room(self, parts: usize) -> Self {
        Self { parts: Vec::with_capacity(parts), open: Vec::with_capacity(MAX_OPEN_MESSAGES), ..self }
    }

    /// The meter, for other lists that are built beside the plan.
    pub(crate) fn meter(&mut self) -> &mut MemoryMeter<'m> {
        &mut self.meter
    }

    /// Whether a reservation was refused.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.meter.is_exhausted()
    }

    /// Reserves memory to read and change a message.
    #[inline]
    pub(crate) fn reserve_work(&mut self, message: &[u8]) -> bool {
        self.meter.reserve_work(message)
    }

    pub(crate) fn clear(&mut self) {
        self.parts.clear();
        self.new.clear();
        self.open.clear();
        self.size = 0;
    }

    /// Adds a part of the source. `source` is the same for one plan, and `slice` is borrowed from it.
    pub(crate) fn run(&mut self, source: &[u8], slice: &[u8]) {
        let start = slice.as_ptr().addr().saturating_sub(source.as_ptr().addr());
        self.range(start, start + slice.len());
    }

    /// Adds a range of the source.
    pub(crate) fn range(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        match self.parts.last_mut() {
            Some(PlanPart::Run { end: last, .. }) if *last == start => *last = end,
            _ => self.meter.push(&mut self.parts, PlanPart::Run { start, end }),
        }
        self.grow(end - start);
    }

    /// Adds ranges of the source.
    pub(crate) fn extend(&mut self, ranges: &[Range<usize>]) {
        for range in ranges {
            self.range(range.start, range.end);
        }
    }

    /// Adds new bytes.
    pub(crate) fn new_bytes(&mut self, bytes: &[u8]) {
        self.put_new(bytes.len(), |new| new.extend_from_slice(bytes));
    }

    pub(crate) fn new_field(&mut self, number: u32, content: &[u8]) {
        let size = tag_size(number) + varint_size(content.len() as u64) + content.len();
        self.put_new(size, |new| {
            put_header(new, number, content.len());
            new.extend_from_slice(content);
        });
    }

    /// Adds the bytes that `write` appends to the vector, `size` in all.
    fn put_new(&mut self, size: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.new.len();
        if size == 0
            || self.new.capacity() - start < size
                && !self.meter.make_room(&mut self.new, size.max(MIN_NEW_BYTES_GROWTH))
        {
            return;
        }
        write(&mut self.new);
        self.meter.push(&mut self.parts, PlanPart::New { start, end: self.new.len() });
        self.grow(size);
    }

    /// Begins a message field. It ends with [`WritePlan::close`], or is undone with [`WritePlan::abandon`].
    pub(crate) fn open(&mut self, number: u32) {
        self.open.push((self.parts.len(), 0));
        self.meter.push(&mut self.parts, PlanPart::Open { number, len: 0 });
    }

    /// Ends the innermost open message.
    pub(crate) fn close(&mut self) {
        let Some((index, size)) = self.open.pop() else { return };
        if let Some(PlanPart::Open { number, len }) = self.parts.get_mut(index) {
            *len = size;
            let field = len_field_size(*number, size);
            self.grow(field);
        }
    }

    /// Removes the innermost open message, with its content.
    pub(crate) fn abandon(&mut self) {
        if let Some((index, _)) = self.open.pop() {
            self.parts.truncate(index);
        }
    }

    /// The size of the output if `more` bytes were added here and every open message were closed.
    pub(crate) fn size_with(&self, more: usize) -> usize {
        let nested = self.open.iter().rev().fold(more, |inner, &(index, size)| match self.parts.get(index) {
            Some(PlanPart::Open { number, .. }) => len_field_size(*number, size + inner),
            _ => inner,
        });
        self.size + nested
    }

    /// Writes the plan. A single range is a slice of the source, without a copy.
    pub(crate) fn write(&mut self, source: &Bytes) -> Result<Bytes, NoMemory> {
        self.meter.check()?;
        match *self.parts.as_slice() {
            [] => Ok(Bytes::new()),
            [PlanPart::Run { start, end }] if end <= source.len() => Ok(source.slice(start..end)),
            _ if !self.meter.reserve(self.size) => Err(NoMemory),
            _ => Ok(Bytes::from(self.write_parts(source))),
        }
    }

    fn write_parts(&self, source: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size);
        for part in &self.parts {
            match *part {
                PlanPart::Run { start, end } => out.extend_from_slice(source.get(start..end).unwrap_or_default()),
                PlanPart::New { start, end } => out.extend_from_slice(self.new.get(start..end).unwrap_or_default()),
                PlanPart::Open { number, len } => put_header(&mut out, number, len),
            }
        }
        debug_assert_eq!(out.len(), self.size, "a plan knows its size");
        out
    }

    fn grow(&mut self, by: usize) {
        match self.open.last_mut() {
            Some((_, size)) => *size += by,
            None => self.size += by,
        }
    }
}
