//! How long a container that ended waits before it runs again.

use std::time::Duration;

use tokio::time::Instant;

/// The rules of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffRules {
    /// The first wait; each further one is twice as long.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// A container that ran for longer than this has made up for what it did before.
    pub reset: Duration,
}

impl Default for BackoffRules {
    /// The kubelet's.
    fn default() -> Self {
        let longest = Duration::from_secs(300);
        Self { first: Duration::from_secs(10), longest, reset: longest * 2 }
    }
}

/// Of one container.
#[derive(Debug)]
pub(super) struct Backoff {
    rules: BackoffRules,
    /// The wait that the next end costs; nothing for the first.
    next: Option<Duration>,
    begun: Instant,
}

impl Backoff {
    pub(super) fn new(rules: BackoffRules) -> Self {
        Self { rules, next: None, begun: Instant::now() }
    }

    /// It begins to run.
    pub(super) fn begin(&mut self) {
        self.begun = Instant::now();
    }

    /// It has ended, or failed to start: how long it waits.
    pub(super) fn end(&mut self) -> Option<Duration> {
        if self.begun.elapsed() > self.rules.reset {
            self.next = None;
        }
        let wait = self.next;
        let doubled = wait.map_or(self.rules.first, |wait| wait * 2);
        self.next = Some(doubled.min(self.rules.longest));
        wait
    }
}

/// As Go writes it, and so Kubernetes: `10s`, `1m20s`, `5m0s`.
pub(super) fn words(wait: Duration) -> String {
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
        let mut backoff = Backoff::new(BackoffRules::default());
        let mut waits = Vec::new();
        for _ in 0..8 {
            backoff.begin();
            waits.push(backoff.end().map(words).unwrap_or_default());
        }
        assert_eq!(waits, ["", "10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"]);
        backoff.begin();
        tokio::time::advance(Duration::from_secs(601)).await;
        assert_eq!(backoff.end(), None);
        backoff.begin();
        assert_eq!(backoff.end(), Some(Duration::from_secs(10)));
    }
}
