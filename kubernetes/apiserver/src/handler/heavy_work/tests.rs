use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::sync::{Barrier, Notify};

use super::HeavyWork;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn heavy_work_leaves_the_async_thread_to_others() {
    let heavy = Arc::new(HeavyWork::default());
    let begun = Arc::new(Notify::new());
    let over = std::sync::mpsc::channel::<()>();
    let (release, released) = over;
    let worker = Arc::clone(&heavy);
    let started = Arc::clone(&begun);
    let task = tokio::spawn(async move {
        worker
            .run(async move {
                started.notify_one();
                // Computes until another task has run.
                released.recv().ok();
            })
            .await;
    });
    begun.notified().await;
    tokio::spawn(async move { release.send(()).ok() }).await.unwrap();
    task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_work_is_bounded_in_number() {
    let heavy = Arc::new(HeavyWork::default());
    let now = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..heavy.max_concurrent() * 4)
        .map(|_| {
            let heavy = Arc::clone(&heavy);
            let now = Arc::clone(&now);
            let most = Arc::clone(&most);
            tokio::spawn(async move {
                heavy
                    .run(async {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(2));
                        now.fetch_sub(1, Ordering::SeqCst);
                    })
                    .await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert!(most.load(Ordering::SeqCst) <= heavy.max_concurrent());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_request_holds_no_place() {
    let heavy = Arc::new(HeavyWork::default());
    // More requests than permits, and none goes on before all have arrived.
    let barrier = Arc::new(Barrier::new(heavy.max_concurrent() + 3));
    let tasks: Vec<_> = (0..heavy.max_concurrent() + 3)
        .map(|_| {
            let heavy = Arc::clone(&heavy);
            let barrier = Arc::clone(&barrier);
            tokio::spawn(async move { heavy.run(async move { barrier.wait().await.is_leader() }).await })
        })
        .collect();
    let mut leaders = 0;
    for task in tasks {
        leaders += usize::from(task.await.unwrap());
    }
    assert_eq!(leaders, 1);
}
