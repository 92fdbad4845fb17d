//! How data passes from one component to the next.
//!
//! A [`ConsumerFanout`] leads to one or more [`Consumer`]s, which can be replaced while data flows. Fan-out
//! shares the bytes, not the fate: the outcome is "taken" when at least one consumer took the batch, and a
//! refusal only when none did. If consumers took only parts of it, the outcome reports the items that no
//! consumer has. A consumer without room for a batch that another one took counts the loss as its own.
//!
//! Requests with receipts ([`super::DeliveryReceipt`]) are offered apart from the others, and never wait for room: what
//! a consumer has no room for is returned to its receiver.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use arc_swap::ArcSwap;
use kubewake_config::{ComponentId, PipelineId};
use tokio::{sync::Notify, task::JoinSet};

use self::branch::{FanoutTargets, TargetKind};
use super::{Batch, DropReason, HeldReceipts, Refusal};

mod branch;

/// Whether a batch was taken.
pub enum ConsumeOutcome {
    /// Known at once, for consumers that only enqueue.
    Now(Result<(), Refusal>),
    /// Taken at once, except for some items that the consumer will never take.
    Partial(Box<PartialSuccess>),
    /// Known when the future ends. Dropping the future gives the batch up.
    Later(Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send>>),
}

/// Items of a batch that a consumer never takes, even if they are sent again. That consumer counts them;
/// components in between count the whole batch as passed on. Only outcomes that are known at once can be
/// partial. Boxed because it is rare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialSuccess {
    pub items: u64,
    pub message: String,
}

impl ConsumeOutcome {
    pub fn later(future: impl Future<Output = Result<(), Refusal>> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }

    /// Waits for the outcome. A partial success counts as success.
    pub async fn wait(self) -> Result<(), Refusal> {
        match self {
            Self::Now(result) => result,
            Self::Partial(_) => Ok(()),
            Self::Later(future) => future.await,
        }
    }

    /// The same outcome. `then` is called on success, before the caller sees it.
    pub fn when_taken(self, then: impl FnOnce() + Send + 'static) -> Self {
        match self {
            Self::Now(result) => Self::Now(result.inspect(|()| then())),
            Self::Partial(shortfall) => {
                then();
                Self::Partial(shortfall)
            }
            Self::Later(future) => Self::later(async move { future.await.inspect(|()| then()) }),
        }
    }

    /// The same outcome for a batch with these receipts. They are returned if there was no room or the outcome never
    /// comes. A batch that was refused for good is the caller's to count.
    pub fn settle_receipts(self, held: HeldReceipts) -> Self {
        match self {
            _ if held.is_empty() => return self,
            Self::Later(future) => {
                return Self::later(async move {
                    let result = future.await;
                    held.settle(&result);
                    result
                });
            }
            Self::Now(ref result) => held.settle(result),
            // The consumer has counted what it did not take.
            Self::Partial(_) => held.release(),
        }
        self
    }

    /// Polls a pending outcome once.
    fn poll_once(self) -> Self {
        match self {
            Self::Later(mut future) => match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => Self::Now(result),
                Poll::Pending => Self::Later(future),
            },
            now => now,
        }
    }
}

/// What to do when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// Refuse: the sender can retry. The caller sees the failure and counts it.
    Refuse,
    /// Wait for room: the data was acknowledged already. The consumer counts the result.
    Wait,
}

/// A component that takes batches.
pub trait Consumer: Send + Sync {
    /// Takes or refuses the batch as a whole, or takes it except for items that it never will
    /// ([`ConsumeOutcome::Partial`]).
    ///
    /// "Taken" means held in a bounded buffer from which nothing is dropped uncounted, or delivered.
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome;

    /// Counts data that was offered here and found no room.
    fn count_refused(&self, batch: &Batch);

    /// Counts data that was offered here, was not taken, and continued without this consumer.
    fn count_lost(&self, batch: &Batch, reason: DropReason);
}

/// The consumers that data is passed to next.
#[derive(Default)]
pub struct ConsumerFanout {
    targets: ArcSwap<FanoutTargets>,
    moved: Notify,
}

impl ConsumerFanout {
    /// Passes data to `targets` from now on.
    pub fn set_targets(&self, targets: Vec<Arc<dyn Consumer>>) {
        self.replace_targets(FanoutTargets { consumers: targets, kind: TargetKind::Components });
    }

    /// Passes data to the exporters and connectors of a pipeline from now on. Each gets its own token of a receipt.
    pub fn set_exporters(&self, pipeline: &PipelineId, exporters: Vec<(ComponentId, Arc<dyn Consumer>)>) {
        let (ids, consumers) = exporters.into_iter().unzip();
        self.replace_targets(FanoutTargets { consumers, kind: TargetKind::Exporters(pipeline.clone(), ids) });
    }

    /// Passes data to the entries of pipelines from now on. A receipt stands for all of them together.
    pub fn set_pipelines(&self, pipelines: Vec<Arc<dyn Consumer>>) {
        self.replace_targets(FanoutTargets { consumers: pipelines, kind: TargetKind::Pipelines });
    }

