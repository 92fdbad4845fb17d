//! Where spans wait: segments of memory that are written from front to back and freed as a whole.
//!
//! A record is a few words and the bytes as they came. The spans of a trace are a chain: each names the one before it, so that
//! a trace holds no more than the place of its last span. A resource and a scope are stored once for an arrival, in the segment of
//! its spans.
//!
//! *Guarantees.* A segment is freed when no trace that waits has a span in it, and with it all that was charged for it; nothing
//! of it is freed earlier, and no arrival is held. What was sealed never changes and can be read without the shard's lock.
//! *Assumes* that whoever writes has reserved the memory.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use bytes::{BufMut, Bytes, BytesMut};

use crate::core::{Charge, TailStats};

/// What is allocated at once: large enough for a thousand spans, and small enough that the last one of a shard matters to nobody.
const SEGMENT: usize = 256 << 10;

/// The words in front of a span: segment and offset of the one before it, offset of its scope, length.
pub(super) const SPAN_WORDS: usize = 16;
/// The words in front of a scope: offset of its resource, length.
pub(super) const SCOPE_WORDS: usize = 8;
/// The word in front of a resource: length.
pub(super) const RESOURCE_WORDS: usize = 4;

/// Where a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u32,
    offset: u32,
}

impl Place {
    /// Before the first span.
    pub(super) const NONE: Self = Self { segment: u32::MAX, offset: u32::MAX };
}

/// The segments of a shard.
pub(super) struct Store {
    stats: Arc<TailStats>,
    open: Open,
    /// The number of the first of `sealed`.
    first: u32,
    sealed: VecDeque<Option<Segment>>,
    /// The most that the arrival which has just begun will store.
    needed: usize,
    /// What was stored of it.
    written: usize,
}

struct Open {
    bytes: BytesMut,
    /// Traces that wait and have a span in it.
    live: u32,
    lot: Arc<Lot>,
}

impl Open {
    fn new(stats: &Arc<TailStats>) -> Self {
        Self { bytes: BytesMut::new(), live: 0, lot: Lot::new(stats) }
    }
}

struct Segment {
    bytes: Bytes,
    live: u32,
    /// Held for what it holds.
    _lot: Arc<Lot>,
}

/// What is charged for one allocation, of which several segments may be cut.
struct Lot {
    held: Mutex<Held>,
    stats: Arc<TailStats>,
}

#[derive(Default)]
struct Held {
    charges: Vec<Charge>,
    bytes: u64,
}

impl Lot {
    fn new(stats: &Arc<TailStats>) -> Arc<Self> {
        Arc::new(Self { held: Mutex::default(), stats: stats.clone() })
    }

    fn add(&self, charge: Charge, bytes: u64) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.stats.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        held.bytes += bytes;
        let rest = match held.charges.last_mut() {
            Some(last) => last.absorb(charge).err(),
            None => Some(charge),
        };
        held.charges.extend(rest);
    }
}

impl Drop for Lot {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.stats.waiting_bytes.fetch_sub(held.bytes, Ordering::Relaxed);
    }
}

impl Store {
    /// One that counts there what it holds.
    pub(super) fn new(stats: Arc<TailStats>) -> Self {
        Self { open: Open::new(&stats), stats, first: 0, sealed: VecDeque::new(), needed: 0, written: 0 }
    }

