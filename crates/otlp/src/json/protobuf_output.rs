//! Output buffer for protobuf, whose memory is reserved before it grows.

use super::timestamp;
use super::wire_scalar::WireScalar;
use crate::memory::MemoryMeter;
use crate::wire::{close, open, put_bytes, put_header, put_tag};

/// A buffer with reserved memory. After a refusal it takes nothing more, and the decoder ends.
pub(super) struct ProtobufOutput<'m> {
    pub(super) bytes: Vec<u8>,
    meter: MemoryMeter<'m>,
}

/// Limit of a tag with a length or a number.
const MAX_HEADER_BYTES: usize = 20;

impl<'m> ProtobufOutput<'m> {
    pub(super) fn new(meter: MemoryMeter<'m>) -> Self {
        Self { bytes: Vec::new(), meter }
    }

    /// Whether a reservation was refused.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.meter.is_exhausted()
    }

    /// Makes room for so many bytes; false if there is no memory.
    #[inline]
    fn has_room(&mut self, more: usize) -> bool {
        self.bytes.capacity() - self.bytes.len() >= more || self.make_room(more)
    }

    #[cold]
    pub(super) fn make_room(&mut self, more: usize) -> bool {
        !self.meter.is_exhausted() && self.meter.make_room(&mut self.bytes, more)
    }

    pub(super) fn put_bytes(&mut self, number: u32, content: &[u8]) {
        if self.has_room(content.len() + MAX_HEADER_BYTES) {
            put_bytes(&mut self.bytes, number, content);
        }
    }

    pub(super) fn put_tag(&mut self, number: u32, wire_type: u8) {
        if self.has_room(MAX_HEADER_BYTES) {
            put_tag(&mut self.bytes, number, wire_type);
        }
    }

    pub(super) fn put_header(&mut self, number: u32, length: usize) {
        if self.has_room(length + MAX_HEADER_BYTES) {
            put_header(&mut self.bytes, number, length);
        }
    }

    pub(super) fn put_scalar(&mut self, scalar: WireScalar) {
        if self.has_room(MAX_HEADER_BYTES) {
            scalar.put(&mut self.bytes);
        }
    }

    pub(super) fn put_time(&mut self, time: timestamp::ProtoTimestamp) {
        if self.has_room(2 * MAX_HEADER_BYTES) {
            timestamp::put(time, &mut self.bytes);
        }
    }

    pub(super) fn push(&mut self, byte: u8) {
        if self.has_room(1) {
            self.bytes.push(byte);
        }
    }

    pub(super) fn open(&mut self, number: u32) -> usize {
        if self.has_room(MAX_HEADER_BYTES) { open(&mut self.bytes, number) } else { self.bytes.len() }
    }

    pub(super) fn close(&mut self, start: usize) {
        if self.has_room(MAX_HEADER_BYTES) {
            close(&mut self.bytes, start);
        }
    }
}
