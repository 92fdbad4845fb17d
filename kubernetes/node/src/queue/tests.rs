use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Runs the queue until this number of keys was processed.
async fn looks(
    queue: WorkQueue<String>,
    count: usize,
    look: impl Fn(String, usize) -> Result<RequeueAfter>,
) -> Vec<String> {
    let seen = Mutex::new(Vec::new());
    let number = AtomicUsize::new(0);
    let done = Notify::new();
    let run = queue.run_workers("test", 2, |key| {
        let nth = number.fetch_add(1, Ordering::SeqCst);
        seen.lock().push(key.clone());
        let outcome = look(key, nth);
        if nth + 1 == count {
            done.notify_one();
        }
        async move { outcome }
    });
    tokio::select! {
        () = run => {}
        () = done.notified() => {}
    }
    seen.into_inner()
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_is_looked_at_once() {
    let queue = WorkQueue::default();
    queue.add("a".to_owned());
    queue.add("a".to_owned());
    queue.add_after("a".to_owned(), Duration::from_secs(1));
    queue.add_after("b".to_owned(), Duration::from_secs(2));
    assert_eq!(looks(queue, 2, |_, _| Ok(None)).await, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn earlier_wins() {
    let queue = WorkQueue::default();
    queue.add_after("late".to_owned(), Duration::from_secs(9));
    queue.add_after("a".to_owned(), Duration::from_secs(5));
    queue.add_after("late".to_owned(), Duration::from_secs(1));
    assert_eq!(looks(queue, 2, |_, _| Ok(None)).await, ["late", "a"]);
}

#[tokio::test(start_paused = true)]
async fn what_failed_is_tried_again_and_later_each_time() {
    let queue = WorkQueue::default();
    queue.add("a".to_owned());
    let begun = Instant::now();
    let seen = looks(queue, 6, |_, nth| if nth < 5 { Err(ClusterError::Object("no".into())) } else { Ok(None) }).await;
    assert_eq!(seen.len(), 6);
    assert!(begun.elapsed() >= INITIAL_RETRY_DELAY * (1 + 2 + 4 + 8 + 16), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_that_changes_while_it_is_looked_at_is_looked_at_again() {
    let queue = WorkQueue::default();
    queue.add("a".to_owned());
    let again = queue.clone();
    let seen = looks(queue, 2, move |key, nth| {
        if nth == 0 {
            again.add(key);
        }
        Ok(None)
    });
    assert_eq!(seen.await, ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_of_one_key() {
    let queue = WorkQueue::default();
    queue.add("a".to_owned());
    queue.add("b".to_owned());
    let seen = Mutex::new(Vec::new());
    let done = Notify::new();
    let run = queue.run_workers("test", 1, |key: String| {
        let nth = {
            let mut seen = seen.lock();
            seen.push(key);
            seen.len()
        };
        if nth == 3 {
            done.notify_one();
        }
        async move {
            assert!(nth != 1, "only the first panics");
            Ok(None)
        }
    });
    tokio::select! {
        () = run => {}
        () = done.notified() => {}
    }
    assert_eq!(*seen.lock(), ["a", "b", "a"]);
}
