//! Streams of an HTTP/2 connection, run in the task of the connection.
//!
//! hyper hands every stream to an executor. Spawned as tasks of their own they wake other threads, which then work on
//! bytes that are in this one's cache. Here they stay: a connection with all its streams is one task, and what one of them
//! asks of another is done in the same turn. What takes long (decompression) must therefore be spawned by the stream
//! itself. Each has a waker of its own, which stays with its seat: the next one that sits there uses it again. A stream is polled
//! when it is new and when it asks, and never else.
//!
//! *Guarantees.* A stream that panics ends alone. What was handed over and never ran goes when the connection does. *Assumes*
//! that the connection bounds its streams: HTTP/2 does, by their number and by how many may be reset before they were
//! accepted.

mod seats;

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use hyper::rt::Executor;

use self::seats::Seats;

/// How often the connection and its streams take turns before other tasks have theirs.
const TURNS: usize = 16;

/// A stream, whose panic is its own: the others of its connection go on.
struct Alone(Pin<Box<dyn Future<Output = ()> + Send>>);

impl Future for Alone {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            tracing::error!("a request made the collector panic; its connection goes on");
            Poll::Ready(())
        })
    }
}

/// Takes the streams of one connection.
#[derive(Clone, Default)]
pub struct InTask(Arc<Mutex<Handed>>);

/// Streams that were handed over and have not begun.
#[derive(Default)]
struct Handed {
    streams: Vec<Alone>,
    /// The connection is gone, and nobody will run what is handed over.
    ended: bool,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for InTask {
    fn execute(&self, stream: F) {
        let stream = Alone(Box::pin(stream));
        let mut handed = self.handed();
        if !handed.ended {
            handed.streams.push(stream);
        }
    }
}

impl InTask {
    fn handed(&self) -> MutexGuard<'_, Handed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the connection with its streams. It ends when the connection does; streams that are left are dropped.
    pub fn run<C: Future>(self, connection: C) -> Run<C> {
        let bell = Arc::new(Bell::default());
        Run {
            connection: Box::pin(connection),
            new: self,
            begin: Vec::new(),
            go_on: Vec::new(),
            streams: Seats::new(bell.clone()),
            waker: Waker::from(bell.clone()),
            bell,
        }
    }
}

/// A connection with its streams.
pub struct Run<C> {
    connection: Pin<Box<C>>,
    new: InTask,
    streams: Seats,
    /// Those that are polled for the first time; empty between turns.
    begin: Vec<Alone>,
    /// The seats of those that are polled again; empty between turns.
    go_on: Vec<usize>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// The waker of the connection, and where its streams ask for their turns. What wakes one of them during a turn costs no turn of
/// the scheduler.
#[derive(Default)]
struct Bell {
    rang: AtomicBool,
    in_turn: AtomicBool,
    task: Mutex<Option<Waker>>,
    /// The seats of streams that ask to be polled.
    asking: Mutex<Vec<usize>>,
}

impl Bell {
    /// Wakes the task, unless it is in a turn and will look at the end of it.
    fn stir(&self) {
        if !self.in_turn.load(Ordering::SeqCst)
            && let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner)
        {
            task.wake_by_ref();
        }
    }

    fn asking(&self) -> MutexGuard<'_, Vec<usize>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Sequentially consistent, as is the end of a turn: one of the two sees the other.
        self.rang.store(true, Ordering::SeqCst);
        self.stir();
    }
}

impl<C: Future> Run<C> {
    /// The connection itself.
    pub fn connection(&mut self) -> Pin<&mut C> {
        self.connection.as_mut()
    }

    /// Polls the connection, then its streams.
    fn turn(&mut self) -> Poll<C::Output> {
        let cx = &mut Context::from_waker(&self.waker);
        if let Poll::Ready(end) = self.connection.as_mut().poll(cx) {
            return Poll::Ready(end);
        }
        std::mem::swap(&mut self.begin, &mut self.new.handed().streams);
        self.begin.drain(..).for_each(|stream| self.streams.begin(stream));
        std::mem::swap(&mut self.go_on, &mut *self.bell.asking());
        self.go_on.drain(..).for_each(|seat| self.streams.go_on(seat));
        Poll::Pending
    }

    /// Whether the connection or a stream wants another turn.
    fn is_wanted(&self) -> bool {
        self.bell.rang.load(Ordering::SeqCst) || !self.bell.asking().is_empty() || !self.new.handed().streams.is_empty()
    }
}

impl<C> Drop for Run<C> {
    fn drop(&mut self) {
        // A stream holds the executor that it was handed to, so that those in it would hold themselves for ever.
        let never_ran = {
            let mut handed = self.new.handed();
            handed.ended = true;
            std::mem::take(&mut handed.streams)
        };
        drop(never_ran);
    }
}

