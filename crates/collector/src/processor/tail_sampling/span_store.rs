//! Memory of waiting spans: segments that are written from front to back and freed as a whole.
//!
//! A record is a few words and the bytes as they arrived. The spans of a trace form a chain: each names the one
//! before it, so that a trace only keeps the position of its last span. A resource and a scope are stored once
//! for an arrival, in the segment of its spans.
//!
//! *Guaranteed*: a segment is freed, with its charge, when no waiting trace has a span in it. No part of it is
//! freed earlier, and no arrival is held. Sealed segments never change and can be read without the shard's
//! lock. *Assumed*: the caller has reserved the memory.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
};

use bytes::{BufMut, Bytes, BytesMut};
use kubewake_runtime::lock::Mutex;

use crate::core::{Charge, TailSamplerStats};

/// Size of an allocation: large enough for a thousand spans; small enough that a shard's last one does not
/// matter.
const SEGMENT_BYTES: usize = 256 << 10;

/// The words in front of a span: segment and offset of the one before it, offset of its scope, length.
pub(super) const SPAN_HEADER_BYTES: usize = 16;
/// The words in front of a scope: offset of its resource, length.
pub(super) const SCOPE_HEADER_BYTES: usize = 8;
/// The word in front of a resource: length.
pub(super) const RESOURCE_HEADER_BYTES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanPosition {
    pub(super) segment: u32,
    offset: u32,
}

impl SpanPosition {
    pub(super) const NONE: Self = Self { segment: u32::MAX, offset: u32::MAX };
}

/// The segments of a shard.
pub(super) struct SpanStore {
    stats: Arc<TailSamplerStats>,
    open: OpenSegment,
    /// The number of the first of `sealed`.
    first: u32,
    sealed: VecDeque<Option<SealedSegment>>,
    /// Limit of the bytes that the current arrival will store.
    needed: usize,
    /// Bytes of the arrival that are stored.
    written: usize,
}

struct OpenSegment {
    bytes: BytesMut,
    /// Waiting traces with a span in the segment.
    trace_count: u32,
    allocation: Arc<AllocationCharge>,
}

impl OpenSegment {
    fn new(stats: &Arc<TailSamplerStats>) -> Self {
        Self { bytes: BytesMut::new(), trace_count: 0, allocation: AllocationCharge::new(stats) }
    }
}

struct SealedSegment {
    bytes: Bytes,
    trace_count: u32,
    /// Keeps the allocation charged.
    _lot: Arc<AllocationCharge>,
}

/// The charge for one allocation, which may be divided into several segments.
struct AllocationCharge {
    held: Mutex<HeldCharges>,
    stats: Arc<TailSamplerStats>,
}

#[derive(Default)]
struct HeldCharges {
    charges: Vec<Charge>,
    bytes: u64,
}

impl AllocationCharge {
    fn new(stats: &Arc<TailSamplerStats>) -> Arc<Self> {
        Arc::new(Self { held: Mutex::default(), stats: stats.clone() })
    }

    fn add(&self, charge: Charge, bytes: u64) {
        let mut held = self.held.lock();
        self.stats.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        held.bytes += bytes;
        let rest = match held.charges.last_mut() {
            Some(last) => last.absorb(charge).err(),
            None => Some(charge),
        };
        held.charges.extend(rest);
    }
}

impl Drop for AllocationCharge {
    fn drop(&mut self) {
        let held = self.held.get_mut();
        self.stats.waiting_bytes.fetch_sub(held.bytes, Ordering::Relaxed);
    }
}

impl SpanStore {
    /// Creates a store that counts its memory in `stats`.
    pub(super) fn new(stats: Arc<TailSamplerStats>) -> Self {
        Self { open: OpenSegment::new(&stats), stats, first: 0, sealed: VecDeque::new(), needed: 0, written: 0 }
    }

    /// Begins an arrival, which will store at most so many bytes, all in one segment.
    pub(super) fn begin_arrival(&mut self, bytes: usize) {
        self.needed = bytes;
        self.written = 0;
    }

