//! Output buffer of the translation, whose memory is reserved before it grows.

use crate::wire::{close, open, put_bytes, put_fixed64, put_header, put_uint};

/// Limit of a tag with a length or a number.
const MAX_HEADER_BYTES: usize = 20;
/// The smallest reservation.
const MIN_RESERVE_BYTES: usize = 1 << 10;

/// A growing output. After a refusal it takes nothing more.
pub(super) struct TranslationOutput<'r> {
    bytes: Vec<u8>,
    reserve: &'r mut dyn FnMut(usize) -> bool,
    refused: bool,
}

impl<'r> TranslationOutput<'r> {
    pub(super) fn new(reserve: &'r mut dyn FnMut(usize) -> bool) -> Self {
        Self { bytes: Vec::new(), reserve, refused: false }
    }

    /// The output; incomplete if memory was refused.
    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Reserves room. The capacity at least doubles, so that no byte is copied often.
    fn make_room(&mut self, more: usize) -> bool {
        let more = more + MAX_HEADER_BYTES;
        if self.refused {
            return false;
        }
        if self.bytes.capacity() - self.bytes.len() >= more {
            return true;
        }
        let grown = more.max(self.bytes.capacity()).max(MIN_RESERVE_BYTES);
        if (self.reserve)(grown) {
            self.bytes.reserve_exact(grown);
        } else {
            self.refused = true;
        }
        !self.refused
    }

    /// Writes a message with the content that `write` writes.
    pub(super) fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        if !self.make_room(0) {
            return;
        }
        let start = open(&mut self.bytes, number);
        write(self);
        if self.make_room(0) {
            close(&mut self.bytes, start);
        }
    }

    /// Writes text, bytes or a whole message, also if it is empty.
    pub(super) fn bytes(&mut self, number: u32, content: &[u8]) {
        if self.make_room(content.len()) {
            put_bytes(&mut self.bytes, number, content);
        }
    }

    /// Writes text in pieces of `length` bytes together, unless it is empty.
    pub(super) fn joined<'a>(&mut self, number: u32, length: usize, pieces: impl Iterator<Item = &'a [u8]>) {
        if length > 0 && self.make_room(length) {
            put_header(&mut self.bytes, number, length);
            pieces.for_each(|piece| self.bytes.extend_from_slice(piece));
        }
    }

    /// Writes text or bytes, unless they are empty.
    pub(super) fn nonempty_bytes(&mut self, number: u32, content: &[u8]) {
        if !content.is_empty() {
            self.bytes(number, content);
        }
    }

    /// Writes a number, also if it is zero.
    pub(super) fn uint(&mut self, number: u32, value: u64) {
        if self.make_room(0) {
            put_uint(&mut self.bytes, number, value);
        }
    }

    /// Writes a number, unless it is zero.
    pub(super) fn nonzero_uint(&mut self, number: u32, value: u64) {
        if value != 0 {
            self.uint(number, value);
        }
    }

    /// Writes a fixed64, unless it is zero.
    pub(super) fn nonzero_fixed64(&mut self, number: u32, value: u64) {
        if value != 0 {
            self.fixed64(number, value);
        }
    }

    pub(super) fn fixed64(&mut self, number: u32, value: u64) {
        if self.make_room(0) {
            put_fixed64(&mut self.bytes, number, value);
        }
    }
}
