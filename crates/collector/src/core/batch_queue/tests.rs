use std::{sync::Arc, time::Duration};

use super::*;
use crate::core::testing::{numbers, request, settle, spans};

fn settings() -> Settings {
    Settings { num_consumers: 2, queue_size: 100, ..Settings::default() }
}

fn push(queue: &BatchQueue, batch: Batch, settings: &Settings) -> bool {
    let PushResult::Accepted { start_worker } = queue.push(batch, None, settings, false, &QueueGauge::default()) else {
        panic!("there is room");
    };
    start_worker
}

#[test]
fn workers_are_asked_for_up_to_the_limit_and_again_when_they_have_ended() {
    let queue = BatchQueue::default();
    let asked: Vec<bool> = (0..4).map(|_| push(&queue, spans(1), &settings())).collect();
    assert_eq!(asked, [true, true, false, false]);
    for _ in 0..4 {
        assert!(matches!(queue.take(Some(&settings())), TakeResult::Job(_)));
    }
    assert!(matches!(queue.take(Some(&settings())), TakeResult::Nothing));
    assert!(push(&queue, spans(1), &settings()), "in the place of the one that ended");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_company_wakes_when_there_is_enough() {
    let batch =
        QueueBatch { flush_timeout: Duration::from_secs(60), min_size: 3, max_size: 0, sizer: QueueSizer::Items };
    let settings = Settings { batch: Some(batch), ..settings() };
    let queue = Arc::new(BatchQueue::default());
    push(&queue, request([1]), &settings);
    let worker = tokio::spawn({
        let queue = queue.clone();
        let settings = settings.clone();
        async move { queue.next_job(|| Some(settings.clone())).await }
    });
    settle().await;
    push(&queue, request([2]), &settings);
    settle().await;
    assert!(!worker.is_finished());
    push(&queue, request([3]), &settings);
    let job = worker.await.unwrap().unwrap();
    assert_eq!(numbers(&job.batches[0]), [1, 2, 3]);
    assert_eq!(job.size.requests, 3);
}

#[tokio::test(start_paused = true)]
async fn the_gauge_and_the_room_follow_what_is_held() {
    let queue = BatchQueue::default();
    let gauge = QueueGauge::default();
    let settings = Settings { sizer: QueueSizer::Items, queue_size: 5, ..settings() };
    let pushed = |n| matches!(queue.push(spans(n), None, &settings, false, &gauge), PushResult::Accepted { .. });
    assert!(pushed(3) && !pushed(3) && pushed(2));
    assert_eq!(gauge.size(), 5);
    let job = queue.next_job(|| Some(settings.clone())).await.unwrap();
    assert!(!queue.has_room(&spans(1), &settings), "what is being sent still counts");
    queue.finish_job(job.size, job.oldest_enqueued_at, settings.sizer, &gauge);
    assert_eq!(gauge.size(), 2);
    assert!(queue.has_room(&spans(3), &settings));
}

#[tokio::test(start_paused = true)]
async fn the_oldest_is_what_came_first_and_is_still_held_also_by_a_worker() {
    let queue = BatchQueue::default();
    let gauge = QueueGauge::default();
    let second = Duration::from_secs(1);
    let push =
        || assert!(matches!(queue.push(spans(1), None, &settings(), false, &gauge), PushResult::Accepted { .. }));
    let age = || gauge.oldest().map(|at| at.elapsed());
    assert_eq!(age(), None);
    push();
    tokio::time::advance(second).await;
    push();
    let [first, next] =
        [queue.next_job(|| Some(settings())).await.unwrap(), queue.next_job(|| Some(settings())).await.unwrap()];
    tokio::time::advance(second).await;
    assert_eq!(age(), Some(2 * second), "what is being sent still counts");
    push();
    queue.finish_job(first.size, first.oldest_enqueued_at, QueueSizer::Requests, &gauge);
    assert_eq!(age(), Some(second));
    queue.finish_job(next.size, next.oldest_enqueued_at, QueueSizer::Requests, &gauge);
    assert_eq!(age(), Some(Duration::ZERO), "the third, which nobody has begun with");
}
