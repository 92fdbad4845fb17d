//! The schedule of a run's requests.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

/// Numbers the requests of a run and determines when each is due. Shared by all workers.
#[derive(Debug)]
pub(crate) struct RequestSchedule {
    next: AtomicU64,
    start: Instant,
    /// Time between two requests; `None`: no limit.
    interval: Option<Duration>,
    requests: Option<u64>,
    end: Option<Instant>,
    stop: watch::Sender<bool>,
    /// Maximum delay of a request beyond its schedule, in microseconds.
    worst_lag: AtomicU64,
}

impl RequestSchedule {
    /// A run that begins now and ends after this number of requests or this time, whichever comes first.
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

    /// Waits until a request is due and returns its number; `None` when the run is over.
    pub(crate) async fn next_request(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if self.requests.is_some_and(|requests| number >= requests) || *self.stop.borrow() {
            return None;
        }
        let due = self.due_time(number);
        if self.end.is_some_and(|end| due >= end) || !self.sleep_until(due).await {
            return None;
        }
        if self.interval.is_some() {
            let lag = Instant::now().saturating_duration_since(due).as_micros() as u64;
            self.worst_lag.fetch_max(lag, Ordering::Relaxed);
        }
        Some(number)
    }

    /// Sleeps, unless the run is stopped meanwhile: then `false`.
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

    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// The scheduled end of the run.
    pub(crate) fn end_time(&self) -> Option<Instant> {
        self.end
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Maximum delay of a request beyond its schedule.
    pub(crate) fn worst_lag(&self) -> Duration {
        Duration::from_micros(self.worst_lag.load(Ordering::Relaxed))
    }

    fn due_time(&self, number: u64) -> Instant {
        match self.interval {
            Some(interval) => self.start + interval.mul_f64(number as f64),
            None => Instant::now(),
        }
    }
}
