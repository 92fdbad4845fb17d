use std::{collections::VecDeque, sync::Mutex};

use super::*;
use crate::core::{
    Code, RefusalKind,
    testing::{settle, spans},
};

enum How {
    Takes,
    IsFull,
    Fails(Code),
    TakesAllBut(u64),
    /// Answers when the test says so.
    Works(Box<How>),
}

/// A consumer that answers by script and records its counts. With `Wait` it takes a batch when the test says
/// so.
#[derive(Default)]
struct Target {
    script: Mutex<VecDeque<How>>,
    go: Notify,
    took: Mutex<usize>,
    began: Mutex<usize>,
    refused: Mutex<usize>,
    lost: Mutex<Vec<DropReason>>,
}

fn target(script: impl IntoIterator<Item = How>) -> Arc<Target> {
    Arc::new(Target { script: Mutex::new(script.into_iter().collect()), ..Target::default() })
}

impl Target {
    fn say(&self, how: &How) -> Result<(), Refusal> {
        match how {
            How::Takes | How::TakesAllBut(_) => {
                *self.took.lock().unwrap() += 1;
                Ok(())
            }
            How::IsFull => Err(Refusal::queue_full()),
            How::Fails(code) => Err(Refusal { kind: RefusalKind::Backend, code: *code, ..Refusal::invalid("no") }),
            How::Works(how) => self.say(how),
        }
    }

    fn later(self: Arc<Self>, how: How) -> ConsumeOutcome {
        ConsumeOutcome::later(async move {
            *self.began.lock().unwrap() += 1;
            self.go.notified().await;
            self.say(&how)
        })
    }

    fn took(&self) -> usize {
        *self.took.lock().unwrap()
    }

    fn refused(&self) -> usize {
        *self.refused.lock().unwrap()
    }

    fn lost(&self) -> Vec<DropReason> {
        self.lost.lock().unwrap().clone()
    }
}

impl Consumer for Target {
    fn consume(self: Arc<Self>, _: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        if pressure == OverflowPolicy::Wait {
            return self.later(How::Takes);
        }
        let how = self.script.lock().unwrap().pop_front().unwrap_or(How::Takes);
        match how {
            How::Works(how) => self.later(*how),
            How::TakesAllBut(items) => {
                ConsumeOutcome::Partial(Box::new(PartialSuccess { items, message: "odd".into() }))
                    .when_taken(move || drop(self.say(&how)))
            }
            how => ConsumeOutcome::Now(self.say(&how)),
        }
    }

    fn count_refused(&self, batch: &Batch) {
        *self.refused.lock().unwrap() += batch.items();
    }

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        assert_eq!(batch.items(), 3);
        self.lost.lock().unwrap().push(reason);
    }
}

fn link(targets: &[&Arc<Target>]) -> Arc<ConsumerFanout> {
    let link = ConsumerFanout::default();
    link.set_targets(targets.iter().map(|t| (*t).clone() as Arc<dyn Consumer>).collect());
    Arc::new(link)
}

#[tokio::test]
async fn it_is_taken_when_one_takes_it_and_the_full_one_counts_a_loss() {
    let full = target([How::IsFull]);
    let roomy = target([How::Takes]);
    assert!(matches!(link(&[&full, &roomy]).offer(spans(3)), ConsumeOutcome::Now(Ok(()))));
    assert_eq!((roomy.took(), full.refused(), full.lost()), (1, 3, vec![DropReason::QueueFull]));
}

#[tokio::test]
async fn what_is_taken_in_part_is_taken_and_the_sender_of_one_hears_of_the_rest() {
    let one = target([How::TakesAllBut(1)]);
    let ConsumeOutcome::Partial(shortfall) = link(&[&one]).offer(spans(3)) else { panic!("a part was taken") };
    assert_eq!((shortfall.items, one.took()), (1, 1));
}

#[tokio::test]
async fn of_several_that_take_a_part_the_sender_hears_what_is_missing_everywhere() {
    let missing = |targets: &[&Arc<Target>]| match link(targets).offer(spans(3)) {
        ConsumeOutcome::Partial(shortfall) => shortfall.items,
        ConsumeOutcome::Now(Ok(())) => 0,
        _ => panic!("some of it was taken"),
    };
    let part = |items| target([How::TakesAllBut(items)]);
    let one = part(1);
    let full = target([How::IsFull]);
    assert_eq!(missing(&[&one, &full]), 1, "the other one has none of it");
    assert_eq!((one.took(), one.lost().len(), full.lost()), (1, 0, vec![DropReason::QueueFull]));
    assert_eq!(missing(&[&part(2), &part(1)]), 1);
    assert_eq!(missing(&[&part(1), &part(2)]), 1);
    assert_eq!(missing(&[&part(2), &target([How::Takes])]), 0);
    assert_eq!(missing(&[&part(3), &part(3)]), 3);
}

#[tokio::test]
async fn whoever_takes_nothing_of_it_does_not_keep_it_from_a_full_one() {
    let none = target([How::TakesAllBut(3)]);
    let full = target([How::IsFull]);
    let refusal = link(&[&none, &full]).offer(spans(3)).wait().await.unwrap_err();
    assert!(refusal.is_retryable());
    assert_eq!((full.refused(), full.lost().len()), (3, 0), "it may still get it");
}

#[tokio::test]
async fn it_is_refused_when_all_are_full_and_nobody_counts_a_loss() {
    let a = target([How::IsFull]);
    let b = target([How::IsFull]);
    let answer = link(&[&a, &b]).offer(spans(3)).wait().await;
    assert!(answer.unwrap_err().is_retryable());
    assert_eq!((a.refused(), b.refused(), a.lost().len() + b.lost().len()), (3, 3, 0));
}

