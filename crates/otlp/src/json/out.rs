//! Protobuf that grows in memory which is asked for.

use super::put::Scalar;
use super::timestamp;
use crate::memory::Meter;
use crate::wire::{close, open, put_bytes, put_header, put_tag};

/// What is written, into memory that is asked for. When there is none it takes nothing more, and the decoder ends.
pub(super) struct Out<'m> {
    pub(super) bytes: Vec<u8>,
    meter: Meter<'m>,
}

/// Bytes of a tag with a length or a number behind it, at most.
const HEADER_BYTES: usize = 20;

impl<'m> Out<'m> {
    pub(super) fn new(meter: Meter<'m>) -> Self {
        Self { bytes: Vec::new(), meter }
    }

    /// Whether there was no memory for all of it.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.meter.is_exhausted()
    }

    /// Whether there is room for so many bytes.
    #[inline]
    fn has_room(&mut self, more: usize) -> bool {
        self.bytes.capacity() - self.bytes.len() >= more || self.make_room(more)
    }

    #[cold]
    pub(super) fn make_room(&mut self, more: usize) -> bool {
        !self.meter.is_exhausted() && self.meter.make_room(&mut self.bytes, more)
    }

    pub(super) fn put_bytes(&mut self, number: u32, content: &[u8]) {
        if self.has_room(content.len() + HEADER_BYTES) {
            put_bytes(&mut self.bytes, number, content);
        }
    }

    pub(super) fn put_tag(&mut self, number: u32, wire_type: u8) {
        if self.has_room(HEADER_BYTES) {
            put_tag(&mut self.bytes, number, wire_type);
        }
    }

    pub(super) fn put_header(&mut self, number: u32, length: usize) {
        if self.has_room(length + HEADER_BYTES) {
            put_header(&mut self.bytes, number, length);
        }
    }

    pub(super) fn put_scalar(&mut self, scalar: Scalar) {
        if self.has_room(HEADER_BYTES) {
            scalar.put(&mut self.bytes);
        }
    }

    /// A point in time, which is two numbers.
    pub(super) fn put_time(&mut self, time: timestamp::Timestamp) {
        if self.has_room(2 * HEADER_BYTES) {
            timestamp::put(time, &mut self.bytes);
        }
    }

    pub(super) fn push(&mut self, byte: u8) {
        if self.has_room(1) {
            self.bytes.push(byte);
        }
    }

    pub(super) fn open(&mut self, number: u32) -> usize {
        if self.has_room(HEADER_BYTES) { open(&mut self.bytes, number) } else { self.bytes.len() }
    }

    pub(super) fn close(&mut self, start: usize) {
        if self.has_room(HEADER_BYTES) {
            close(&mut self.bytes, start);
        }
    }
}
