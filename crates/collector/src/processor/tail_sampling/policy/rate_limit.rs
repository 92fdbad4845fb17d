//! Rate limits, shared by all shards without a lock.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use kubewake_config::model::PolicyRateLimit;

/// A token bucket that fills at a steady rate.
///
/// Its state is the time at which it will be full, which is all that a bucket needs.
#[derive(Debug)]
pub(super) struct TokenBucket {
    /// Nanoseconds per token.
    token: f64,
    burst: f64,
    /// Nanoseconds since the start, as the bits of a float.
    full_at: AtomicU64,
}

impl TokenBucket {
    pub(super) fn new(allowed: PolicyRateLimit) -> Self {
        // Without a rate no token is added, but the burst may be used.
        let token = if allowed.per_second > 0 { 1e9 / allowed.per_second as f64 } else { 1e100 };
        Self { token, burst: allowed.burst.max(0) as f64, full_at: AtomicU64::new(0_f64.to_bits()) }
    }

    /// Takes so many tokens, if the bucket has them.
    pub(super) fn take(&self, tokens: u64, now: Duration) -> bool {
        let now = now.as_nanos() as f64;
        let tokens = tokens as f64;
        // Sums of fractions are a little off.
        let most = (self.burst + 1e-6) * self.token;
        let full_after = |full_at: f64| full_at.max(now) + tokens * self.token;
        let fits = |bits: u64| {
            let full_at = full_after(f64::from_bits(bits));
            (tokens <= self.burst && full_at - now <= most).then(|| full_at.to_bits())
        };
        self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
}

/// A limit of spans in each second of the clock. Upper half: the second; lower half: the spans.
#[derive(Debug, Default)]
pub(super) struct SpansPerSecond(AtomicU64);

impl SpansPerSecond {
    /// Takes so many spans, if the second then has at most `most`.
    pub(super) fn take(&self, spans: u64, most: i64, now: Duration) -> bool {
        let taken = |state| Self::state_after(state, spans, most, now);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }

    /// Whether so many spans would fit now.
    pub(super) fn has_room(&self, spans: u64, most: i64, now: Duration) -> bool {
        Self::state_after(self.0.load(Ordering::Relaxed), spans, most, now).is_some()
    }

    /// The state after so many more spans, if they fit.
    fn state_after(state: u64, spans: u64, most: i64, now: Duration) -> Option<u64> {
        let second = u64::from(now.as_secs() as u32) << 32;
        let used = if state & !u64::from(u32::MAX) == second { state & u64::from(u32::MAX) } else { 0 };
        let sum = used.saturating_add(spans);
        let fits = i64::try_from(sum).is_ok_and(|sum| sum <= most) && sum <= u64::from(u32::MAX);
        fits.then_some(second | sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(1000);

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_its_rate_over_time() {
        let bucket = TokenBucket::new(PolicyRateLimit { per_second: 3, burst: 7 });
        assert!(!bucket.take(8, START), "more than it ever holds");
        assert!(bucket.take(7, START));
        assert!(!bucket.take(1, START));
        assert!(!bucket.take(1, START + Duration::from_millis(333)));
        assert!(bucket.take(1, START + Duration::from_millis(334)));
        let later = START + Duration::from_secs(60);
        assert!(bucket.take(4, later) && bucket.take(3, later) && !bucket.take(1, later));
    }

    #[test]
    fn without_a_rate_only_the_burst_is_there() {
        let bucket = TokenBucket::new(PolicyRateLimit { per_second: 0, burst: 2 });
        assert!(bucket.take(2, START));
        assert!(!bucket.take(1, START + Duration::from_secs(1 << 30)));
        assert!(!TokenBucket::new(PolicyRateLimit { per_second: 0, burst: 0 }).take(1, START));
    }

    #[test]
    fn a_share_begins_anew_each_second() {
        let share = SpansPerSecond::default();
        assert!(share.take(6, 10, START) && !share.take(5, 10, START));
        assert!(share.has_room(4, 10, START) && !share.has_room(5, 10, START), "to ask takes nothing");
        assert!(share.take(4, 10, START));
        assert!(share.take(10, 10, START + Duration::from_secs(1)));
        assert!(!share.take(1, 0, START + Duration::from_secs(2)));
    }
}
