//! What is written, into memory that was asked for.

use crate::wire::{close, open, put_bytes, put_fixed64, put_uint};

/// Bytes of a tag and of a length, or of a number, at most.
const HEADER: usize = 20;
/// The least that is asked for at once.
const LEAST: usize = 1 << 10;

/// A growing output. Once memory was refused it takes nothing more.
pub(super) struct Out<'r> {
    bytes: Vec<u8>,
    reserve: &'r mut dyn FnMut(usize) -> bool,
    refused: bool,
}

impl<'r> Out<'r> {
    pub(super) fn new(reserve: &'r mut dyn FnMut(usize) -> bool) -> Self {
        Self { bytes: Vec::new(), reserve, refused: false }
    }

    /// What was written; of no use if memory was refused.
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Asks for room. It at least doubles, so that no byte is copied often.
    fn room(&mut self, more: usize) -> bool {
        let more = more + HEADER;
        if self.refused {
            return false;
        }
        if self.bytes.capacity() - self.bytes.len() >= more {
            return true;
        }
        let grown = more.max(self.bytes.capacity()).max(LEAST);
        if (self.reserve)(grown) {
            self.bytes.reserve_exact(grown);
        } else {
            self.refused = true;
        }
        !self.refused
    }

    /// A message whose content `write` writes.
    pub(super) fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        if !self.room(0) {
            return;
        }
        let start = open(&mut self.bytes, number);
        write(self);
        if self.room(0) {
            close(&mut self.bytes, start);
        }
    }

    /// Text, bytes or a whole message, also if it is empty.
    pub(super) fn bytes(&mut self, number: u32, content: &[u8]) {
        if self.room(content.len()) {
            put_bytes(&mut self.bytes, number, content);
        }
    }

    /// Text or bytes, unless they are empty.
    pub(super) fn some_bytes(&mut self, number: u32, content: &[u8]) {
        if !content.is_empty() {
            self.bytes(number, content);
        }
    }

    /// A number, also if it is zero.
    pub(super) fn uint(&mut self, number: u32, value: u64) {
        if self.room(0) {
            put_uint(&mut self.bytes, number, value);
        }
    }

    /// A number, unless it is zero.
    pub(super) fn some_uint(&mut self, number: u32, value: u64) {
        if value != 0 {
            self.uint(number, value);
        }
    }

    /// Eight bytes, unless they are zero.
    pub(super) fn some_fixed64(&mut self, number: u32, value: u64) {
        if value != 0 {
            self.fixed64(number, value);
        }
    }

    /// Eight bytes.
    pub(super) fn fixed64(&mut self, number: u32, value: u64) {
        if self.room(0) {
            put_fixed64(&mut self.bytes, number, value);
        }
    }
}
