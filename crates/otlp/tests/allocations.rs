//! Nothing on the hot path allocates per span.
//!
//! The test binary counts allocations by thread, so that tests beside each other do not count for one another.
#![allow(clippy::unwrap_used, missing_docs)]

use std::num::NonZeroUsize;

use bytes::Bytes;
use kubewake_allocation_meter::{CountingAllocator, thread_allocations};
use kubewake_otlp::view::RecordRef;
use kubewake_otlp::wire::put_bytes;
use kubewake_otlp::{MessageEdit, Signal, SplitLimit, UniformEditor, join, retain, rewrite, scan, split};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn allocations<T>(work: impl FnOnce() -> T) -> usize {
    let before = thread_allocations();
    let result = work();
    let count = thread_allocations() - before;
    drop(result);
    count
}

/// A request of one resource and one scope, with this many records of the signal: metrics have one point each.
fn request(signal: Signal, records: usize) -> Bytes {
    let mut scope = Vec::new();
    let mut entry = Vec::new();
    let mut out = Vec::new();
    for number in 0..records {
        let mut record = Vec::new();
        match signal {
            Signal::Traces => put_bytes(&mut record, 1, &(number as u128).to_be_bytes()),
            Signal::Logs => put_bytes(&mut record, 9, &(number as u128).to_be_bytes()),
            Signal::Metrics => put_bytes(&mut record, 5, &[0x0a, 0x00]),
        }
        put_bytes(&mut scope, 2, &record);
    }
    put_bytes(&mut entry, 1, b"\x0a\x03\x0a\x01a");
    put_bytes(&mut entry, 2, &scope);
    put_bytes(&mut out, 1, &entry);
    Bytes::from(out)
}

const FEW: usize = 100;
const MANY: usize = 20_000;

#[test]
fn scan_allocates_nothing() {
    for signal in Signal::ALL {
        let request = request(signal, MANY);
        assert_eq!(allocations(|| scan(signal, &request).unwrap()), 0, "{signal}");
    }
}

#[test]
fn join_allocates_its_output_and_nothing_else() {
    for records in [FEW, MANY] {
        let part = request(Signal::Traces, records);
        let parts = [part.clone(), part.clone(), part];
        // The bytes; the first clone pays for the reference count.
        assert_eq!(allocations(|| join(&parts)), 1);
        assert_eq!(allocations(|| join(&parts[..1])), 0);
    }
}

/// Limit of a piece's allocations: its bytes, and the lists of headers where it is cut.
const PER_PIECE: usize = 4;

#[test]
fn split_allocates_by_the_piece() {
    for signal in Signal::ALL {
        for (records, pieces) in [(FEW, 2), (MANY, 2), (MANY, 200)] {
            let request = request(signal, records);
            let limit = SplitLimit::Items(NonZeroUsize::new(records / pieces).unwrap());
            let count = allocations(|| assert_eq!(split(signal, &request, limit).count(), pieces));
            assert!(count <= pieces * PER_PIECE + 20, "{signal}: {count} allocations for {pieces} pieces");
            let limit = SplitLimit::Bytes(NonZeroUsize::new(request.len() / pieces + 64).unwrap());
            let count = allocations(|| split(signal, &request, limit).count());
            assert!(count <= pieces * PER_PIECE + 20, "{signal}: {count} allocations for {pieces} pieces");
        }
    }
}

#[test]
fn retain_allocates_its_output_and_a_plan_that_doubles() {
    for signal in Signal::ALL {
        let request = request(signal, MANY);
        // The two lists of the plan, and the reference count, which the first clone of the bytes allocates.
        assert!(allocations(|| retain(signal, &request, reads_everything)) <= 3, "{signal}");
        let mut odd = false;
        let count = allocations(|| {
            retain(signal, &request, |_| {
                odd = !odd;
                odd
            })
        });
        // Every second record is a run of its own: the worst case. Doubling takes log2(20 000) < 15 steps.
        assert!(count <= 20, "{signal}: {count} allocations");
    }
}

#[test]
fn rewrite_allocates_its_output_and_what_doubles() {
    for signal in Signal::ALL {
        let request = request(signal, MANY);
        let edits = |edit: MessageEdit| UniformEditor { resources: vec![edit.clone()], records: vec![edit] };
        let mut nothing = edits(MessageEdit::remove("absent"));
        assert!(allocations(|| rewrite(signal, &request, &mut nothing)) <= 8, "{signal}");
        // New bytes of 20 000 records are gathered in one list, which doubles.
        let mut everything = edits(MessageEdit::set("key", "value"));
        let count = allocations(|| rewrite(signal, &request, &mut everything));
        assert!(count <= 60, "{signal}: {count} allocations");
    }
}

#[test]
fn opencensus_request_is_not_translated_further_without_memory() {
    // A node, and spans with a resource of their own each.
    let message = [&[0x0a, 0x00][..], &[0x12, 0x03, 0x82, 0x01, 0x00].repeat(MANY)].concat();
    let mut sender = kubewake_otlp::opencensus::OpenCensusStream::default();
    let count = allocations(|| assert!(sender.translate(&message, |_| Err(())).is_err()));
    assert!(count <= 20, "{count} allocations");
}

fn reads_everything(record: &RecordRef<'_>) -> bool {
    record.trace_id().len() + record.resource().attributes().iter().count() + record.scope().name().len() < 100
}
