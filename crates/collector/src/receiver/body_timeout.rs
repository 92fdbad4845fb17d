//! Timeouts for the arrival of a message.
//!
//! Most messages have arrived when they are first polled, and need no timer. Nearly all others arrive a moment
//! later: a sender's headers travel ahead of its data. Registering a timer and removing it takes a lock that
//! all threads share, twice; resetting a registered timer takes none. So a connection keeps the timers of its
//! finished calls and reuses them.
//!
//! *Guaranteed*: a spare timer wakes its connection once at most, when it expires.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use kubewake_runtime::lock::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

use super::grpc_calls::bad_request;
use crate::core::{Code, Refusal};

/// Time limit of a body where the settings name none: a body holds memory while it arrives.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// Limit between two pieces of a body: a sender that stopped holds memory for nothing.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(5);

/// How much of a body has arrived, and the time limit of the whole body.
pub(super) struct BodyProgress {
    limit: Duration,
    arrived: AtomicUsize,
}

impl BodyProgress {
    pub(super) fn with_timeout(limit: Duration) -> Self {
        Self { limit, arrived: AtomicUsize::new(0) }
    }

    /// Notes that a piece arrived. A body that arrives as a whole need not be noted.
    pub(super) fn record_arrival(&self, bytes: usize) {
        self.arrived.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Default for BodyProgress {
    fn default() -> Self {
        Self::with_timeout(BODY_TIMEOUT)
    }
}

/// A body that took too long to arrive, or stopped arriving.
#[derive(Debug)]
pub(super) enum SlowBodyError {
    /// The body was not complete within this time.
    Late(Duration),
    /// No piece arrived for [`STALL_TIMEOUT`].
    Stalled,
}

impl fmt::Display for SlowBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(limit) => write!(f, "the message did not arrive within {limit:?}"),
            Self::Stalled => write!(f, "no part of the message arrived for {STALL_TIMEOUT:?}"),
        }
    }
}

impl From<SlowBodyError> for Refusal {
    fn from(error: SlowBodyError) -> Self {
        bad_request(Code::DeadlineExceeded, error.to_string())
    }
}

/// Spare timers of a connection: as many as it ever had messages to wait for at once.
#[derive(Default)]
pub(super) struct TimerPool(Mutex<Vec<Pin<Box<Sleep>>>>);

impl TimerPool {
    /// Reads a message; fails if it takes too long to arrive or stalls.
    pub(super) async fn read_in_time<T, E: From<SlowBodyError>>(
        &self,
        mut read: Pin<&mut impl Future<Output = Result<T, E>>>,
        pace: &BodyProgress,
    ) -> Result<T, E> {
        let mut watch = None;
        let read = std::future::poll_fn(|cx| {
            if let Poll::Ready(result) = read.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            let watch = watch.get_or_insert_with(|| StallWatch::start(self, pace));
            watch.poll(cx, pace).map(|slow| Err(slow.into()))
        });
        let result = read.await;
        self.spare_timers().extend(watch.map(|watch| watch.timer));
        result
    }

    fn start_timer(&self, end: Instant) -> Pin<Box<Sleep>> {
        let spare = self.spare_timers().pop();
        match spare {
            None => Box::pin(sleep_until(end)),
            Some(mut timer) => {
                timer.as_mut().reset(end);
                timer
            }
        }
    }

    fn spare_timers(&self) -> MutexGuard<'_, Vec<Pin<Box<Sleep>>>> {
        self.0.lock()
    }
}

/// Detects a stalled message. The timer is reset when it expires after a piece has arrived, not for each one.
struct StallWatch {
    timer: Pin<Box<Sleep>>,
    deadline: Instant,
    arrived: usize,
}

impl StallWatch {
    fn start(timers: &TimerPool, pace: &BodyProgress) -> Self {
        let now = Instant::now();
        let arrived = pace.arrived.load(Ordering::Relaxed);
        Self { timer: timers.start_timer(now + STALL_TIMEOUT.min(pace.limit)), deadline: now + pace.limit, arrived }
    }