    /// Begins the arrival again after its stored spans were released: its bytes will be in one segment again.
    pub(super) fn restart_arrival(&mut self, bytes: usize) {
        self.needed = bytes;
    }

    /// Ends the arrival, which `charge` covers. The charge is reduced to the stored bytes and `more`.
    pub(super) fn end_arrival(&mut self, mut charge: Charge, more: usize) {
        if self.written > 0 {
            let bytes = (self.written + more) as u64;
            charge.shrink_to(bytes);
            self.open.allocation.add(charge, bytes);
        }
    }

    /// The open segment, with room for so many bytes. If the arrival needs more than is left, nothing of it is
    /// stored.
    fn buffer_for(&mut self, bytes: usize) -> &mut BytesMut {
        let needed = std::mem::take(&mut self.needed).max(bytes);
        if self.open.bytes.capacity() - self.open.bytes.len() < needed {
            self.seal();
            self.open.bytes = BytesMut::with_capacity(needed.max(SEGMENT_BYTES));
            self.open.allocation = AllocationCharge::new(&self.stats);
        }
        self.written += bytes;
        &mut self.open.bytes
    }

    /// Stores a resource; returns its position.
    pub(super) fn push_resource(&mut self, fields: &[u8]) -> u32 {
        let out = self.buffer_for(RESOURCE_HEADER_BYTES + fields.len());
        let at = out.len() as u32;
        out.put_u32_le(fields.len() as u32);
        out.extend_from_slice(fields);
        at
    }

    /// Stores a scope; returns its position.
    pub(super) fn push_scope(&mut self, resource: u32, fields: &[u8]) -> u32 {
        let out = self.buffer_for(SCOPE_HEADER_BYTES + fields.len());
        let at = out.len() as u32;
        out.put_u32_le(resource);
        out.put_u32_le(fields.len() as u32);
        out.extend_from_slice(fields);
        at
    }

    /// Stores a span behind the one at `before`; returns its position.
    pub(super) fn push_span(&mut self, before: SpanPosition, scope: u32, span: &[u8]) -> SpanPosition {
        let out = self.buffer_for(SPAN_HEADER_BYTES + span.len());
        let offset = out.len() as u32;
        out.put_u32_le(before.segment);
        out.put_u32_le(before.offset);
        out.put_u32_le(scope);
        out.put_u32_le(span.len() as u32);
        out.extend_from_slice(span);
        SpanPosition { segment: self.open_number(), offset }
    }

    /// The number of the open segment.
    pub(super) fn open_number(&self) -> u32 {
        self.first.wrapping_add(self.sealed.len() as u32)
    }

    /// Counts one more waiting trace with a span in the segment.
    pub(super) fn hold(&mut self, segment: u32) {
        if let Some(live) = self.trace_count(segment) {
            *live += 1;
        }
    }

    pub(super) fn release(&mut self, segment: u32) {
        let Some(live) = self.trace_count(segment) else { return };
        *live = live.saturating_sub(1);
        if *live > 0 {
            return;
        }
        if segment == self.open_number() {
            self.seal();
        } else if let Some(place) = self.sealed.get_mut(segment.wrapping_sub(self.first) as usize) {
            *place = None;
        }
        self.trim();
    }

    fn trace_count(&mut self, segment: u32) -> Option<&mut u32> {
        if segment == self.open_number() {
            return Some(&mut self.open.trace_count);
        }
        let segment = self.sealed.get_mut(segment.wrapping_sub(self.first) as usize)?;
        segment.as_mut().map(|segment| &mut segment.trace_count)
    }

    /// Seals the open segment; the rest of its allocation is used for the next one.
    pub(super) fn seal(&mut self) {
        if self.open.bytes.is_empty() {
            return;
        }
        let bytes = self.open.bytes.split().freeze();
        let live = std::mem::take(&mut self.open.trace_count);
        let segment = SealedSegment { bytes, trace_count: live, _lot: self.open.allocation.clone() };
        self.sealed.push_back((live > 0).then_some(segment));
    }

