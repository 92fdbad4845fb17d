//! Memory reservations of operations.
//!
//! The memory that an operation needs beside its input depends on the structure of the request, which a
//! stranger controls: a span may take two bytes, and the list of output parts takes 24 for each piece of it.
//! Operations therefore reserve memory from an [`Allowance`] before they allocate, and end with [`NoMemory`]
//! when it refuses.
//!
//! *Guaranteed* for the operations that take an allowance: everything beyond a constant, which is
//! [`FREE_BYTES`] and the work on a message of [`SMALL_MESSAGE_BYTES`], is reserved before it is allocated.
//! *Not done*: nothing is released through an allowance. Its owner releases all of it when the operation has
//! ended.

use crate::wire::WireFields;

pub trait Allowance {
    /// Reserves `bytes` more. If there is no memory, nothing is reserved and the operation ends.
    #[must_use]
    fn reserve(&mut self, bytes: usize) -> bool;
}

/// Grants everything, for requests of trusted origin.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnlimitedAllowance;

impl Allowance for UnlimitedAllowance {
    fn reserve(&mut self, _: usize) -> bool {
        true
    }
}

/// The allowance refused the memory that an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not enough memory for the operation")]
pub struct NoMemory;

/// Bytes of one operation that are not reserved. Requests of usual size stay below it, so that they do not
/// access an account that all threads share; and a thread works on one request at a time.
pub(crate) const FREE_BYTES: usize = 128 << 10;

/// Messages up to this size are processed without a reservation: even if they are all attributes of two bytes,
/// a thread needs about a megabyte for one of them.
const SMALL_MESSAGE_BYTES: usize = 4 << 10;

/// Working memory for each byte of a message: it is copied while attributes change, once more when it is
/// written, and text may become up to six times as long (as JSON).
const WORK_BYTES_PER_BYTE: usize = 12;

/// Working memory for each field of a message: positions of attributes, owned values and keys, hashes.
const WORK_BYTES_PER_FIELD: usize = 512;

/// Depth to which nested messages are searched for fields. Deeper content counts as if it were fields alone.
const MAX_COUNTED_DEPTH: usize = 8;

/// Reserves memory from an allowance, and remembers a refusal.
pub(crate) struct MemoryMeter<'m> {
    allowance: Option<&'m mut dyn Allowance>,
    is_exhausted: bool,
    /// The rest of [`FREE_BYTES`].
    free_bytes: usize,
    /// Memory reserved for work on one message. It is reused for the messages that follow.
    work_bytes: usize,
}

impl std::fmt::Debug for MemoryMeter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("is_exhausted", &self.is_exhausted).finish_non_exhaustive()
    }
}

impl<'m> MemoryMeter<'m> {
    pub(crate) fn new(allowance: &'m mut dyn Allowance) -> Self {
        Self { allowance: Some(allowance), is_exhausted: false, free_bytes: FREE_BYTES, work_bytes: 0 }
    }

    /// Creates a meter that grants everything.
    pub(crate) fn unlimited() -> Self {
        Self { allowance: None, is_exhausted: false, free_bytes: FREE_BYTES, work_bytes: 0 }
    }

    /// Whether a reservation was refused, so that the result is incomplete.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    pub(crate) fn check(&self) -> Result<(), NoMemory> {
        if self.is_exhausted { Err(NoMemory) } else { Ok(()) }
    }

    /// Reserves memory for one allocation of that size.
    pub(crate) fn reserve(&mut self, bytes: usize) -> bool {
        match self.free_bytes.checked_sub(bytes) {
            Some(left) => {
                self.free_bytes = left;
                true
            }
            None => self.ask(bytes),
        }
    }

    #[cold]
    fn ask(&mut self, bytes: usize) -> bool {
        let granted = !self.is_exhausted && self.allowance.as_mut().is_none_or(|allowance| allowance.reserve(bytes));
        self.is_exhausted |= !granted;
        granted
    }

    /// Adds an item to a list, unless there is no memory for a longer one.
    #[inline]
    pub(crate) fn push<T>(&mut self, list: &mut Vec<T>, item: T) {
        if list.len() < list.capacity() || self.make_room(list, 1) {
            list.push(item);
        }
    }

    /// Makes room for so many more items. The old allocation stays reserved, as both exist while items move.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room<T>(&mut self, list: &mut Vec<T>, more: usize) -> bool {
        /// The standard library's initial capacity for items of this size.
        const FIRST_ITEMS: usize = 4;
        let needed = list.len().saturating_add(more);
        let items = list.capacity().saturating_mul(2).max(needed).max(FIRST_ITEMS);
        let granted = self.reserve(items.saturating_mul(size_of::<T>()));
        if granted {
            list.reserve_exact(items - list.len());
        }
        granted
    }

    /// Reserves memory to read and change a message.
    #[inline]
    pub(crate) fn reserve_work(&mut self, message: &[u8]) -> bool {
        message.len() <= SMALL_MESSAGE_BYTES || self.reserve_work_slow(message)
    }

    #[cold]
    #[inline(never)]
    fn reserve_work_slow(&mut self, message: &[u8]) -> bool {
        let needed = work_bytes(message);
        if needed <= self.work_bytes {
            return true;
        }
        let granted = self.ask(needed - self.work_bytes);
        if granted {
            self.work_bytes = needed;
        }
        granted
    }
}

