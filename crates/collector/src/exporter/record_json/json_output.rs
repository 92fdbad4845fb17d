//! A text whose memory is asked for before it is allocated.

use kubewake_otlp::Allowance;

/// What is allocated without asking: a buffer of this size is as small as that of a connection.
const FREE_BYTES: usize = 16 << 10;

/// Documents, one after another.
pub(crate) struct JsonOutput<'m> {
    bytes: Vec<u8>,
    memory: &'m mut dyn Allowance,
    /// The rest of [`FREE_BYTES`].
    free: usize,
    /// Memory for lists that are made while a document is written. It is used again for the next document.
    work: usize,
    work_in_use: usize,
    is_exhausted: bool,
}

impl<'m> JsonOutput<'m> {
    pub(crate) fn new(memory: &'m mut dyn Allowance) -> Self {
        Self { bytes: Vec::new(), memory, free: FREE_BYTES, work: 0, work_in_use: 0, is_exhausted: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether a reservation was refused, so that what was written since is incomplete.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Returns to an earlier length, with everything behind it forgotten.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.is_exhausted = false;
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) {
        if self.make_room(text.len()) {
            self.bytes.extend_from_slice(text);
        }
    }

    #[inline]
    pub(crate) fn push_byte(&mut self, byte: u8) {
        self.push(&[byte]);
    }

    /// Formats a short value.
    pub(crate) fn push_display(&mut self, value: impl std::fmt::Display) {
        // Longer than any number.
        const MAX_DISPLAY_BYTES: usize = 400;
        if self.make_room(MAX_DISPLAY_BYTES) {
            // A write to memory does not fail.
            let _ = std::io::Write::write_fmt(&mut self.bytes, format_args!("{value}"));
        }
    }

    /// Removes the last byte if it is this one.
    pub(crate) fn pop_if(&mut self, byte: u8) {
        if self.bytes.last() == Some(&byte) {
            self.bytes.pop();
        }
    }

    /// Moves what was written since `start` to a buffer, in place of its content.
    pub(crate) fn move_tail(&mut self, start: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        let tail = self.bytes.len().saturating_sub(start);
        if buffer.capacity() < tail && !self.reserve(tail) {
            return;
        }
        buffer.extend_from_slice(self.bytes.get(start..).unwrap_or_default());
        self.bytes.truncate(start);
    }

    /// Adds an item to a list that stays, unless there is no memory for a longer one.
    pub(crate) fn push_item<T>(&mut self, list: &mut Vec<T>, item: T) {
        /// The standard library's initial capacity for items of this size.
        const FIRST_ITEMS: usize = 4;
        if list.len() == list.capacity() {
            let capacity = list.capacity().saturating_mul(2).max(FIRST_ITEMS);
            if !self.reserve(capacity.saturating_mul(size_of::<T>())) {
                return;
            }
            list.reserve_exact(capacity - list.len());
        }
        list.push(item);
    }

    /// Reserves memory for a list that lives until [`JsonOutput::end_work`] with the same number.
    #[must_use]
    pub(crate) fn begin_work(&mut self, bytes: usize) -> bool {
        self.work_in_use = self.work_in_use.saturating_add(bytes);
        let missing = self.work_in_use.saturating_sub(self.work);
        if missing > 0 {
            if !self.reserve(missing) {
                self.work_in_use -= bytes;
                return false;
            }
            self.work += missing;
        }
        true
    }

    pub(crate) fn end_work(&mut self, bytes: usize) {
        self.work_in_use = self.work_in_use.saturating_sub(bytes);
    }

    #[inline]
    fn make_room(&mut self, more: usize) -> bool {
        !self.is_exhausted && (self.bytes.capacity() - self.bytes.len() >= more || self.grow(more))
    }

    /// Grows to twice the size. The old allocation stays reserved, as both exist while bytes move.
    #[cold]
    fn grow(&mut self, more: usize) -> bool {
        const MIN_CAPACITY: usize = 1 << 10;
        let needed = self.bytes.len().saturating_add(more);
        let capacity = self.bytes.capacity().saturating_mul(2).max(needed).max(MIN_CAPACITY);
        let granted = self.reserve(capacity);
        if granted {
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        granted
    }

    fn reserve(&mut self, bytes: usize) -> bool {
        if let Some(left) = self.free.checked_sub(bytes) {
            self.free = left;
            return true;
        }
        let granted = !self.is_exhausted && self.memory.reserve(bytes);
        self.is_exhausted |= !granted;
        granted
    }
}
