//! Work that takes long, away from the threads that serve connections.
//!
//! A thread of the runtime serves many connections, and whatever it works on holds up all of them. Work on a large request
//! therefore runs on threads of its own, no more of them at once than there are cores. Turns are given in the order in which
//! they are asked for; [`SenderPlaces`] bounds how many of those that ask are of one sender.
//!
//! *Guarantees.* Work on a small request runs where it is, and costs nothing here. A panic is passed on to whoever asked.
//! *Does not* stop work that has begun when nobody waits for it any more.

use std::sync::{Arc, LazyLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests from this size on are worked on elsewhere. Work on the worst of them, all of empty records, takes about 100 ns
/// a byte in the slowest processor: smaller ones hold up a thread for less than 30 ms, and ordinary ones of this size, at
/// 1 ns a byte, for less than one. To change threads costs some ten microseconds.
pub const HEAVY_BYTES: usize = 256 << 10;

/// Turns of heavy work: cores are the process's, so that these are, too.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(turns()));

fn turns() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The places of one sender among all that wait for a turn or have one: as many as there are turns, so that it can use every
/// core while nobody else wants one. A sender that opens hundreds of connections is then ahead of another one by one turn,
/// and not by hundreds.
#[derive(Debug)]
pub struct SenderPlaces(Arc<Semaphore>);

impl Default for SenderPlaces {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(turns())))
    }
}

impl SenderPlaces {
    /// Waits for a place. The semaphore is never closed, so that there is one in the end.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().acquire_owned().await.ok()
    }
}

/// Does work on so many bytes: here if they are few, and on another thread otherwise.
pub async fn run<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes < HEAVY_BYTES { work() } else { elsewhere(work).await }
}

/// Does work on another thread.
pub async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // The semaphore is never closed, so that there is always a turn to wait for.
    let turn = TURNS.acquire().await;
    let result = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    });
    match result.await {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is going down, and this task with it.
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
        assert_eq!(run(HEAVY_BYTES - 1, || std::thread::current().id()).await, here);
        assert_ne!(run(HEAVY_BYTES, || std::thread::current().id()).await, here);
    }

    /// Runs on one thread, so that tasks ask for turns in the order in which they are spawned.
    #[tokio::test]
    async fn sender_with_hundreds_of_requests_is_ahead_of_another_by_one_turn() {
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (greedy, other) = (Arc::new(SenderPlaces::default()), Arc::new(SenderPlaces::default()));
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let gate = Arc::new(std::sync::Mutex::new(gate));
        let request = |name: &'static str, places: &Arc<SenderPlaces>| {
            let (order, gate, places) = (order.clone(), gate.clone(), places.clone());
            tokio::spawn(async move {
                let place = places.take().await;
                elsewhere(move || {
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
        // Threads that begin at once may note it in another order.
        assert!(before < 3 * turns(), "{before} requests of another sender went before it");
    }

    #[tokio::test]
    async fn panic_of_heavy_work_reaches_whoever_asked() {
        let work = tokio::spawn(run(HEAVY_BYTES, || panic!("on purpose")));
        assert!(work.await.unwrap_err().is_panic());
    }
}