/// Working memory to read a message and to show or change its content; zero for a message so small that it need
/// not be reserved.
pub fn work_bytes(message: &[u8]) -> usize {
    if message.len() <= SMALL_MESSAGE_BYTES {
        return 0;
    }
    let fields = count_fields(message, MAX_COUNTED_DEPTH);
    WORK_BYTES_PER_BYTE.saturating_mul(message.len()).saturating_add(WORK_BYTES_PER_FIELD.saturating_mul(fields))
}

/// Counts the length-delimited fields of a message, nested ones included. Text may be mistaken for fields.
fn count_fields(message: &[u8], depth: usize) -> usize {
    // A field takes two bytes at least.
    let most = message.len() / 2;
    let Some(depth) = depth.checked_sub(1) else { return most };
    let inner =
        WireFields::new(message).filter_map(|field| field.as_len()).map(|content| 1 + count_fields(content, depth));
    inner.sum::<usize>().min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grants so many bytes in all.
    struct Purse(usize);

    impl Allowance for Purse {
        fn reserve(&mut self, bytes: usize) -> bool {
            self.0.checked_sub(bytes).map(|left| self.0 = left).is_some()
        }
    }

    #[test]
    fn list_of_many_items_grows_only_while_the_allowance_grants_it() {
        let mut purse = Purse(1 << 20);
        let mut meter = MemoryMeter::new(&mut purse);
        let mut list: Vec<u64> = Vec::new();
        (0..1_000_000).for_each(|number| meter.push(&mut list, number));
        assert!(meter.is_exhausted() && meter.check() == Err(NoMemory));
        assert!(size_of::<u64>() * list.capacity() <= 1 << 20);
    }

    #[test]
    fn short_list_is_granted_without_asking() {
        let mut purse = Purse(0);
        let mut meter = MemoryMeter::new(&mut purse);
        let mut list: Vec<u64> = Vec::new();
        (0..1000).for_each(|number| meter.push(&mut list, number));
        assert!(!meter.is_exhausted() && list.len() == 1000);
    }

    #[test]
    fn work_on_large_message_is_asked_for_by_bytes_and_fields() {
        let text = vec![b'a'; 100_000];
        let fields = [0x0a, 0].repeat(50_000);
        for (message, needed) in [(&text, 100_000 * WORK_BYTES_PER_BYTE), (&fields, 50_000 * WORK_BYTES_PER_FIELD)] {
            let mut purse = Purse(needed - 1);
            assert!(!MemoryMeter::new(&mut purse).reserve_work(message));
            let mut purse = Purse(100_000 * WORK_BYTES_PER_BYTE + needed + 100 * WORK_BYTES_PER_FIELD);
            let mut meter = MemoryMeter::new(&mut purse);
            assert!(meter.reserve_work(message) && meter.reserve_work(message), "a second time needs no more");
        }
    }

    #[test]
    fn fields_deep_inside_each_other_are_counted() {
        let mut message = Vec::new();
        for _ in 0..100 {
            let mut outer = Vec::new();
            crate::wire::put_bytes(&mut outer, 1, &message);
            message = outer;
        }
        assert!(count_fields(&message, MAX_COUNTED_DEPTH) >= 100);
        assert_eq!(count_fields(b"\xff\xff", MAX_COUNTED_DEPTH), 0);
    }
}
