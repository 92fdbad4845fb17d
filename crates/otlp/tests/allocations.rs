//! Nothing on the hot path allocates per span.
//!
//! The test binary counts allocations by thread, so that tests beside each other do not count for one another.
#![allow(clippy::unwrap_used, missing_docs)]
#![allow(unsafe_code, reason = "an allocator that counts is unsafe to write, and is in this test alone")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::NonZeroUsize;

use bytes::Bytes;
use kubewake_otlp::view::RecordRef;
use kubewake_otlp::wire::put_bytes;
use kubewake_otlp::{Edit, Limit, Rules, Signal, join, retain, rewrite, scan, split};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: everything is left to the system's allocator; the counter is a plain number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations<T>(work: impl FnOnce() -> T) -> usize {
    let before = ALLOCATIONS.get();
    let result = work();
    let count = ALLOCATIONS.get() - before;
    drop(result);
    count
}

/// A request of one resource and one scope, with so many records of the signal: metrics have one point each.
fn request(signal: Signal, records: usize) -> Bytes {
    let (mut scope, mut entry, mut out) = (Vec::new(), Vec::new(), Vec::new());
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
        // The bytes; whoever shares them later pays for the count of the handles.
        assert_eq!(allocations(|| join(&parts)), 1);
        assert_eq!(allocations(|| join(&parts[..1])), 0);
    }
}

/// What a piece costs at most: its bytes, and the lists of headers where it is cut.
const PER_PIECE: usize = 4;

#[test]
fn split_allocates_by_the_piece() {
    for signal in Signal::ALL {
        for (records, pieces) in [(FEW, 2), (MANY, 2), (MANY, 200)] {
            let request = request(signal, records);
            let limit = Limit::Items(NonZeroUsize::new(records / pieces).unwrap());
            let count = allocations(|| assert_eq!(split(signal, &request, limit).count(), pieces));
            assert!(count <= pieces * PER_PIECE + 20, "{signal}: {count} allocations for {pieces} pieces");
            let limit = Limit::Bytes(NonZeroUsize::new(request.len() / pieces + 64).unwrap());
            let count = allocations(|| split(signal, &request, limit).count());
            assert!(count <= pieces * PER_PIECE + 20, "{signal}: {count} allocations for {pieces} pieces");
        }
    }
}

#[test]
fn retain_allocates_its_output_and_a_plan_that_doubles() {
    for signal in Signal::ALL {
        let request = request(signal, MANY);
        // The two lists of the plan, and the count of the handles, which the first clone of the bytes makes.
        assert!(allocations(|| retain(signal, &request, reads_everything)) <= 3, "{signal}");
        let mut odd = false;
        let count = allocations(|| {
            retain(signal, &request, |_| {
                odd = !odd;
                odd
            })
        });
        // Every second record is a run of its own: the worst case. Doubling gets there in log2(20 000) < 15 steps.
        assert!(count <= 20, "{signal}: {count} allocations");
    }
}

#[test]
fn rewrite_allocates_its_output_and_what_doubles() {
    for signal in Signal::ALL {
        let request = request(signal, MANY);
        let edits = |edit: Edit| Rules { resources: vec![edit.clone()], records: vec![edit] };
        let mut nothing = edits(Edit::remove("absent"));
        assert!(allocations(|| rewrite(signal, &request, &mut nothing)) <= 8, "{signal}");
        // New bytes of 20 000 records are gathered in one list, which doubles.
        let mut everything = edits(Edit::set("key", "value"));
        let count = allocations(|| rewrite(signal, &request, &mut everything));
        assert!(count <= 60, "{signal}: {count} allocations");
    }
}

fn reads_everything(record: &RecordRef<'_>) -> bool {
    record.trace_id().len() + record.resource().attributes().iter().count() + record.scope().name().len() < 100
}
