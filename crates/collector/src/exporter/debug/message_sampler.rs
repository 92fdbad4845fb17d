//! Limits the rate of printed messages.

use std::time::Duration;

use kubewake_runtime::lock::Mutex;
use tokio::time::Instant;

/// The Collector samples in windows of one second.
const SAMPLING_WINDOW: Duration = Duration::from_secs(1);

/// In each second the first `initial` messages pass, and then one in every `thereafter`.
pub(super) struct MessageSampler {
    initial: u64,
    thereafter: u64,
    window: Mutex<Option<(Instant, u64)>>,
}

impl MessageSampler {
    /// With a `thereafter` of zero no message passes after the initial ones.
    pub(super) fn new(initial: u32, thereafter: u32) -> Self {
        Self { initial: initial.into(), thereafter: thereafter.into(), window: Mutex::new(None) }
    }

    /// Whether to print a message at `now`.
    pub(super) fn should_show(&self, now: Instant) -> bool {
        let mut window = self.window.lock();
        let (start, count) = match *window {
            Some((start, count)) if now.saturating_duration_since(start) < SAMPLING_WINDOW => (start, count + 1),
            _ => (now, 1),
        };
        *window = Some((start, count));
        drop(window);
        match count.checked_sub(self.initial) {
            None | Some(0) => true,
            Some(beyond) => self.thereafter != 0 && beyond % self.thereafter == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_pass_and_then_one_in_three() {
        let sampler = MessageSampler::new(2, 3);
        let passed: Vec<bool> = (0..8).map(|_| sampler.should_show(Instant::now())).collect();
        assert_eq!(passed, [true, true, false, false, true, false, false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn every_second_begins_anew() {
        let sampler = MessageSampler::new(1, 0);
        assert!(sampler.should_show(Instant::now()));
        assert!(!sampler.should_show(Instant::now()));
        tokio::time::advance(Duration::from_millis(999)).await;
        assert!(!sampler.should_show(Instant::now()));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(sampler.should_show(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_default_passes_everything() {
        let sampler = MessageSampler::new(2, 1);
        assert!((0..100).all(|_| sampler.should_show(Instant::now())));
    }
}