    fn replace_targets(&self, targets: FanoutTargets) {
        self.targets.store(Arc::new(targets));
        self.moved.notify_waiters();
    }

    /// Offers the batch to all targets and combines their outcomes.
    pub fn offer(&self, batch: Batch) -> ConsumeOutcome {
        self.offer_if_connected(batch).unwrap_or(ConsumeOutcome::Now(Ok(())))
    }

    /// Offers the batch to all targets; `None` if there are none.
    pub fn offer_if_connected(&self, batch: Batch) -> Option<ConsumeOutcome> {
        let targets = self.targets.load();
        if targets.splits_receipts() && batch.has_receipts() {
            return Some(self.offer_with_receipts(&targets, batch));
        }
        targets.offer(batch)
    }

    /// Offers the requests with receipts, whose outcome is that of their tokens, and then the others.
    #[cold]
    fn offer_with_receipts(&self, targets: &FanoutTargets, batch: Batch) -> ConsumeOutcome {
        let (receipted, others) = batch.split_receipts();
        targets.offer_receipted(receipted);
        let others = Some(others).filter(|others| !others.is_empty());
        others.and_then(|others| targets.offer(others)).unwrap_or(ConsumeOutcome::Now(Ok(())))
    }

    /// Counts acknowledged data that is lost here. The next consumer counts it for the pipeline. If there are
    /// several, it is counted once. Requests with receipts are returned instead.
    pub fn count_loss(&self, batch: &Batch, reason: DropReason) {
        let lost = batch.return_unsent();
        if lost.items() > 0 {
            self.targets.load().consumers.first().inspect(|target| target.count_lost(&lost, reason));
        }
    }

    /// Passes on a batch that was acknowledged already, and waits until some target takes it. If all targets
    /// are replaced while it waits, the batch goes to the new ones. Requests with receipts do not wait for room.
    pub async fn deliver(&self, batch: Batch) {
        let _ = self.deliver_if_connected(batch).await;
    }

    /// Like [`ConsumerFanout::deliver`]; false if there is no target, or none any more.
    pub async fn deliver_if_connected(&self, batch: Batch) -> bool {
        if !batch.has_receipts() {
            return self.deliver_to_current(batch).await;
        }
        // One after the other: while the others wait for room, those with receipts must not be delivered again.
        let (receipted, others) = batch.split_receipts();
        self.deliver_to_current(receipted).await && (others.is_empty() || self.deliver_to_current(others).await)
    }

    async fn deliver_to_current(&self, batch: Batch) -> bool {
        loop {
            let targets = self.targets.load_full();
            if targets.consumers.is_empty() {
                drop(batch.hold_receipts());
                return false;
            }
            tokio::select! {
                biased;
                () = targets.deliver(batch.clone()) => return true,
                () = self.wait_until_replaced(&targets.consumers) => {}
            }
        }
    }

    /// Ends when none of `targets` is a target any more.
    async fn wait_until_replaced(&self, targets: &[Arc<dyn Consumer>]) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Registered before the check, so that no change between the two is missed.
            moved.as_mut().enable();
            let now = self.targets.load_full();
            if !targets.iter().any(|target| now.consumers.iter().any(|other| Arc::ptr_eq(target, other))) {
                return;
            }
            moved.await;
        }
    }
}

/// Offers a batch to a single consumer.
pub(super) fn offer_to_one<C: Consumer + ?Sized>(target: &Arc<C>, batch: Batch) -> ConsumeOutcome {
    let tally = batch.clone_tally();
    let answer = target.clone().consume(batch, OverflowPolicy::Refuse);
    if let ConsumeOutcome::Now(Err(refusal)) = &answer
        && refusal.is_lack_of_room()
    {
        target.count_refused(&tally);
    }
    answer
}

/// Offers each consumer its own copy of one batch, and combines their outcomes.
pub(super) fn offer_to_many(offers: Vec<(Arc<dyn Consumer>, Batch)>) -> ConsumeOutcome {
    let mut attempt = FanoutAttempt::default();
    for (target, batch) in offers {
        attempt.offer(target, batch);
    }
    if attempt.taken || attempt.pending.is_empty() {
        return attempt.into_outcome();
    }
    ConsumeOutcome::later(async move {
        while !attempt.taken && attempt.next_result().await {}
        attempt.into_outcome().wait().await
    })
}

async fn deliver_to_many(targets: &[Arc<dyn Consumer>], batch: Batch) {
    let mut attempt = FanoutAttempt::default();
    for target in targets {
        attempt.offer(target.clone(), batch.clone());
    }
    if !attempt.taken {
        attempt.wait_for_room(batch).await;
    }
    // Consumers that did not take it have counted that.
    let _ = attempt.into_outcome();
}