impl<C: Future> Future for Run<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let me = self.get_mut();
        {
            let mut task = me.bell.task.lock().unwrap_or_else(PoisonError::into_inner);
            if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
                *task = Some(cx.waker().clone());
            }
        }
        me.bell.in_turn.store(true, Ordering::SeqCst);
        for _ in 0..TURNS {
            me.bell.rang.store(false, Ordering::SeqCst);
            if let Poll::Ready(end) = me.turn() {
                return Poll::Ready(end);
            }
            if !me.is_wanted() {
                break;
            }
        }
        me.bell.in_turn.store(false, Ordering::SeqCst);
        if me.is_wanted() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[tokio::test]
    async fn streams_run_while_the_connection_does() {
        let streams = InTask::default();
        let (first, second) = (tokio::sync::oneshot::channel(), tokio::sync::oneshot::channel());
        let spawn = streams.clone();
        let connection = async move {
            spawn.execute(async move { first.0.send(1).unwrap() });
            let one = first.1.await.unwrap();
            spawn.execute(async move { second.0.send(2).unwrap() });
            one + second.1.await.unwrap()
        };
        assert_eq!(streams.run(connection).await, 3);
    }

    #[tokio::test]
    async fn a_stream_can_start_another() {
        let streams = InTask::default();
        let (done, wait) = tokio::sync::oneshot::channel();
        let spawn = streams.clone();
        streams.execute(async move { spawn.execute(async move { done.send(()).unwrap() }) });
        streams.run(wait).await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_that_never_ran_goes_with_its_connection() {
        let (streams, held) = (InTask::default(), Arc::new(()));
        let (spawn, holds) = (streams.clone(), held.clone());
        // As hyper's streams do, it holds on to the executor.
        let stream = |holds: Arc<()>| {
            let executor = spawn.clone();
            async move { drop((executor, holds)) }
        };
        let connection = async {
            spawn.execute(stream(holds));
        };
        streams.run(connection).await;
        assert_eq!(Arc::strong_count(&held), 1, "it is gone");
        spawn.execute(stream(held.clone()));
        assert_eq!(Arc::strong_count(&held), 1, "nothing is kept for a connection that is gone");
    }

    #[tokio::test]
    async fn a_stream_that_panics_takes_nobody_along() {
        let (streams, (done, wait)) = (InTask::default(), tokio::sync::oneshot::channel());
        streams.execute(async { panic!("of one stream") });
        streams.execute(async move {
            tokio::task::yield_now().await;
            done.send(()).unwrap();
        });
        streams.run(wait).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_wakes_it_from_another_thread_is_heard() {
        for _ in 0..2000 {
            let (streams, (done, wait)) = (InTask::default(), tokio::sync::oneshot::channel());
            streams.execute(async move {
                let other = tokio::spawn(async { tokio::task::yield_now().await });
                other.await.unwrap();
                done.send(()).unwrap();
            });
            let run = tokio::spawn(async { streams.run(wait).await.unwrap() });
            tokio::time::timeout(std::time::Duration::from_secs(10), run).await.expect("woken").unwrap();
        }
    }

    #[tokio::test]
    async fn a_stream_is_polled_when_it_is_new_and_when_it_asks() {
        let (streams, polls) = (InTask::default(), Arc::new(AtomicUsize::new(0)));
        let (ring, rung) = tokio::sync::oneshot::channel::<()>();
        let (counted, mut rung) = (polls.clone(), Box::pin(rung));
        let (done, wait) = tokio::sync::oneshot::channel();
        streams.execute(async move {
            let counted = std::future::poll_fn(|cx| {
                counted.fetch_add(1, Ordering::Relaxed);
                rung.as_mut().poll(cx)
            });
            done.send(counted.await).unwrap();
        });
        let connection = async {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            ring.send(()).unwrap();
            wait.await.unwrap().unwrap();
        };
        streams.run(connection).await;
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_seat_serves_one_stream_after_the_other() {
        let streams = InTask::default();
        let spawn = streams.clone();
        let connection = async move {
            for _ in 0..100 {
                let (done, wait) = tokio::sync::oneshot::channel();
                spawn.execute(async move {
                    tokio::task::yield_now().await;
                    done.send(()).unwrap();
                });
                wait.await.unwrap();
            }
        };
        let mut run = streams.run(connection);
        (&mut run).await;
        assert_eq!(run.streams.len(), 1);
    }

    #[tokio::test]
    async fn a_connection_that_is_never_idle_leaves_time_to_others() {
        let always = std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let busy = InTask::default().run(always);
        tokio::select! {
            () = busy => {}
            () = async { tokio::task::yield_now().await } => {}
        }
    }
}
