//! A pool for work that takes too long for the threads that serve connections.
//!
//! A thread of the runtime serves many connections, and long work holds up all of them. Work on a large request
//! therefore runs on separate threads, no more of them at once than there are cores. Permits are granted in the
//! order of the requests for them. [`HeavyWorkSlots`] bounds how many of the waiting requests belong to one
//! sender.
//!
//! *Guarantees.* Work on a small request runs in place, without overhead. A panic is passed on to the caller.
//! *Does not* cancel work that has begun when its caller is gone.

use std::sync::{Arc, LazyLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests from this size on are processed by another thread. The worst of them, those of empty records, take
/// about 100 ns per byte in the slowest processor: smaller ones hold up a thread for less than 30 ms, and
/// ordinary ones of this size, at 1 ns per byte, for less than 1 ms. Changing threads costs about ten
/// microseconds.
pub const HEAVY_WORK_MIN_BYTES: usize = 256 << 10;

/// Permits for heavy work, one per core. Static because cores belong to the process.
static HEAVY_WORK_PERMITS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(max_concurrent_heavy_work()));

fn max_concurrent_heavy_work() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The slots of one sender for heavy work that waits or runs: as many as there are permits, so that a single
/// sender can use every core when no other wants one. A sender that opens hundreds of connections is then ahead
/// of another one by one permit, and not by hundreds.
#[derive(Debug)]
pub struct HeavyWorkSlots(Arc<Semaphore>);

impl Default for HeavyWorkSlots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(max_concurrent_heavy_work())))
    }
}

impl HeavyWorkSlots {
    /// Waits for a slot. `acquire_owned` fails only on a closed semaphore; this one is never closed.
    pub(super) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().acquire_owned().await.ok()
    }
}

/// Does work on `bytes` bytes: in place if they are few, and on another thread otherwise.
pub async fn run<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes < HEAVY_WORK_MIN_BYTES { work() } else { run_on_pool(work).await }
}

/// Does work on another thread.
pub async fn run_on_pool<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // `acquire` fails only on a closed semaphore; this one is never closed.
    let turn = HEAVY_WORK_PERMITS.acquire().await;
    let result = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    match result.await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_request_is_worked_on_by_another_thread() {
        let here = std::thread::current().id();
        assert_eq!(run(HEAVY_WORK_MIN_BYTES - 1, || std::thread::current().id()).await, here);
        assert_ne!(run(HEAVY_WORK_MIN_BYTES, || std::thread::current().id()).await, here);
    }

    /// Runs on one thread, so that tasks ask for permits in the order in which they are spawned.
    #[tokio::test]
    async fn sender_with_hundreds_of_requests_is_ahead_of_another_by_one_turn() {
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let greedy = Arc::new(HeavyWorkSlots::default());
        let other = Arc::new(HeavyWorkSlots::default());
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(std::sync::Mutex::new(gate));
        let request = |name: &'static str, places: &Arc<HeavyWorkSlots>| {
            let order = order.clone();
            let gate = gate.clone();
            let places = places.clone();
            tokio::spawn(async move {
                let place = places.acquire().await;
                run_on_pool(move || {
                    order.lock().unwrap().push(name);
                    gate.lock().unwrap().recv().unwrap();
                    drop(place);
                })
                .await;
            })
        };
        let mut requests: Vec<_> = (0..200).map(|_| request("greedy", &greedy)).collect();
        requests.push(request("other", &other));
        while order.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        (0..requests.len()).for_each(|_| open.send(()).unwrap());
        for request in requests {
            request.await.unwrap();
        }
        let before = order.lock().unwrap().iter().position(|name| *name == "other").unwrap();
        // Threads that begin at the same time may be recorded in another order.
        assert!(before < 3 * max_concurrent_heavy_work(), "{before} requests of another sender went before it");
    }

    #[tokio::test]
    async fn panic_of_heavy_work_reaches_whoever_asked() {
        let work = tokio::spawn(run(HEAVY_WORK_MIN_BYTES, || panic!("on purpose")));
        assert!(work.await.unwrap_err().is_panic());
    }
}
