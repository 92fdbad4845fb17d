//! An instant that can be written and read concurrently without locks.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// The time of the last event, to the microsecond; `None` before the first.
#[derive(Debug)]
pub struct AtomicInstant {
    /// Earlier times are stored as this one.
    origin: Instant,
    /// Microseconds since `origin`, plus one; zero means never.
    microseconds: AtomicU64,
}

impl Default for AtomicInstant {
    fn default() -> Self {
        Self { origin: Instant::now(), microseconds: AtomicU64::new(0) }
    }
}

impl AtomicInstant {
    pub fn set_now(&self) {
        self.set(Some(Instant::now()));
    }

    /// Sets the time of the event, or resets it to never.
    pub fn set(&self, at: Option<Instant>) {
        let since = |at: Instant| at.saturating_duration_since(self.origin).as_micros();
        let microseconds = at.map_or(0, |at| u64::try_from(since(at)).unwrap_or(u64::MAX).saturating_add(1));
        self.microseconds.store(microseconds, Ordering::Relaxed);
    }

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
        let moment = AtomicInstant::default();
        assert_eq!(moment.get(), None);
        moment.set_now();
        let then = Instant::now();
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(moment.get(), Some(then));
        moment.set_now();
        assert_eq!(moment.get(), Some(Instant::now()));
        moment.set(None);
        assert_eq!(moment.get(), None);
    }
}
