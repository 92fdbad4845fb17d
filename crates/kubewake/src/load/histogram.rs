//! A histogram with bounded size and error.

use std::time::Duration;

/// Each power of two is divided into this many steps, so that a value is off by at most 1/64, 1.6 %.
const STEPS_PER_POWER: u64 = 64;
const STEP_BITS: u32 = STEPS_PER_POWER.trailing_zeros();
/// Covers every `u64`.
const BUCKET_COUNT: usize = (64 - STEP_BITS as usize + 1) * STEPS_PER_POWER as usize;

/// A histogram of durations in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct MicrosHistogram {
    counts: Vec<u64>,
    count: u64,
    max: u64,
}

impl Default for MicrosHistogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKET_COUNT], count: 0, max: 0 }
    }
}

impl MicrosHistogram {
    pub(crate) fn record(&mut self, duration: Duration) {
        self.record_many(duration, 1);
    }

    /// Records the same duration several times.
    pub(crate) fn record_many(&mut self, duration: Duration, times: u64) {
        if times == 0 {
            return;
        }
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket_index(micros)) {
            *count += times;
        }
        self.count += times;
        self.max = self.max.max(micros);
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// The duration that this share of the values does not exceed, in milliseconds; `None` when it is empty.
    pub(crate) fn quantile_ms(&self, share: f64) -> Option<f64> {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(upper_bound(found).min(self.max) as f64 / 1000.0)
    }

    /// The quantiles of reports, as JSON.
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

fn bucket_index(value: u64) -> usize {
    if value < STEPS_PER_POWER {
        return value as usize;
    }
    let shift = value.ilog2() - STEP_BITS;
    (u64::from(shift) * STEPS_PER_POWER + (value >> shift)) as usize
}

/// The largest value in a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS_PER_POWER {
        return bucket;
    }
    let shift = bucket / STEPS_PER_POWER - 1;
    let first = (bucket - shift * STEPS_PER_POWER) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_falls_in_a_bucket_that_is_close() {
        for value in (0..64).map(|bits| 1u64 << bits).flat_map(|v| [v - 1, v, v + v / 3]) {
            let bound = upper_bound(bucket_index(value));
            assert!(bound >= value && bound - value <= value / STEPS_PER_POWER, "{value} became {bound}");
        }
        assert!(bucket_index(u64::MAX) < BUCKET_COUNT);
    }

    #[test]
    fn quantiles_are_close() {
        let mut histogram = MicrosHistogram::default();
        (1..=1000).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        let p99 = histogram.quantile_ms(0.99).unwrap();
        assert!((990.0..=1006.0).contains(&p99), "{p99}");
        assert_eq!(histogram.quantile_ms(1.0), Some(1000.0));
        assert_eq!(MicrosHistogram::default().quantile_ms(0.5), None);
    }
}
