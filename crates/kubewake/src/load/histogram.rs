//! A histogram of bounded size and error.

use std::time::Duration;

/// Each power of two is cut in this many steps, so a value is off by at most 1/64, 1.6 %.
const STEPS: u64 = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Enough for every `u64`.
const BUCKETS: usize = (64 - STEP_BITS as usize + 1) * STEPS as usize;

/// Counts durations in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], count: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts one duration.
    pub(crate) fn record(&mut self, duration: Duration) {
        self.record_many(duration, 1);
    }

    /// Counts the same duration several times.
    pub(crate) fn record_many(&mut self, duration: Duration, times: u64) {
        if times == 0 {
            return;
        }
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(micros)) {
            *count += times;
        }
        self.count += times;
        self.max = self.max.max(micros);
    }

    /// Adds what another one counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// The duration that this share of the values does not exceed, in milliseconds; `None` when nothing was counted.
    pub(crate) fn quantile_ms(&self, share: f64) -> Option<f64> {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(upper_bound(found).min(self.max) as f64 / 1000.0)
    }

    /// The quantiles that every report shows, as JSON.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "count": self.count,
            "p50": self.quantile_ms(0.5),
            "p90": self.quantile_ms(0.9),
            "p99": self.quantile_ms(0.99),
            "max": (self.count > 0).then_some(self.max as f64 / 1000.0),
        })
    }
}

fn bucket(value: u64) -> usize {
    if value < STEPS {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The largest value that falls in a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let first = (bucket - shift * STEPS) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_in_a_bucket_that_is_close() {
        for value in (0..64).map(|bits| 1u64 << bits).flat_map(|v| [v - 1, v, v + v / 3]) {
            let bound = upper_bound(bucket(value));
            assert!(bound >= value && bound - value <= value / STEPS, "{value} became {bound}");
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_are_close() {
        let mut histogram = Histogram::default();
        (1..=1000).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        let p99 = histogram.quantile_ms(0.99).unwrap();
        assert!((990.0..=1006.0).contains(&p99), "{p99}");
        assert_eq!(histogram.quantile_ms(1.0), Some(1000.0));
        assert_eq!(Histogram::default().quantile_ms(0.5), None);
    }
}
