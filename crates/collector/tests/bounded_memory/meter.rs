//! An allocator that compares what is allocated with what is charged, at every allocation.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use kubewake_collector::core::Budget;

/// How many bytes may be allocated for each that is charged. What is charged for is mostly allocated once; an old allocation that is copied
/// into a larger one is there beside it for a moment.
const ALLOCATED_PER_CHARGED: i64 = 2;

static LIVE: AtomicI64 = AtomicI64::new(0);
/// What was allocated when the measurement began.
static BASE: AtomicI64 = AtomicI64::new(0);
static MEASURES: AtomicBool = AtomicBool::new(false);
/// The most that was allocated beyond what the charges of the same moment allow.
static UNCHARGED: AtomicI64 = AtomicI64::new(0);
static BUDGET: OnceLock<Arc<Budget>> = OnceLock::new();

/// The budget that everything measured here is charged to.
pub fn budget() -> &'static Arc<Budget> {
    BUDGET.get_or_init(|| Budget::new(0, 0))
}

/// Measures until [`end`].
pub fn begin() {
    assert_eq!(budget().used(), 0, "something of an earlier measurement is still charged");
    BASE.store(LIVE.load(Ordering::SeqCst), Ordering::SeqCst);
    UNCHARGED.store(0, Ordering::SeqCst);
    MEASURES.store(true, Ordering::SeqCst);
}

/// The most bytes that were allocated beyond what was charged, by the constant above.
pub fn end() -> i64 {
    MEASURES.store(false, Ordering::SeqCst);
    UNCHARGED.load(Ordering::SeqCst)
}

pub struct Metered;

// SAFETY: everything is left to the system's allocator. What is counted allocates nothing.
unsafe impl GlobalAlloc for Metered {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed) + layout.size() as i64;
        if MEASURES.load(Ordering::Relaxed)
            && let Some(budget) = BUDGET.get()
        {
            let allowed = budget.used() as i64 * ALLOCATED_PER_CHARGED;
            UNCHARGED.fetch_max(live - BASE.load(Ordering::Relaxed) - allowed, Ordering::Relaxed);
        }
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
