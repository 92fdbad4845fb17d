//! When each request is due.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

/// Numbers the requests of a run and says when each may leave. Shared by all workers.
#[derive(Debug)]
pub(crate) struct Schedule {
    next: AtomicU64,
    start: Instant,
    /// The time between two requests; `None`: flat out.
    interval: Option<Duration>,
    requests: Option<u64>,
    end: Option<Instant>,
    stop: watch::Sender<bool>,
    /// How late a request left, at most, in microseconds.
    worst_lag: AtomicU64,
}

impl Schedule {
    /// A run that begins now and ends after so many requests or so much time, whichever comes first.
    pub(crate) fn new(interval: Option<Duration>, requests: Option<u64>, length: Option<Duration>) -> Self {
        let start = Instant::now();
        Self {
            next: AtomicU64::new(0),
            start,
            interval,
            requests,
            end: length.map(|length| start + length),
            stop: watch::Sender::new(false),
            worst_lag: AtomicU64::new(0),
        }
    }

    /// Waits until a request is due and gives its number; `None` when the run is over.
    pub(crate) async fn next(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.requests.is_some_and(|requests| number >= requests) || *self.stop.borrow() {
            return None;
        }
        let due = self.due(number);
        if self.end.is_some_and(|end| due >= end) || !self.sleep_until(due).await {
            return None;
        }
        if self.interval.is_some() {
            let lag = Instant::now().saturating_duration_since(due).as_micros() as u64;
            self.worst_lag.fetch_max(lag, Ordering::Relaxed);
        }
        Some(number)
    }

    /// Waits, unless the run is stopped meanwhile: then `false`.
    pub(crate) async fn sleep_until(&self, time: Instant) -> bool {
        if time <= Instant::now() {
            return true;
        }
        let mut stop = self.stop.subscribe();
        tokio::select! {
            () = tokio::time::sleep_until(time) => true,
            _ = stop.wait_for(|stopped| *stopped) => false,
        }
    }

    /// Ends the run now.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// When the run ends by itself.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// How long the run has lasted.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// How late a request left, at most.
    pub(crate) fn worst_lag(&self) -> Duration {
        Duration::from_micros(self.worst_lag.load(Ordering::Relaxed))
    }

    fn due(&self, number: u64) -> Instant {
        match self.interval {
            Some(interval) => self.start + interval.mul_f64(number as f64),
            None => Instant::now(),
        }
    }
}