    fn poll(&mut self, cx: &mut Context<'_>, pace: &BodyProgress) -> Poll<SlowBodyError> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            let arrived = pace.arrived.load(Ordering::Relaxed);
            if now >= self.deadline {
                return Poll::Ready(SlowBodyError::Late(pace.limit));
            }
            if arrived == self.arrived {
                return Poll::Ready(SlowBodyError::Stalled);
            }
            self.arrived = arrived;
            self.timer.as_mut().reset(self.deadline.min(now + STALL_TIMEOUT));
        }
    }
}

/// As [`TimerPool::read_in_time`], for messages that are too rare to keep timers for.
pub(super) async fn read_in_time<T, E: From<SlowBodyError>>(
    read: Pin<&mut impl Future<Output = Result<T, E>>>,
    pace: &BodyProgress,
) -> Result<T, E> {
    TimerPool::default().read_in_time(read, pace).await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn after(time: Duration) -> Result<(), Refusal> {
        tokio::time::sleep(time).await;
        Ok(())
    }

    /// A message of which a byte arrives every `interval`, until `time` has passed.
    async fn arriving(pace: &BodyProgress, interval: Duration, time: Duration) -> Result<(), Refusal> {
        let end = Instant::now() + time;
        while Instant::now() + interval < end {
            tokio::time::sleep(interval).await;
            pace.record_arrival(1);
        }
        tokio::time::sleep_until(end).await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_here_needs_no_timer() {
        let timers = TimerPool::default();
        timers.read_in_time(pin!(async { Ok::<_, Refusal>(()) }), &BodyProgress::default()).await.unwrap();
        assert!(timers.spare_timers().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_serves_one_message_after_the_other_and_each_has_the_whole_time() {
        let timers = TimerPool::default();
        for _ in 0..3 {
            timers.read_in_time(pin!(after(STALL_TIMEOUT - SECOND)), &BodyProgress::default()).await.unwrap();
            assert_eq!(timers.spare_timers().len(), 1);
        }
        let refusal =
            timers.read_in_time(pin!(after(STALL_TIMEOUT + SECOND)), &BodyProgress::default()).await.unwrap_err();
        assert_eq!(refusal.code, Code::DeadlineExceeded);
        // Also with a timer that has expired before.
        let refusal = timers.read_in_time(pin!(after(STALL_TIMEOUT * 2)), &BodyProgress::default()).await.unwrap_err();
        assert_eq!(refusal.code, Code::DeadlineExceeded);
        timers.read_in_time(pin!(after(STALL_TIMEOUT / 2)), &BodyProgress::default()).await.unwrap();
        assert_eq!(timers.spare_timers().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn message_that_keeps_arriving_has_until_its_deadline() {
        let timers = TimerPool::default();
        let pace = BodyProgress::default();
        timers.read_in_time(pin!(arriving(&pace, 4 * SECOND, BODY_TIMEOUT - SECOND)), &pace).await.unwrap();
        let pace = BodyProgress::default();
        let refusal =
            timers.read_in_time(pin!(arriving(&pace, 4 * SECOND, BODY_TIMEOUT * 2)), &pace).await.unwrap_err();
        assert!(refusal.message.contains("60s"), "{refusal}");
        let pace = BodyProgress::default();
        let began = Instant::now();
        let refusal = timers.read_in_time(pin!(arriving(&pace, 11 * SECOND, BODY_TIMEOUT)), &pace).await.unwrap_err();
        assert!(refusal.message.contains("5s"), "{refusal}");
        assert_eq!(began.elapsed().as_secs(), 5);
        let pace = BodyProgress::with_timeout(2 * SECOND);
        let refusal = timers.read_in_time(pin!(arriving(&pace, SECOND, BODY_TIMEOUT)), &pace).await.unwrap_err();
        assert!(refusal.message.contains("2s"), "{refusal}");
        assert_eq!(timers.spare_timers().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_that_wait_at_once_have_timers_of_their_own() {
        let timers = TimerPool::default();
        let soon = pin!(after(SECOND));
        let late = pin!(after(STALL_TIMEOUT * 2));
        let pace = BodyProgress::default();
        let other = BodyProgress::default();
        let (one, two) = tokio::join!(timers.read_in_time(soon, &pace), timers.read_in_time(late, &other));
        assert!(one.is_ok());
        assert_eq!(two.unwrap_err().code, Code::DeadlineExceeded);
        assert_eq!(timers.spare_timers().len(), 2);
    }
}