    fn trim(&mut self) {
        while let Some(None) = self.sealed.front() {
            self.sealed.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Releases the rest of the last allocation if no trace waits.
    pub(super) fn release_idle_memory(&mut self) {
        if self.open.trace_count == 0 {
            self.seal();
            self.trim();
            self.open = OpenSegment::new(&self.stats);
        }
    }

    /// The segments that can be read now; with the open one, which is sealed for it, if `open_too`.
    pub(super) fn snapshot(&mut self, open_too: bool) -> SegmentSnapshot {
        if open_too {
            self.seal();
        }
        let bytes = |segment: &Option<SealedSegment>| segment.as_ref().map(|segment| segment.bytes.clone());
        SegmentSnapshot { first: self.first, segments: self.sealed.iter().map(bytes).collect() }
    }

    /// The segments of a chain, down to `since`, the last one first; `None` if one of them is gone. Stops at
    /// `limit` spans, as if gone.
    pub(super) fn segments(&self, tail: SpanPosition, since: u32, limit: usize) -> Option<Vec<u32>> {
        let mut segments = Vec::new();
        let mut place = tail;
        for _ in 0..limit {
            if place == SpanPosition::NONE || place.segment.wrapping_sub(self.first) < since.wrapping_sub(self.first) {
                return Some(segments);
            }
            if segments.last() != Some(&place.segment) {
                segments.push(place.segment);
            }
            place = read_before(self.bytes(place.segment)?, place.offset)?;
        }
        None
    }

    /// The span at a position; `None` if its segment is gone.
    pub(super) fn read(&self, place: SpanPosition) -> Option<StoredSpan<'_>> {
        read(self.bytes(place.segment)?, place)
    }

    fn bytes(&self, segment: u32) -> Option<&[u8]> {
        if segment == self.open_number() {
            return Some(&self.open.bytes);
        }
        let segment = self.sealed.get(segment.wrapping_sub(self.first) as usize)?;
        segment.as_ref().map(|segment| &*segment.bytes)
    }
}

/// Sealed segments, to be read without a lock.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentSnapshot {
    first: u32,
    segments: Vec<Option<Bytes>>,
}

/// A stored span with its resource and scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredSpan<'a> {
    /// The span before it in its trace.
    pub(super) before: SpanPosition,
    /// The fields of its resource entry, without scopes.
    pub(super) resource: &'a [u8],
    /// The fields of its scope entry, without spans.
    pub(super) scope: &'a [u8],
    /// The content of the span.
    pub(super) span: &'a [u8],
}

impl SegmentSnapshot {
    /// The span at a position; `None` if its segment is gone.
    pub(super) fn read(&self, place: SpanPosition) -> Option<StoredSpan<'_>> {
        read(self.segments.get(place.segment.wrapping_sub(self.first) as usize)?.as_deref()?, place)
    }
}

fn read(page: &[u8], place: SpanPosition) -> Option<StoredSpan<'_>> {
    let at = place.offset as usize;
    let scope_at = word(page, at + 8)? as usize;
    let span = block(page, at + 12)?;
    let resource_at = word(page, scope_at)? as usize;
    let scope = block(page, scope_at + 4)?;
    Some(StoredSpan { before: read_before(page, place.offset)?, resource: block(page, resource_at)?, scope, span })
}

fn read_before(page: &[u8], offset: u32) -> Option<SpanPosition> {
    let at = offset as usize;
    Some(SpanPosition { segment: word(page, at)?, offset: word(page, at + 4)? })
}

fn word(page: &[u8], at: usize) -> Option<u32> {
    page.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// Reads a length and so many bytes.
fn block(page: &[u8], at: usize) -> Option<&[u8]> {
    let length = word(page, at)? as usize;
    page.get(at + 4..at + 4 + length)
}

#[cfg(test)]
mod tests;
