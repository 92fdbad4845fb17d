//! The backoff between attempts.

use std::time::Duration;

use kubewake_config::model::RetryConfig;

/// The intervals between the attempts at one batch: they grow by the multiplier up to the maximum, with jitter,
/// and end after the maximum elapsed time.
#[derive(Debug)]
pub(super) struct RetryBackoff {
    next_interval: Duration,
    started_at: tokio::time::Instant,
}

impl RetryBackoff {
    /// Starts after the first failure, which may have been at another destination.
    pub(super) fn start(retry: &RetryConfig, failing_since: Option<tokio::time::Instant>) -> Self {
        let since = failing_since.unwrap_or_else(tokio::time::Instant::now);
        Self { next_interval: retry.initial_interval, started_at: since }
    }

    /// The wait before the next attempt; `None` when the time is up. A hint of the server lengthens the wait
    /// and never shortens it.
    pub(super) fn pause(&mut self, retry: &RetryConfig, hint: Option<Duration>) -> Option<Duration> {
        let interval = self.next_interval.min(retry.max_interval);
        self.next_interval = scale(interval, retry.multiplier).min(retry.max_interval);
        let pause = jitter(interval, retry.randomization_factor).max(hint.unwrap_or_default());
        match retry.max_elapsed_time {
            // A hint may be any number.
            Some(max) if self.started_at.elapsed().saturating_add(pause) > max => None,
            _ => Some(pause),
        }
    }
}

fn scale(interval: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(interval.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

/// Between `1 - factor` and `1 + factor` times the interval.
fn jitter(interval: Duration, factor: f64) -> Duration {
    if factor <= 0.0 { interval } else { scale(interval, 1.0 - factor + 2.0 * factor * fastrand::f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry() -> RetryConfig {
        RetryConfig {
            initial_interval: Duration::from_millis(300),
            randomization_factor: 0.0,
            multiplier: 2.0,
            max_interval: Duration::from_secs(1),
            max_elapsed_time: Some(Duration::from_secs(60)),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn intervals_grow_up_to_the_maximum() {
        let mut backoff = RetryBackoff::start(&retry(), None);
        let pauses: Vec<_> = (0..4).map(|_| backoff.pause(&retry(), None).map(|p| p.as_millis())).collect();
        assert_eq!(pauses, [Some(300), Some(600), Some(1000), Some(1000)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hint_lengthens_and_never_shortens() {
        let mut backoff = RetryBackoff::start(&retry(), None);
        assert_eq!(backoff.pause(&retry(), Some(Duration::from_secs(5))), Some(Duration::from_secs(5)));
        assert_eq!(backoff.pause(&retry(), Some(Duration::ZERO)), Some(Duration::from_millis(600)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_absurd_hint_ends_it_and_nothing_else() {
        let mut backoff = RetryBackoff::start(&retry(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(backoff.pause(&retry(), Some(Duration::MAX)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_the_time_is_up() {
        let mut backoff = RetryBackoff::start(&retry(), None);
        tokio::time::advance(Duration::from_millis(59_800)).await;
        assert_eq!(backoff.pause(&retry(), None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn jitter_stays_within_its_factor() {
        let retry = RetryConfig { randomization_factor: 0.5, multiplier: 1.0, ..retry() };
        let mut backoff = RetryBackoff::start(&retry, None);
        for _ in 0..1000 {
            let pause = backoff.pause(&retry, None).expect("in time");
            assert!((150..=450).contains(&pause.as_millis()), "{pause:?}");
        }
    }
}
