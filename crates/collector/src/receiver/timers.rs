//! How long a message may take to arrive.
//!
//! Most are here when they are first asked for, and need no timer. Of the others nearly all are here a moment later: a sender's
//! headers travel ahead of its data. To enter a timer and to remove it again takes a lock that all threads share, twice; to put off
//! one that runs takes none. So a connection keeps the timers that its calls have done with.
//!
//! *Guarantees.* A timer that nobody waits for wakes its connection once at most, when its time has come.

use std::{
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

use super::calls::refuse;
use crate::core::{Code, Refusal};

/// A body must arrive within this time: it holds memory while it does.
const LIMIT: Duration = Duration::from_secs(60);

/// The timers of a connection: as many as it ever had messages to wait for at once.
#[derive(Default)]
pub(super) struct Timers(Mutex<Vec<Pin<Box<Sleep>>>>);

impl Timers {
    /// Reads a message, and gives up when it takes too long to arrive.
    pub(super) async fn limit<T>(
        &self,
        mut read: Pin<&mut impl Future<Output = Result<T, Refusal>>>,
    ) -> Result<T, Refusal> {
        let mut timer = None;
        let read = std::future::poll_fn(|cx| {
            if let Poll::Ready(result) = read.as_mut().poll(cx) {
                return Poll::Ready(result);
            }
            let timer = timer.get_or_insert_with(|| self.start());
            timer.as_mut().poll(cx).map(|()| Err(too_slow()))
        });
        let result = read.await;
        self.spare().extend(timer);
        result
    }

    fn start(&self) -> Pin<Box<Sleep>> {
        let end = Instant::now() + LIMIT;
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

/// As [`Timers::limit`], for what is read too seldom to keep timers for.
pub(super) async fn in_time<T>(read: Pin<&mut impl Future<Output = Result<T, Refusal>>>) -> Result<T, Refusal> {
    Timers::default().limit(read).await
}

fn too_slow() -> Refusal {
    refuse(Code::DeadlineExceeded, format!("the message did not arrive within {LIMIT:?}"))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    async fn after(time: Duration) -> Result<(), Refusal> {
        tokio::time::sleep(time).await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_here_needs_no_timer() {
        let timers = Timers::default();
        timers.limit(pin!(async { Ok(()) })).await.unwrap();
        assert!(timers.spare().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_serves_one_message_after_the_other_and_each_has_the_whole_time() {
        let timers = Timers::default();
        for _ in 0..3 {
            timers.limit(pin!(after(LIMIT - Duration::from_secs(1)))).await.unwrap();
            assert_eq!(timers.spare().len(), 1);
        }
        let refusal = timers.limit(pin!(after(LIMIT + Duration::from_secs(1)))).await.unwrap_err();
        assert_eq!(refusal.code, Code::DeadlineExceeded);
        // Also after it has rung.
        let refusal = timers.limit(pin!(after(LIMIT * 2))).await.unwrap_err();
        assert_eq!(refusal.code, Code::DeadlineExceeded);
        timers.limit(pin!(after(LIMIT / 2))).await.unwrap();
        assert_eq!(timers.spare().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_that_wait_at_once_have_timers_of_their_own() {
        let timers = Timers::default();
        let (soon, late) = (pin!(after(Duration::from_secs(1))), pin!(after(LIMIT * 2)));
        let (one, two) = tokio::join!(timers.limit(soon), timers.limit(late));
        assert!(one.is_ok());
        assert_eq!(two.unwrap_err().code, Code::DeadlineExceeded);
        assert_eq!(timers.spare().len(), 2);
    }
}
