//! Compares allocated with charged bytes, at every allocation.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicI64, Ordering},
};

use kubewake_allocation_meter::{AllocationEvent, CountingAllocator, live_bytes, observe};
use kubewake_collector::core::Budget;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// How many bytes may be allocated for each charged byte. Charged memory is mostly allocated once, but for a
/// moment an old allocation exists beside the larger one that it is copied into.
const ALLOCATED_PER_CHARGED: i64 = 2;

/// Allocated bytes at the beginning of the measurement.
static BASE: AtomicI64 = AtomicI64::new(0);
static MEASURES: AtomicBool = AtomicBool::new(false);
/// The most bytes that were allocated beyond the charges of the same moment.
static UNCHARGED: AtomicI64 = AtomicI64::new(0);
static BUDGET: OnceLock<Arc<Budget>> = OnceLock::new();

/// The budget for everything that is measured.
pub fn budget() -> &'static Arc<Budget> {
    BUDGET.get_or_init(|| Budget::new(0, 0))
}

/// Measures until [`end`].
pub fn begin() {
    assert_eq!(budget().used(), 0, "something of an earlier measurement is still charged");
    observe(compare);
    BASE.store(live_bytes() as i64, Ordering::SeqCst);
    UNCHARGED.store(0, Ordering::SeqCst);
    MEASURES.store(true, Ordering::SeqCst);
}

/// The most bytes that were allocated beyond `ALLOCATED_PER_CHARGED` times the charges.
pub fn end() -> i64 {
    MEASURES.store(false, Ordering::SeqCst);
    UNCHARGED.load(Ordering::SeqCst)
}

fn compare(event: AllocationEvent) {
    if MEASURES.load(Ordering::Relaxed)
        && let Some(budget) = BUDGET.get()
    {
        let allowed = BASE.load(Ordering::Relaxed) + budget.used() as i64 * ALLOCATED_PER_CHARGED;
        UNCHARGED.fetch_max(event.live_bytes as i64 - allowed, Ordering::Relaxed);
    }
}
