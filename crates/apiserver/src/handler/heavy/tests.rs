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
    let (begun, over) = (Arc::new(Notify::new()), std::sync::mpsc::channel::<()>());
    let (release, released) = over;
    let (worker, started) = (Arc::clone(&heavy), Arc::clone(&begun));
    let task = tokio::spawn(async move {
        worker
            .run(async move {
                started.notify_one();
                // Computes until somebody else has been served.
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
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..heavy.limit() * 4)
        .map(|_| {
            let (heavy, now, most) = (Arc::clone(&heavy), Arc::clone(&now), Arc::clone(&most));
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
    assert!(most.load(Ordering::SeqCst) <= heavy.limit());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_request_holds_no_place() {
    let heavy = Arc::new(HeavyWork::default());
    // More than there are places, and none goes on before all have come.
    let barrier = Arc::new(Barrier::new(heavy.limit() + 3));
    let tasks: Vec<_> = (0..heavy.limit() + 3)
        .map(|_| {
            let (heavy, barrier) = (Arc::clone(&heavy), Arc::clone(&barrier));
            tokio::spawn(async move { heavy.run(async move { barrier.wait().await.is_leader() }).await })
        })
        .collect();
    let mut leaders = 0;
    for task in tasks {
        leaders += usize::from(task.await.unwrap());
    }
    assert_eq!(leaders, 1);
}
