//! A record of which parts have been read, and its end has not.

use crate::record::LinePosition;

/// The joined parts of a line of one stream.
#[derive(Debug, Default)]
pub(super) struct OpenRecord {
    /// Where the first part begins; `None` if there is no part.
    pub(super) start: Option<LinePosition>,
    /// When its last part was read, in nanoseconds since 1970.
    pub(super) since: u64,
    /// Time of the first part.
    pub(super) time: u64,
    /// Tags of the first part.
    pub(super) tags: Vec<u8>,
    /// The JSON value of the field `attrs` of the first part.
    pub(super) docker_attributes: Vec<u8>,
    /// The parts, joined as bytes, so that a character that was cut between them is whole again.
    pub(super) text: Vec<u8>,
    /// Whether the record has reached its size, and what follows is dropped.
    pub(super) is_cut: bool,
}

/// How long a part waits for the next one, as in the Collector. Runtimes write all parts of a line at once, except for
/// output that has not ended.
const PART_WAIT_NANOSECONDS: u64 = 5_000_000_000;
/// Memory that an idle record keeps for the next one. An agent may have a thousand logs, with several records each.
const KEPT_CAPACITY: usize = 1024;

impl OpenRecord {
    /// Begins a record unless it is open.
    pub(super) fn begin(&mut self, start: LinePosition, time: u64, tags: &[u8]) {
        if self.start.is_none() {
            self.start = Some(start);
            self.time = time;
            self.tags.clear();
            self.tags.extend_from_slice(tags);
            self.docker_attributes.clear();
        }
    }

    /// When it is handed on if no further part follows; `None` if there is no part.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.start.map(|_| self.since.saturating_add(PART_WAIT_NANOSECONDS))
    }

    /// Removes the content.
    pub(super) fn clear(&mut self) {
        self.start = None;
        self.is_cut = false;
        self.text.clear();
        self.text.shrink_to(KEPT_CAPACITY);
        self.tags.clear();
        self.docker_attributes.clear();
        self.docker_attributes.shrink_to(KEPT_CAPACITY);
    }

    /// Bytes of memory that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.text.capacity() + self.tags.capacity() + self.docker_attributes.capacity()
    }
}
