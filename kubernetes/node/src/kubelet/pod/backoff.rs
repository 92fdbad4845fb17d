//! The restart backoff of containers.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffRules {
    /// The first delay; it doubles each time.
    pub first: Duration,
    pub longest: Duration,
    /// The backoff starts anew after a container has run for longer than this.
    pub reset: Duration,
}

impl Default for BackoffRules {
    fn default() -> Self {
        let longest = Duration::from_secs(300);
        Self { first: Duration::from_secs(10), longest, reset: longest * 2 }
    }
}

#[derive(Debug)]
pub(super) struct ContainerBackoff {
    rules: BackoffRules,
    /// The delay after the next exit; none after the first.
    next: Option<Duration>,
    begun: Instant,
}

impl ContainerBackoff {
    pub(super) fn new(rules: BackoffRules) -> Self {
        Self { rules, next: None, begun: Instant::now() }
    }

    pub(super) fn record_start(&mut self) {
        self.begun = Instant::now();
    }

    /// The delay after an exit or a failed start.
    pub(super) fn next_wait(&mut self) -> Option<Duration> {
        if self.begun.elapsed() > self.rules.reset {
            self.next = None;
        }
        let wait = self.next;
        let doubled = wait.map_or(self.rules.first, |wait| wait * 2);
        self.next = Some(doubled.min(self.rules.longest));
        wait
    }
}

/// Formats a duration as Go does: `10s`, `1m20s`, `5m0s`.
pub(super) fn format_duration(wait: Duration) -> String {
    let seconds = wait.as_secs();
    match (wait.subsec_millis(), seconds / 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        _ => format!("{}ms", wait.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_is_free_and_each_further_one_takes_twice_as_long() {
        let mut backoff = ContainerBackoff::new(BackoffRules::default());
        let mut waits = Vec::new();
        for _ in 0..8 {
            backoff.record_start();
            waits.push(backoff.next_wait().map(format_duration).unwrap_or_default());
        }
        assert_eq!(waits, ["", "10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
        backoff.record_start();
        tokio::time::advance(Duration::from_secs(601)).await;
        assert_eq!(backoff.next_wait(), None);
        backoff.record_start();
        assert_eq!(backoff.next_wait(), Some(Duration::from_secs(10)));
    }
}
