//! A plan of bytes to write: runs of a source, new bytes, and messages around them.
//!
//! Lengths stand before contents in protobuf, so whoever filters or cuts first plans and then writes: every size is known
//! by then, the output is allocated once and exactly, and neighbouring runs are copied as one.

use std::ops::Range;

use bytes::Bytes;

use crate::memory::{Allowance, Meter, NoMemory};
use crate::wire::{len_field_size, put_header, tag_size, varint_size};

/// Messages that are open at once: a resource, a scope, a record.
const LEVELS: usize = 4;
/// New bytes are seldom few.
const NEW: usize = 512;

/// What to write, in order. It is reused for many outputs: [`Plan::clear`] keeps its memory.
///
/// It asks for memory before it becomes long. When there is none it takes no more, and [`Plan::write`] says so; until then it
/// can be used like any other.
#[derive(Debug)]
pub(crate) struct Plan<'m> {
    meter: Meter<'m>,
    parts: Vec<Part>,
    /// New bytes that [`Part::New`] points into.
    new: Vec<u8>,
    /// The messages that are open: the index of their part, and the size of their content so far.
    open: Vec<(usize, usize)>,
    /// The size of what is in no message.
    size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// This range of the source.
    Run { start: usize, end: usize },
    /// This range of the new bytes.
    New { start: usize, end: usize },
    /// The tag and length of a message field, whose content are the parts that follow.
    Open { number: u32, len: usize },
}

impl Plan<'_> {
    /// A plan that may take any memory.
    pub(crate) fn unlimited() -> Self {
        Self::new(Meter::unlimited())
    }
}

impl<'m> Plan<'m> {
    /// A plan that asks for its memory.
    pub(crate) fn within(allowance: &'m mut dyn Allowance) -> Self {
        Self::new(Meter::new(allowance))
    }

    pub(crate) fn new(meter: Meter<'m>) -> Self {
        Self { meter, parts: Vec::new(), new: Vec::new(), open: Vec::new(), size: 0 }
    }

    /// The same plan with room for so many parts, which are few.
    #[must_use]
    pub(crate) fn with_room(self, parts: usize) -> Self {
        Self { parts: Vec::with_capacity(parts), open: Vec::with_capacity(LEVELS), ..self }
    }

    /// For other lists that are made beside the plan.
    pub(crate) fn meter(&mut self) -> &mut Meter<'m> {
        &mut self.meter
    }

    /// Whether there was no memory for all of it.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.meter.is_exhausted()
    }

    /// Asks for what it takes to read and change a message.
    #[inline]
    pub(crate) fn covers_work_on(&mut self, message: &[u8]) -> bool {
        self.meter.covers_work_on(message)
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
            Some(Part::Run { end: last, .. }) if *last == start => *last = end,
            _ => self.meter.push(&mut self.parts, Part::Run { start, end }),
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

    /// Adds a new field.
    pub(crate) fn new_field(&mut self, number: u32, content: &[u8]) {
        let size = tag_size(number) + varint_size(content.len() as u64) + content.len();
        self.put_new(size, |new| {
            put_header(new, number, content.len());
            new.extend_from_slice(content);
        });
    }

    /// Adds what `write` appends to the vector, which has `size` bytes.
    fn put_new(&mut self, size: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.new.len();
        if size == 0 || self.new.capacity() - start < size && !self.meter.make_room(&mut self.new, size.max(NEW)) {
            return;
        }
        write(&mut self.new);
        self.meter.push(&mut self.parts, Part::New { start, end: self.new.len() });
        self.grow(size);
    }

    /// Begins a message field. It ends with [`Plan::close`], or never was with [`Plan::abandon`].
    pub(crate) fn open(&mut self, number: u32) {
        self.open.push((self.parts.len(), 0));
        self.meter.push(&mut self.parts, Part::Open { number, len: 0 });
    }

    /// Ends the message that was opened last.
    pub(crate) fn close(&mut self) {
        let Some((index, size)) = self.open.pop() else { return };
        if let Some(Part::Open { number, len }) = self.parts.get_mut(index) {
            *len = size;
            let field = len_field_size(*number, size);
            self.grow(field);
        }
    }

    /// Forgets the message that was opened last, with all that is in it.
    pub(crate) fn abandon(&mut self) {
        if let Some((index, _)) = self.open.pop() {
            self.parts.truncate(index);
        }
    }

    /// The size of the output if `more` bytes were added here and every open message were closed.
    pub(crate) fn size_with(&self, more: usize) -> usize {
        let nested = self.open.iter().rev().fold(more, |inner, &(index, size)| match self.parts.get(index) {
            Some(Part::Open { number, .. }) => len_field_size(*number, size + inner),
            _ => inner,
        });
        self.size + nested
    }

    /// Writes the plan. One run alone is a slice of the source, without a copy.
    pub(crate) fn write(&mut self, source: &Bytes) -> Result<Bytes, NoMemory> {
        self.meter.check()?;
        match *self.parts.as_slice() {
            [] => Ok(Bytes::new()),
            [Part::Run { start, end }] if end <= source.len() => Ok(source.slice(start..end)),
            _ if !self.meter.reserve(self.size) => Err(NoMemory),
            _ => Ok(Bytes::from(self.write_parts(source))),
        }
    }

    fn write_parts(&self, source: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size);
        for part in &self.parts {
            match *part {
                Part::Run { start, end } => out.extend_from_slice(source.get(start..end).unwrap_or_default()),
                Part::New { start, end } => out.extend_from_slice(self.new.get(start..end).unwrap_or_default()),
                Part::Open { number, len } => put_header(&mut out, number, len),
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
