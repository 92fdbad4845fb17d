//! Where the messages of a batch are, without references to it.

use std::ops::Range;

use kubewake_otlp::{Allowance, NoMemory};

use crate::core::{Batch, WorkMemory};

/// The position of a log record, and of the resource and the scope that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSource {
    record: BytesRange,
    /// Numbers of sources in [`SourceBytes`].
    pub(crate) resource: u32,
    pub(crate) scope: u32,
}

/// The resources and scopes of a batch.
#[derive(Debug, Default)]
pub(crate) struct SourceBytes {
    ranges: Vec<BytesRange>,
    /// The content of messages that were sent in several parts, and so are nowhere in the batch as a whole.
    merged: Vec<Vec<u8>>,
}

/// A range of the bytes of a part.
#[derive(Clone, Copy, Debug)]
struct BytesRange {
    /// The number of the part; of merged messages, counted backwards from the last number.
    part: u32,
    start: u32,
    len: u32,
}

impl LogSource {
    /// A record at this place in the bytes of a part.
    pub(crate) fn new(part: usize, bytes: &[u8], record: &[u8], resource: u32, scope: u32) -> Self {
        let record = BytesRange::within(part, bytes, record).unwrap_or(BytesRange { part: 0, start: 0, len: 0 });
        Self { record, resource, scope }
    }

    pub(crate) fn record<'b>(&self, batch: &'b Batch) -> &'b [u8] {
        self.record.content(batch)
    }
}

impl SourceBytes {
    /// Adds a message of a part; returns its number.
    pub(crate) fn locate(
        &mut self,
        part: usize,
        bytes: &[u8],
        message: &[u8],
        memory: &mut WorkMemory<'_>,
    ) -> Result<u32, NoMemory> {
        let number = small(self.ranges.len());
        let range = match BytesRange::within(part, bytes, message) {
            Some(range) => range,
            None => {
                if !memory.reserve(message.len()) {
                    return Err(NoMemory);
                }
                let range =
                    BytesRange { part: u32::MAX - small(self.merged.len()), start: 0, len: small(message.len()) };
                push(&mut self.merged, message.to_vec(), memory)?;
                range
            }
        };
        push(&mut self.ranges, range, memory)?;
        Ok(number)
    }

    /// The content of a message.
    pub(crate) fn content<'b>(&'b self, number: u32, batch: &'b Batch) -> &'b [u8] {
        let Some(range) = self.ranges.get(number as usize) else { return &[] };
        match self.merged.get((u32::MAX - range.part) as usize) {
            Some(merged) => merged,
            None => range.content(batch),
        }
    }
}

impl BytesRange {
    /// The range of a message that is a slice of `bytes`; `None` if it is none.
    fn within(part: usize, bytes: &[u8], message: &[u8]) -> Option<Self> {
        let place = if message.is_empty() { 0..0 } else { range_within(bytes, message)? };
        let number = |value: usize| u32::try_from(value).ok();
        Some(Self { part: number(part)?, start: number(place.start)?, len: number(place.len())? })
    }

    fn content(self, batch: &Batch) -> &[u8] {
        let start = self.start as usize;
        let part = batch.parts().get(self.part as usize);
        part.and_then(|part| part.bytes.get(start..start + self.len as usize)).unwrap_or_default()
    }
}

fn range_within(whole: &[u8], piece: &[u8]) -> Option<Range<usize>> {
    let start = piece.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(piece.len()).filter(|end| *end <= whole.len())?;
    Some(start..end)
}

/// A number of parts or bytes of a batch, which is far below the limit.
fn small(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Adds an item to a list, whose growth is reserved first.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T, memory: &mut WorkMemory<'_>) -> Result<(), NoMemory> {
    /// The standard library's initial capacity for items of this size.
    const FIRST_ITEMS: usize = 4;
    if list.len() == list.capacity() {
        let items = list.capacity().saturating_mul(2).max(FIRST_ITEMS);
        if !memory.reserve(items.saturating_mul(size_of::<T>())) {
            return Err(NoMemory);
        }
        list.reserve_exact(items - list.len());
    }
    list.push(item);
    Ok(())
}
