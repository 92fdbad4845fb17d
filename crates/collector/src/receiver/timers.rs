//! How long a message may take to arrive.
//!
//! Most are here when they are first asked for, and need no timer. Of the others nearly all are here a moment later: a sender's
//! headers travel ahead of its data. To enter a timer and to remove it again takes a lock that all threads share, twice; to put off
//! one that runs takes none. So a connection keeps the timers that its calls have done with.
//!
//! *Guarantees.* A timer that nobody waits for wakes its connection once at most, when its time has come.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

use super::calls::refuse;
use crate::core::{Code, Refusal};

/// A body must arrive within this time where the settings name none: it holds memory while it does.
pub(super) const BODY_LIMIT: Duration = Duration::from_secs(60);
/// Some of a body must arrive within this time, again and again: a sender that stopped holds memory for nothing.
pub(super) const STALL_LIMIT: Duration = Duration::from_secs(5);

/// How much of a body has arrived, and how long all of it may take.
pub(super) struct Pace {
    limit: Duration,
    arrived: AtomicUsize,
}

impl Pace {
    pub(super) fn within(limit: Duration) -> Self {
        Self { limit, arrived: AtomicUsize::new(0) }
    }

    /// Notes that some of the body arrived. One that is here as a whole need not be noted.
    pub(super) fn advance(&self, bytes: usize) {
        self.arrived.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self::within(BODY_LIMIT)
    }
}

/// A body that took too long to arrive, or stopped arriving.
#[derive(Debug)]
pub(super) enum TooSlow {
    /// All of it did not arrive within this time.
    Late(Duration),
    /// Nothing of it arrived for [`STALL_LIMIT`].
    Stalled,
}

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(limit) => write!(f, "the message did not arrive within {limit:?}"),
            Self::Stalled => write!(f, "nothing of the message arrived for {STALL_LIMIT:?}"),
        }
    }
}

impl From<TooSlow> for Refusal {
    fn from(error: TooSlow) -> Self {
        refuse(Code::DeadlineExceeded, error.to_string())
    }
}

/// The timers of a connection: as many as it ever had messages to wait for at once.
#[derive(Default)]
pub(super) struct Timers(Mutex<Vec<Pin<Box<Sleep>>>>);

impl Timers {
    /// Reads a message, and gives up when it takes too long to arrive or stops arriving.
    pub(super) async fn limit<T, E: From<TooSlow>>(
        &self,
        mut read: Pin<&mut impl Future<Output = Result<T, E>>>,
        pace: &Pace,
    ) -> Result<T, E> {
        let mut watch = None;
        let read = std::future::poll_fn(|cx| {
            if let Poll::Ready(result) = read.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            let watch = watch.get_or_insert_with(|| Watch::start(self, pace));
            watch.poll(cx, pace).map(|slow| Err(slow.into()))
        });
        let result = read.await;
        self.spare().extend(watch.map(|watch| watch.timer));
        result
    }

    fn start(&self, end: Instant) -> Pin<Box<Sleep>> {
        let spare = self.spare().pop();
        match spare {
            None => Box::pin(sleep_until(end)),
            Some(mut timer) => {
                timer.as_mut().reset(end);
                timer
            }
        }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Pin<Box<Sleep>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches over a message that is not here yet. The timer is put off whenever it rings and something has arrived since, not for
/// each piece that arrives.
struct Watch {
    timer: Pin<Box<Sleep>>,
    deadline: Instant,
    arrived: usize,
}

impl Watch {
    fn start(timers: &Timers, pace: &Pace) -> Self {
        let now = Instant::now();
        let arrived = pace.arrived.load(Ordering::Relaxed);
        Self { timer: timers.start(now + STALL_LIMIT.min(pace.limit)), deadline: now + pace.limit, arrived }
    }

    fn poll(&mut self, cx: &mut Context<'_>, pace: &Pace) -> Poll<TooSlow> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let (now, arrived) = (Instant::now(), pace.arrived.load(Ordering::Relaxed));
            if now >= self.deadline {
                return Poll::Ready(TooSlow::Late(pace.limit));
            }
            if arrived == self.arrived {
                return Poll::Ready(TooSlow::Stalled);
            }
            self.arrived = arrived;
            self.timer.as_mut().reset(self.deadline.min(now + STALL_LIMIT));
        }
    }
}

/// As [`Timers::limit`], for what is read too seldom to keep timers for.
pub(super) async fn in_time<T, E: From<TooSlow>>(
    read: Pin<&mut impl Future<Output = Result<T, E>>>,
    pace: &Pace,
) -> Result<T, E> {
    Timers::default().limit(read, pace).await
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
    async fn arriving(pace: &Pace, interval: Duration, time: Duration) -> Result<(), Refusal> {
        let end = Instant::now() + time;
        while Instant::now() + interval < end {
            tokio::time::sleep(interval).await;
            pace.advance(1);
        }
        tokio::time::sleep_until(end).await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_here_needs_no_timer() {
        let timers = Timers::default();
        timers.limit(pin!(async { Ok::<_, Refusal>(()) }), &Pace::default()).await.unwrap();
        assert!(timers.spare().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_serves_one_message_after_the_other_and_each_has_the_whole_time() {
        let timers = Timers::default();
        for _ in 0..3 {
            timers.limit(pin!(after(STALL_LIMIT - SECOND)), &Pace::default()).await.unwrap();
            assert_eq!(timers.spare().len(), 1);
        }
        let refusal = timers.limit(pin!(after(STALL_LIMIT + SECOND)), &Pace::default()).await.unwrap_err();
        assert_eq!(refusal.code, Code::DeadlineExceeded);
        // Also after it has rung.
        let refusal = timers.limit(pin!(after(STALL_LIMIT * 2)), &Pace::default()).await.unwrap_err();
        assert_eq!(refusal.code, Code::DeadlineExceeded);
        timers.limit(pin!(after(STALL_LIMIT / 2)), &Pace::default()).await.unwrap();
        assert_eq!(timers.spare().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn message_that_keeps_arriving_has_until_its_deadline() {
        let timers = Timers::default();
        let pace = Pace::default();
        timers.limit(pin!(arriving(&pace, 4 * SECOND, BODY_LIMIT - SECOND)), &pace).await.unwrap();
        let pace = Pace::default();
        let refusal = timers.limit(pin!(arriving(&pace, 4 * SECOND, BODY_LIMIT * 2)), &pace).await.unwrap_err();
        assert!(refusal.message.contains("60s"), "{refusal}");
        let (pace, began) = (Pace::default(), Instant::now());
        let refusal = timers.limit(pin!(arriving(&pace, 11 * SECOND, BODY_LIMIT)), &pace).await.unwrap_err();
        assert!(refusal.message.contains("5s"), "{refusal}");
        assert_eq!(began.elapsed().as_secs(), 5);
        let pace = Pace::within(2 * SECOND);
        let refusal = timers.limit(pin!(arriving(&pace, SECOND, BODY_LIMIT)), &pace).await.unwrap_err();
        assert!(refusal.message.contains("2s"), "{refusal}");
        assert_eq!(timers.spare().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_that_wait_at_once_have_timers_of_their_own() {
        let timers = Timers::default();
        let (soon, late) = (pin!(after(SECOND)), pin!(after(STALL_LIMIT * 2)));
        let (pace, other) = (Pace::default(), Pace::default());
        let (one, two) = tokio::join!(timers.limit(soon, &pace), timers.limit(late, &other));
        assert!(one.is_ok());
        assert_eq!(two.unwrap_err().code, Code::DeadlineExceeded);
        assert_eq!(timers.spare().len(), 2);
    }
}