/// One batch offered to several consumers. Dropping it gives the batch up: consumers still at work stop.
#[derive(Default)]
struct FanoutAttempt {
    /// At least one consumer took some of it.
    taken: bool,
    /// At least one consumer took all of it.
    fully_taken: bool,
    /// The smallest shortfall among consumers that took a part.
    smallest_shortfall: Option<Box<PartialSuccess>>,
    refusals: Vec<(Arc<dyn Consumer>, Batch, Refusal)>,
    pending: JoinSet<OfferResult>,
}

/// A consumer, a tally of the batch that it was offered, and its result.
type OfferResult = (Arc<dyn Consumer>, Batch, Result<(), Refusal>);

impl FanoutAttempt {
    fn offer(&mut self, target: Arc<dyn Consumer>, batch: Batch) {
        let tally = batch.clone_tally();
        match target.clone().consume(batch, OverflowPolicy::Refuse).poll_once() {
            ConsumeOutcome::Now(result) => self.record((target, tally, result)),
            ConsumeOutcome::Partial(shortfall) => self.record_partial(&tally, shortfall),
            ConsumeOutcome::Later(future) => drop(self.pending.spawn(async move { (target, tally, future.await) })),
        }
    }

    fn record(&mut self, (target, tally, result): OfferResult) {
        match result {
            Ok(()) => (self.taken, self.fully_taken) = (true, true),
            Err(no) => self.refusals.push((target, tally, no)),
        }
    }

    /// A consumer that took nothing of it leaves the outcome to the others.
    fn record_partial(&mut self, tally: &Batch, shortfall: Box<PartialSuccess>) {
        self.taken |= shortfall.items < tally.items() as u64;
        if self.smallest_shortfall.as_ref().is_none_or(|least| shortfall.items < least.items) {
            self.smallest_shortfall = Some(shortfall);
        }
    }

    /// Waits for the next result; false if none is pending.
    async fn next_result(&mut self) -> bool {
        let next = self.pending.join_next().await;
        let more = next.is_some();
        // A task that fails without a result took nothing, and there is no consumer to count it for.
        next.into_iter().flatten().for_each(|offered| self.record(offered));
        more
    }

    /// Waits until one consumer takes it: one that is still at work, or a full one that has room again.
    async fn wait_for_room(&mut self, batch: Batch) {
        let full = self.refusals.extract_if(.., |(_, _, no)| no.is_lack_of_room());
        let mut waiting: Vec<_> = full
            .map(|(target, tally, no)| {
                let taken = target.clone().consume(batch.clone(), OverflowPolicy::Wait).wait();
                (target, tally, no, Box::pin(taken))
            })
            .collect();
        while !self.taken && (!waiting.is_empty() || !self.pending.is_empty()) {
            let room = std::future::poll_fn(|cx| {
                let mut polled = waiting.iter_mut().map(|(.., future)| future.as_mut().poll(cx)).enumerate();
                let ready = polled.find_map(|(at, poll)| match poll {
                    Poll::Ready(result) => Some((at, result)),
                    Poll::Pending => None,
                });
                ready.map_or(Poll::Pending, Poll::Ready)
            });
            tokio::select! {
                biased;
                (first, result) = room => {
                    // With `Wait` it took the batch, or counted the loss.
                    drop(waiting.remove(first));
                    self.taken = result.is_ok();
                }
                true = self.next_result() => {}
            }
        }
        self.refusals.extend(waiting.into_iter().map(|(target, tally, no, _)| (target, tally, no)));
    }

    /// Counts for the consumers that did not take it, and combines the results. The outcome is partial if no
    /// consumer has all of it so far.
    fn into_outcome(mut self) -> ConsumeOutcome {
        for (target, tally, no) in &self.refusals {
            count_refusal(&**target, tally, no, self.taken);
        }
        if self.taken {
            // Consumers still at work continue, whatever happens to the sender.
            if !self.pending.is_empty() {
                tokio::spawn(finish_in_background(self.pending));
            }
        }
        let refusal =
            self.refusals.drain(..).map(|(_, _, no)| no).reduce(Refusal::prefer_retryable).filter(|_| !self.taken);
        match (refusal, self.smallest_shortfall.take().filter(|_| !self.fully_taken)) {
            (Some(refusal), _) => ConsumeOutcome::Now(Err(refusal)),
            (None, Some(shortfall)) => ConsumeOutcome::Partial(shortfall),
            (None, None) => ConsumeOutcome::Now(Ok(())),
        }
    }
}

/// Waits for consumers that are still at work after another one took the batch.
async fn finish_in_background(mut under_way: JoinSet<OfferResult>) {
    while let Some(offered) = under_way.join_next().await {
        if let Ok((target, tally, Err(no))) = offered {
            count_refusal(&*target, &tally, &no, true);
        }
    }
}

/// Counts that one consumer did not take the batch: as refused if it had no room, and as lost if another
/// consumer took it.
fn count_refusal(target: &dyn Consumer, tally: &Batch, no: &Refusal, taken: bool) {
    if no.is_lack_of_room() {
        target.count_refused(tally);
    }
    if taken {
        target.count_lost(tally, no.drop_reason());
    }
}

#[cfg(test)]
mod tests;
