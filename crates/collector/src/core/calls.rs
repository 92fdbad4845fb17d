//! How long calls take, by their answer.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::Code;

/// Upper bounds of the buckets in milliseconds: those that OpenTelemetry advises for calls.
const BOUNDS: [u64; 14] = [5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];

/// How much the newest of the calls counts in [`Calls::lately`]: one in so many. Few enough that a destination which has
/// become slow is seen to be after a few calls, and enough that one call does not decide.
const WEIGHT: u64 = 5;

/// Durations of calls, by the code that they ended with.
#[derive(Debug, Default)]
pub struct Calls {
    by_code: [Durations; Code::ALL.len()],
    /// A mean in nanoseconds, and one more: zero is none so far.
    lately: AtomicU64,
}

#[derive(Debug, Default)]
struct Durations {
    buckets: [AtomicU64; BOUNDS.len()],
    nanoseconds: AtomicU64,
    count: AtomicU64,
}

/// The calls that ended with one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallsOf {
    /// Which.
    pub code: Code,
    /// Cumulative counts by upper bound, in nanoseconds.
    pub rows: Vec<(u64, u64)>,
    /// The time of all.
    pub nanoseconds: u64,
    /// How many.
    pub count: u64,
}

impl Calls {
    /// Counts a call.
    pub fn record(&self, code: Code, took: Duration) {
        let Some(durations) = self.by_code.get(usize::from(code.number())) else { return };
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // From the shortest on: most calls are short.
        let bucket = BOUNDS.iter().zip(&durations.buckets).find(|(bound, _)| nanoseconds <= **bound * 1_000_000);
        if let Some((_, bucket)) = bucket {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        durations.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        durations.count.fetch_add(1, Ordering::Relaxed);
        if code == Code::Ok {
            self.note(nanoseconds);
        }
    }

    fn note(&self, nanoseconds: u64) {
        let mean = |old: u64| match old.checked_sub(1) {
            None => nanoseconds,
            Some(mean) => mean - mean / WEIGHT + nanoseconds / WEIGHT,
        };
        // Two calls that end at once may count as one: it is a mean of a few, not a sum.
        let old = self.lately.load(Ordering::Relaxed);
        self.lately.store(mean(old).saturating_add(1), Ordering::Relaxed);
    }

    /// How long the last successful calls took, the newer ones counting more.
    pub fn lately(&self) -> Option<Duration> {
        self.lately.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_nanos)
    }

    /// Adds what another one counted.
    pub(super) fn absorb(&self, other: &Self) {
        for (durations, more) in self.by_code.iter().zip(&other.by_code) {
            let cells = durations.buckets.iter().chain([&durations.nanoseconds, &durations.count]);
            for (cell, more) in cells.zip(more.buckets.iter().chain([&more.nanoseconds, &more.count])) {
                cell.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    /// What was counted, for each code that there was.
    pub fn snapshot(&self) -> impl Iterator<Item = CallsOf> {
        let counted = Code::ALL.iter().zip(&self.by_code).map(|(code, durations)| durations.snapshot(*code));
        counted.filter(|calls| calls.count > 0)
    }
}

impl Durations {
    fn snapshot(&self, code: Code) -> CallsOf {
        let mut total = 0;
        let rows = BOUNDS.iter().zip(&self.buckets).map(|(bound, count)| {
            total += count.load(Ordering::Relaxed);
            (bound * 1_000_000, total)
        });
        CallsOf {
            code,
            rows: rows.collect(),
            nanoseconds: self.nanoseconds.load(Ordering::Relaxed),
            count: self.count.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_late_follows_successful_calls() {
        let (calls, second) = (Calls::default(), Duration::from_secs(1));
        calls.record(Code::Unavailable, second);
        assert_eq!(calls.lately(), None);
        calls.record(Code::Ok, second);
        assert_eq!(calls.lately(), Some(second));
        calls.record(Code::Ok, second * 6);
        assert_eq!(calls.lately(), Some(second * 2));
        for _ in 0..100 {
            calls.record(Code::Ok, Duration::from_millis(1));
        }
        assert!(calls.lately().is_some_and(|lately| lately < Duration::from_millis(2)));
    }
}
