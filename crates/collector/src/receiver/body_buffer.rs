//! Buffers a request body that arrives in pieces, and reserves memory for it as it grows.

use crate::core::{ArrivingReservation, Refusal, RequestReservation};

/// Up to this size the first piece of a body makes room for the whole body, so that it is allocated once.
const SMALL_BODY_BYTES: usize = 64 << 10;
/// Limit of the first reservation, as a multiple of the first piece. HTTP/1.1 reads about 8 KiB of a body
/// together with its headers.
const FIRST_RESERVATION_FACTOR: usize = 16;

pub(super) struct BodyBuffer {
    bytes: Vec<u8>,
    /// The announced length (`content-length`).
    claim: Option<usize>,
    max: usize,
    /// `None`: the body is not charged.
    arrival: Option<ArrivingReservation>,
}

impl BodyBuffer {
    /// A body of at most `max` bytes that is charged to `arrival`. The caller must not push more than was
    /// announced.
    pub(super) fn charged(claim: Option<usize>, max: usize, arrival: ArrivingReservation) -> Self {
        Self { bytes: Vec::new(), claim, max, arrival: Some(arrival) }
    }

    /// A body too small to be charged.
    pub(super) fn uncharged(claim: usize) -> Self {
        Self { bytes: Vec::new(), claim: Some(claim), max: claim, arrival: None }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a piece. Without memory for it the buffer is unchanged, so that the caller may try again.
    pub(super) fn push(&mut self, data: &[u8]) -> Result<(), Refusal> {
        let needed = self.bytes.len() + data.len();
        let capacity = self.bytes.capacity();
        if needed > capacity {
            let target = target_capacity(capacity, needed, self.claim).min(self.max).max(needed);
            if let Some(arrival) = &mut self.arrival {
                arrival.grow(target - capacity)?;
            }
            self.bytes.reserve_exact(target - self.bytes.len());
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// Returns the whole body and its charge.
    pub(super) fn finish(self) -> (Vec<u8>, Option<RequestReservation>) {
        (self.bytes, self.arrival.map(ArrivingReservation::finish))
    }
}

/// The capacity of a buffer for `needed` bytes: a small multiple of what arrived, and never more than was
/// announced.
fn target_capacity(capacity: usize, needed: usize, claim: Option<usize>) -> usize {
    let target = match (capacity, claim) {
        (0, None) => needed,
        (0, Some(_)) => (needed * 2).max(SMALL_BODY_BYTES.min(needed * FIRST_RESERVATION_FACTOR)),
        (capacity, _) => capacity * 2,
    };
    target.min(claim.unwrap_or(usize::MAX)).max(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_body_is_allocated_once_and_large_one_as_it_arrives() {
        assert_eq!(target_capacity(0, 4 << 10, Some(60 << 10)), 60 << 10);
        assert_eq!(target_capacity(0, 100, Some(1 << 20)), 1600);
        assert_eq!(target_capacity(0, 8 << 10, Some(4 << 20)), 64 << 10);
        assert_eq!(target_capacity(0, 128 << 10, Some(4 << 20)), 256 << 10);
        assert_eq!(target_capacity(64 << 10, 65 << 10, Some(4 << 20)), 128 << 10);
        assert_eq!(target_capacity(64 << 10, 65 << 10, Some(70 << 10)), 70 << 10);
        assert_eq!(target_capacity(0, 100, None), 100);
        assert_eq!(target_capacity(100, 150, None), 200);
    }
}