#[tokio::test]
async fn of_several_refusals_the_sender_hears_one_that_lets_it_try_again() {
    for order in [[How::IsFull, How::Fails(Code::InvalidArgument)], [How::Fails(Code::InvalidArgument), How::IsFull]] {
        let [a, b] = order.map(|how| target([how]));
        let refusal = link(&[&a, &b]).offer(spans(3)).wait().await.unwrap_err();
        assert!(refusal.is_retryable(), "{refusal}");
    }
}

#[tokio::test]
async fn whoever_still_works_on_it_goes_on_when_another_took_it() {
    let slow = target([How::Works(Box::new(How::Takes))]);
    let quick = target([How::Takes]);
    assert!(
        matches!(link(&[&slow, &quick]).offer(spans(3)), ConsumeOutcome::Now(Ok(()))),
        "nobody waits for the slow one"
    );
    slow.go.notify_one();
    settle().await;
    assert_eq!((slow.took(), slow.lost().len()), (1, 0));
}

#[tokio::test]
async fn whoever_fails_after_another_took_it_counts_why() {
    let late = |code| target([How::Works(Box::new(How::Fails(code)))]);
    let soon = late(Code::Unavailable);
    let never = late(Code::InvalidArgument);
    let quick = target([How::Takes]);
    link(&[&soon, &never, &quick]).offer(spans(3)).wait().await.unwrap();
    [&soon, &never].iter().for_each(|t| t.go.notify_one());
    settle().await;
    assert_eq!(soon.lost(), [DropReason::RetriesExhausted]);
    assert_eq!(never.lost(), [DropReason::Refused]);
    assert_eq!(soon.refused(), 0, "it had room");
}

#[tokio::test]
async fn the_first_of_those_at_work_that_takes_it_answers_for_all() {
    let works = |how| target([How::Works(Box::new(how))]);
    let fails = works(How::Fails(Code::Unavailable));
    let takes = works(How::Takes);
    let slow = works(How::Takes);
    let full = target([How::IsFull]);
    let answer = tokio::spawn(link(&[&fails, &takes, &slow, &full]).offer(spans(3)).wait());
    fails.go.notify_one();
    settle().await;
    assert!(!answer.is_finished());
    takes.go.notify_one();
    answer.await.unwrap().unwrap();
    slow.go.notify_one();
    settle().await;
    assert_eq!((takes.took(), slow.took()), (1, 1));
    assert_eq!(fails.lost(), [DropReason::RetriesExhausted]);
    assert_eq!(full.lost(), [DropReason::QueueFull]);
}

#[tokio::test]
async fn a_sender_that_goes_away_gives_up_what_nobody_took() {
    let a = target([How::Works(Box::new(How::Takes))]);
    let b = target([How::Works(Box::new(How::Takes))]);
    drop(link(&[&a, &b]).offer(spans(3)));
    [&a, &b].iter().for_each(|t| t.go.notify_one());
    settle().await;
    assert_eq!((a.took(), b.took(), a.lost().len()), (0, 0, 0));
}

#[tokio::test]
async fn what_was_acknowledged_waits_for_the_first_that_has_room() {
    let a = target([How::IsFull]);
    let b = target([How::IsFull]);
    let link = link(&[&a, &b]);
    let delivery = tokio::spawn(async move { link.deliver(spans(3)).await });
    settle().await;
    assert!(!delivery.is_finished());
    b.go.notify_one();
    delivery.await.unwrap();
    assert_eq!((a.took(), b.took()), (0, 1));
    assert_eq!(a.lost(), [DropReason::QueueFull]);
    assert!(b.lost().is_empty());
}

#[tokio::test]
async fn what_was_acknowledged_waits_for_room_also_when_another_fails() {
    let fails = target([How::Works(Box::new(How::Fails(Code::Unavailable)))]);
    let full = target([How::IsFull]);
    let link = link(&[&fails, &full]);
    let delivery = tokio::spawn(async move { link.deliver(spans(3)).await });
    settle().await;
    fails.go.notify_one();
    settle().await;
    assert!(!delivery.is_finished(), "the full one may still take it");
    full.go.notify_one();
    delivery.await.unwrap();
    assert_eq!((full.took(), full.lost().len()), (1, 0));
    assert_eq!(fails.lost(), [DropReason::RetriesExhausted]);
}

#[tokio::test]
async fn what_was_acknowledged_goes_on_at_once_to_those_with_room() {
    let full = target([How::IsFull]);
    let roomy = target([How::Takes]);
    link(&[&full, &roomy]).deliver(spans(3)).await;
    assert_eq!((roomy.took(), full.lost()), (1, vec![DropReason::QueueFull]));
}

#[tokio::test]
async fn what_waits_for_a_target_that_goes_is_handed_to_the_one_that_came() {
    let old = target([]);
    let new = target([]);
    new.go.notify_one();
    let link = link(&[&old]);
    let delivery = tokio::spawn({
        let link = link.clone();
        async move { link.deliver(spans(3)).await }
    });
    settle().await;
    link.set_targets(vec![new.clone()]);
    delivery.await.unwrap();
    old.go.notify_one();
    settle().await;
    assert_eq!((old.took(), new.took()), (0, 1));
}

#[tokio::test]
async fn what_waits_for_a_target_that_stays_begins_only_once() {
    let stays = target([]);
    let other = target([]);
    let link = link(&[&stays]);
    let delivery = tokio::spawn({
        let link = link.clone();
        async move { link.deliver(spans(3)).await }
    });
    settle().await;
    link.set_targets(vec![stays.clone(), other.clone()]);
    settle().await;
    stays.go.notify_one();
    delivery.await.unwrap();
    assert_eq!((*stays.began.lock().unwrap(), stays.took(), other.took()), (1, 1, 0));
}
