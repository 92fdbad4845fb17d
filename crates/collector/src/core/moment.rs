//! A moment that many write and read without waiting for each other.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// When something happened last, to the microsecond; `None` as long as it has not.
#[derive(Debug)]
pub struct Moment {
    /// What came before counts as this.
    origin: Instant,
    /// Microseconds since then, and one more: zero is never.
    microseconds: AtomicU64,
}

impl Default for Moment {
    fn default() -> Self {
        Self { origin: Instant::now(), microseconds: AtomicU64::new(0) }
    }
}

impl Moment {
    /// It happens now.
    pub fn mark(&self) {
        self.set(Some(Instant::now()));
    }

    /// It happened then, or never.
    pub fn set(&self, at: Option<Instant>) {
        let since = |at: Instant| at.saturating_duration_since(self.origin).as_micros();
        let microseconds = at.map_or(0, |at| u64::try_from(since(at)).unwrap_or(u64::MAX).saturating_add(1));
        self.microseconds.store(microseconds, Ordering::Relaxed);
    }

    /// When it happened.
    pub fn get(&self) -> Option<Instant> {
        let microseconds = self.microseconds.load(Ordering::Relaxed).checked_sub(1)?;
        self.origin.checked_add(Duration::from_micros(microseconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_moment_is_remembered_and_can_be_taken_back() {
        let moment = Moment::default();
        assert_eq!(moment.get(), None);
        moment.mark();
        let then = Instant::now();
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(moment.get(), Some(then));
        moment.mark();
        assert_eq!(moment.get(), Some(Instant::now()));
        moment.set(None);
        assert_eq!(moment.get(), None);
    }
}
