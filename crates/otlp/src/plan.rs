//! A plan of bytes to write: runs of a source, new bytes, and messages around them.
//!
//! Lengths stand before contents in protobuf, so whoever filters or cuts first plans and then writes: every size is known
//! by then, the output is allocated once and exactly, and neighbouring runs are copied as one.

use std::ops::Range;

use bytes::Bytes;

use crate::wire::{len_field_size, put_header};

/// Messages that are open at once: a resource, a scope, a record.
const LEVELS: usize = 4;
/// New bytes are seldom few.
const NEW: usize = 512;

/// What to write, in order. It is reused for many outputs: [`Plan::clear`] keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct Plan {
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

impl Plan {
    /// A plan with room for so many parts.
    pub(crate) fn with_room(parts: usize) -> Self {
        Self { parts: Vec::with_capacity(parts), open: Vec::with_capacity(LEVELS), ..Self::default() }
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
            _ => self.parts.push(Part::Run { start, end }),
        }
        self.grow(end - start);
    }

    /// Adds ranges of the source.
    pub(crate) fn extend(&mut self, ranges: &[Range<usize>]) {
        for range in ranges {
            self.range(range.start, range.end);
        }
    }

    /// Adds what `write` appends to the vector.
    pub(crate) fn new_bytes(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.new.is_empty() {
            self.new.reserve(NEW);
        }
        let start = self.new.len();
        write(&mut self.new);
        let end = self.new.len();
        if end > start {
            self.parts.push(Part::New { start, end });
            self.grow(end - start);
        }
    }

    /// Begins a message field. It ends with [`Plan::close`], or never was with [`Plan::abandon`].
    pub(crate) fn open(&mut self, number: u32) {
        self.open.push((self.parts.len(), 0));
        self.parts.push(Part::Open { number, len: 0 });
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
    pub(crate) fn write(&self, source: &Bytes) -> Bytes {
        match *self.parts.as_slice() {
            [] => Bytes::new(),
            [Part::Run { start, end }] if end <= source.len() => source.slice(start..end),
            _ => Bytes::from(self.write_parts(source)),
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
