//! Durations of calls, by result code.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::Code;

/// Upper bounds of the buckets in milliseconds, as OpenTelemetry recommends for calls.
const BUCKET_BOUNDS_MS: [u64; 14] = [5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];

/// Weight of the newest call in [`CallStats::recent_mean`]: one part in five. Small enough that a single call
/// does not dominate, and large enough that a slow destination shows after a few calls.
const MEAN_WEIGHT_DIVISOR: u64 = 5;

/// Durations of calls, by the code that they ended with.
#[derive(Debug, Default)]
pub struct CallStats {
    by_code: [CallHistogram; Code::ALL.len()],
    /// A mean in nanoseconds, plus one; zero means no call so far.
    recent_mean_nanos: AtomicU64,
}

#[derive(Debug, Default)]
struct CallHistogram {
    buckets: [AtomicU64; BUCKET_BOUNDS_MS.len()],
    nanoseconds: AtomicU64,
    count: AtomicU64,
}

/// The calls that ended with one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSnapshot {
    pub code: Code,
    /// Cumulative counts by upper bound, in nanoseconds.
    pub rows: Vec<(u64, u64)>,
    pub nanoseconds: u64,
    pub count: u64,
}

impl CallStats {
    pub fn record(&self, code: Code, took: Duration) {
        let Some(durations) = self.by_code.get(usize::from(code.number())) else { return };
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // From the shortest on, since most calls are short.
        let bucket =
            BUCKET_BOUNDS_MS.iter().zip(&durations.buckets).find(|(bound, _)| nanoseconds <= **bound * 1_000_000);
        if let Some((_, bucket)) = bucket {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        durations.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        durations.count.fetch_add(1, Ordering::Relaxed);
        if code == Code::Ok {
            self.update_mean(nanoseconds);
        }
    }

    fn update_mean(&self, nanoseconds: u64) {
        let mean = |old: u64| match old.checked_sub(1) {
            None => nanoseconds,
            Some(mean) => mean - mean / MEAN_WEIGHT_DIVISOR + nanoseconds / MEAN_WEIGHT_DIVISOR,
        };
        // Two calls that end at the same time may count as one, which an approximate mean tolerates.
        let old = self.recent_mean_nanos.load(Ordering::Relaxed);
        self.recent_mean_nanos.store(mean(old).saturating_add(1), Ordering::Relaxed);
    }

    /// A moving mean of the durations of successful calls.
    pub fn recent_mean(&self) -> Option<Duration> {
        self.recent_mean_nanos.load(Ordering::Relaxed).checked_sub(1).map(Duration::from_nanos)
    }

    pub(super) fn absorb(&self, other: &Self) {
        for (durations, more) in self.by_code.iter().zip(&other.by_code) {
            let cells = durations.buckets.iter().chain([&durations.nanoseconds, &durations.count]);
            for (cell, more) in cells.zip(more.buckets.iter().chain([&more.nanoseconds, &more.count])) {
                cell.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    /// The counts of each code that occurred.
    pub fn snapshot(&self) -> impl Iterator<Item = CallSnapshot> {
        let counted = Code::ALL.iter().zip(&self.by_code).map(|(code, durations)| durations.snapshot(*code));
        counted.filter(|calls| calls.count > 0)
    }
}

impl CallHistogram {
    fn snapshot(&self, code: Code) -> CallSnapshot {
        let mut total = 0;
        let rows = BUCKET_BOUNDS_MS.iter().zip(&self.buckets).map(|(bound, count)| {
            total += count.load(Ordering::Relaxed);
            (bound * 1_000_000, total)
        });
        CallSnapshot {
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
        let calls = CallStats::default();
        let second = Duration::from_secs(1);
        calls.record(Code::Unavailable, second);
        assert_eq!(calls.recent_mean(), None);
        calls.record(Code::Ok, second);
        assert_eq!(calls.recent_mean(), Some(second));
        calls.record(Code::Ok, second * 6);
        assert_eq!(calls.recent_mean(), Some(second * 2));
        for _ in 0..100 {
            calls.record(Code::Ok, Duration::from_millis(1));
        }
        assert!(calls.recent_mean().is_some_and(|lately| lately < Duration::from_millis(2)));
    }
}