    /// An arrival begins, of which at most so many bytes will be stored, all in one segment.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.needed = bytes;
        self.written = 0;
    }

    /// What was stored of the arrival has gone already: as much as it needs will be in one segment again.
    pub(super) fn begin_again(&mut self, bytes: usize) {
        self.needed = bytes;
    }

    /// The arrival ends, and `charge` covers it. What it was charged beyond what was stored, and `more`, is given back.
    pub(super) fn end(&mut self, mut charge: Charge, more: usize) {
        if self.written > 0 {
            let bytes = (self.written + more) as u64;
            charge.shrink_to(bytes);
            self.open.lot.add(charge, bytes);
        }
    }

    /// What is written to, with room for so many bytes. Of an arrival that needs more than is left, nothing was stored yet.
    fn out(&mut self, bytes: usize) -> &mut BytesMut {
        let needed = std::mem::take(&mut self.needed).max(bytes);
        if self.open.bytes.capacity() - self.open.bytes.len() < needed {
            self.seal();
            self.open.bytes = BytesMut::with_capacity(needed.max(SEGMENT));
            self.open.lot = Lot::new(&self.stats);
        }
        self.written += bytes;
        &mut self.open.bytes
    }

    /// Stores a resource, and says where.
    pub(super) fn resource(&mut self, fields: &[u8]) -> u32 {
        let out = self.out(RESOURCE_WORDS + fields.len());
        let at = out.len() as u32;
        out.put_u32_le(fields.len() as u32);
        out.extend_from_slice(fields);
        at
    }

    /// Stores a scope, and says where.
    pub(super) fn scope(&mut self, resource: u32, fields: &[u8]) -> u32 {
        let out = self.out(SCOPE_WORDS + fields.len());
        let at = out.len() as u32;
        out.put_u32_le(resource);
        out.put_u32_le(fields.len() as u32);
        out.extend_from_slice(fields);
        at
    }

    /// Stores a span behind the one at `before`, and says where.
    pub(super) fn span(&mut self, before: Place, scope: u32, span: &[u8]) -> Place {
        let out = self.out(SPAN_WORDS + span.len());
        let offset = out.len() as u32;
        out.put_u32_le(before.segment);
        out.put_u32_le(before.offset);
        out.put_u32_le(scope);
        out.put_u32_le(span.len() as u32);
        out.extend_from_slice(span);
        Place { segment: self.open_number(), offset }
    }

    /// The segment that is written to.
    pub(super) fn open_number(&self) -> u32 {
        self.first.wrapping_add(self.sealed.len() as u32)
    }

    /// One more trace that waits has a span in the segment.
    pub(super) fn hold(&mut self, segment: u32) {
        if let Some(live) = self.live(segment) {
            *live += 1;
        }
    }

    /// One less.
    pub(super) fn release(&mut self, segment: u32) {
        let Some(live) = self.live(segment) else { return };
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

    fn live(&mut self, segment: u32) -> Option<&mut u32> {
        if segment == self.open_number() {
            return Some(&mut self.open.live);
        }
        let segment = self.sealed.get_mut(segment.wrapping_sub(self.first) as usize)?;
        segment.as_mut().map(|segment| &mut segment.live)
    }

    /// Ends the open segment; what is left of its allocation is the next one's.
    pub(super) fn seal(&mut self) {
        if self.open.bytes.is_empty() {
            return;
        }
        let (bytes, live) = (self.open.bytes.split().freeze(), std::mem::take(&mut self.open.live));
        let segment = Segment { bytes, live, _lot: self.open.lot.clone() };
        self.sealed.push_back((live > 0).then_some(segment));
    }

    fn trim(&mut self) {
        while let Some(None) = self.sealed.front() {
            self.sealed.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Nothing waits: what is left of the last allocation goes, too.
    pub(super) fn rest(&mut self) {
        if self.open.live == 0 {
            self.seal();
            self.trim();
            self.open = Open::new(&self.stats);
        }
    }

    /// What can be read now. The open segment is sealed for it if `tail` is there.
    pub(super) fn pages(&mut self, open_too: bool) -> Pages {
        if open_too {
            self.seal();
        }
        let bytes = |segment: &Option<Segment>| segment.as_ref().map(|segment| segment.bytes.clone());
        Pages { first: self.first, pages: self.sealed.iter().map(bytes).collect() }
    }

    /// The segments that a chain is in, down to `since`, the last one first; `None` if one of them is gone. Ends at `limit` spans, as if gone.
    pub(super) fn segments(&self, tail: Place, since: u32, limit: usize) -> Option<Vec<u32>> {
        let mut segments = Vec::new();
        let mut place = tail;
        for _ in 0..limit {
            if place == Place::NONE || place.segment.wrapping_sub(self.first) < since.wrapping_sub(self.first) {
                return Some(segments);
            }
            if segments.last() != Some(&place.segment) {
                segments.push(place.segment);
            }
            place = read_before(self.bytes(place.segment)?, place.offset)?;
        }
        None
    }

    /// The span at a place; `None` if its segment is gone.
    pub(super) fn read(&self, place: Place) -> Option<Stored<'_>> {
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
pub(super) struct Pages {
    first: u32,
    pages: Vec<Option<Bytes>>,
}

/// A stored span with what it belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'a> {
    /// The span before it in its trace.
    pub(super) before: Place,
    /// The fields of its resource entry, without scopes.
    pub(super) resource: &'a [u8],
    /// The fields of its scope entry, without spans.
    pub(super) scope: &'a [u8],
    /// The content of the span.
    pub(super) span: &'a [u8],
}

impl Pages {
    /// The span at a place; `None` if its segment is gone.
    pub(super) fn span(&self, place: Place) -> Option<Stored<'_>> {
        read(self.pages.get(place.segment.wrapping_sub(self.first) as usize)?.as_deref()?, place)
    }
}

fn read(page: &[u8], place: Place) -> Option<Stored<'_>> {
    let at = place.offset as usize;
    let (scope_at, span) = (word(page, at + 8)? as usize, block(page, at + 12)?);
    let (resource_at, scope) = (word(page, scope_at)? as usize, block(page, scope_at + 4)?);
    Some(Stored { before: read_before(page, place.offset)?, resource: block(page, resource_at)?, scope, span })
}

fn read_before(page: &[u8], offset: u32) -> Option<Place> {
    let at = offset as usize;
    Some(Place { segment: word(page, at)?, offset: word(page, at + 4)? })
}

fn word(page: &[u8], at: usize) -> Option<u32> {
    page.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// A length and so many bytes.
fn block(page: &[u8], at: usize) -> Option<&[u8]> {
    let length = word(page, at)? as usize;
    page.get(at + 4..at + 4 + length)
}

#[cfg(test)]
mod tests;
