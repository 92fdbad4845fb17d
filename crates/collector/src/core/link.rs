//! How one step hands data to the next.
//!
//! A [`Link`] leads to one or more [`Consumer`]s and can be pointed elsewhere while data flows. Fan-out shares the
//! bytes, not the fate: the answer is "taken" when at least one consumer took the batch, and a refusal only when none
//! did; where those that took it took a part, the answer says what nobody has. A consumer that had no room while another one took the batch counts the loss as its own.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use arc_swap::ArcSwap;
use tokio::{sync::Notify, task::JoinSet};

use super::{Batch, DropReason, Refusal};

/// Whether a batch was taken.
pub enum Answer {
    /// Known at once, as it is for whatever only has to be put into a buffer.
    Now(Result<(), Refusal>),
    /// Taken at once, but for some of its items, which will never be.
    Partly(Box<Shortfall>),
    /// Known when the future ends. Dropping it gives the batch up.
    Later(Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send>>),
}

/// Items of a batch that a consumer does not take, whoever sends them again. They are counted there; steps on the way count the batch as handed
/// on. Only an answer that is known at once can tell of them. In a box, since it is rare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// How many.
    pub items: u64,
    /// Why, for the sender.
    pub message: String,
}

impl Answer {
    /// An answer that takes a while.
    pub fn later(future: impl Future<Output = Result<(), Refusal>> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }

    /// Waits for it. What was taken in part was taken.
    pub async fn wait(self) -> Result<(), Refusal> {
        match self {
            Self::Now(result) => result,
            Self::Partly(_) => Ok(()),
            Self::Later(future) => future.await,
        }
    }

    /// The same. If it was taken, `then` is called before anybody hears of it.
    pub fn when_taken(self, then: impl FnOnce() + Send + 'static) -> Self {
        match self {
            Self::Now(result) => Self::Now(result.inspect(|()| then())),
            Self::Partly(shortfall) => {
                then();
                Self::Partly(shortfall)
            }
            Self::Later(future) => Self::later(async move { future.await.inspect(|()| then()) }),
        }
    }

    /// Looks once whether it is there.
    fn peek(self) -> Self {
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
pub enum Pressure {
    /// Say so: the sender can come back. Whoever offers hears of a failure and counts it.
    Refuse,
    /// Wait for room: the data was acknowledged already. Whoever takes it counts what becomes of it.
    Wait,
}

/// A step that takes batches.
pub trait Consumer: Send + Sync {
    /// Takes the batch as a whole, or refuses it as a whole; or takes it but for items that it never will ([`Answer::Partly`]).
    ///
    /// "Taken" means held in a bounded buffer from which nothing is dropped uncounted, or delivered.
    fn consume(self: Arc<Self>, batch: Batch, pressure: Pressure) -> Answer;

    /// Counts data that was offered here and found no room.
    fn refused(&self, batch: &Batch);

    /// Counts data that was offered here, was not taken, and went on without this consumer.
    fn lost(&self, batch: &Batch, reason: DropReason);
}

/// A way to the next step.
#[derive(Default)]
pub struct Link {
    targets: ArcSwap<Vec<Arc<dyn Consumer>>>,
    /// It leads elsewhere.
    moved: Notify,
}

impl Link {
    /// Leads to `targets` from now on.
    pub fn point_at(&self, targets: Vec<Arc<dyn Consumer>>) {
        self.targets.store(Arc::new(targets));
        self.moved.notify_waiters();
    }

    /// Offers the batch, and answers for all targets together.
    pub fn offer(&self, batch: Batch) -> Answer {
        let targets = self.targets.load();
        match targets.as_slice() {
            [] => Answer::Now(Ok(())),
            [only] => offer_to_one(only, batch),
            many => offer_to_many(many.iter().map(|target| (target.clone(), batch.clone())).collect()),
        }
    }

    /// Counts data that was acknowledged and does not go on from here. Whoever is next counts it for the pipeline; where
    /// there are several it is counted once.
    pub fn count_loss(&self, batch: &Batch, reason: DropReason) {
        self.targets.load().first().inspect(|target| target.lost(batch, reason));
    }

    /// Hands on a batch that was acknowledged already: waits until some target takes it. When all that it waits for have
    /// gone, it goes to those that came instead.
    pub async fn deliver(&self, batch: Batch) {
        loop {
            let targets = self.targets.load_full();
            tokio::select! {
                biased;
                () = deliver_to(&targets, batch.clone()) => return,
                () = self.all_gone(&targets) => {}
            }
        }
    }

    /// Ends when it leads to none of `targets` any more.
    async fn all_gone(&self, targets: &[Arc<dyn Consumer>]) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            // Registered before the look, so that no move falls between the two.
            moved.as_mut().enable();
            let now = self.targets.load_full();
            if !targets.iter().any(|target| now.iter().any(|other| Arc::ptr_eq(target, other))) {
                return;
            }
            moved.await;
        }
    }
}

async fn deliver_to(targets: &[Arc<dyn Consumer>], batch: Batch) {
    match targets {
        [] => {}
        // A refusal here is final and counted by the target.
        [only] => drop(only.clone().consume(batch, Pressure::Wait).wait().await),
        many => deliver_to_many(many, batch).await,
    }
}

/// Offers a batch to the only consumer that there is.
pub(super) fn offer_to_one<C: Consumer + ?Sized>(target: &Arc<C>, batch: Batch) -> Answer {
    let tally = batch.clone_tally();
    let answer = target.clone().consume(batch, Pressure::Refuse);
    if let Answer::Now(Err(refusal)) = &answer
        && refusal.is_want_of_room()
    {
        target.refused(&tally);
    }
    answer
}

/// Offers each consumer its own copy of one batch, and answers for all together.
pub(super) fn offer_to_many(offers: Vec<(Arc<dyn Consumer>, Batch)>) -> Answer {
    let mut attempt = Attempt::default();
    for (target, batch) in offers {
        attempt.offer(target, batch);
    }
    if attempt.taken || attempt.under_way.is_empty() {
        return attempt.settle();
    }
    Answer::later(async move {
        while !attempt.taken && attempt.next().await {}
        attempt.settle().wait().await
    })
}

async fn deliver_to_many(targets: &[Arc<dyn Consumer>], batch: Batch) {
    let mut attempt = Attempt::default();
    for target in targets {
        attempt.offer(target.clone(), batch.clone());
    }
    if !attempt.taken {
        attempt.wait_for_room(batch).await;
    }
    // Whoever did not take it has counted that.
    let _ = attempt.settle();
}

/// One batch offered to several consumers. To drop it gives the batch up: those that still work on it stop.
#[derive(Default)]
struct Attempt {
    /// One has it, or at least some of it.
    taken: bool,
    /// One has all of it.
    whole: bool,
    /// What is missing where least is, of those that have a part.
    least: Option<Box<Shortfall>>,
    said_no: Vec<(Arc<dyn Consumer>, Batch, Refusal)>,
    under_way: JoinSet<Offered>,
}

/// A consumer, a tally of what it was offered, and its answer.
type Offered = (Arc<dyn Consumer>, Batch, Result<(), Refusal>);

impl Attempt {
    fn offer(&mut self, target: Arc<dyn Consumer>, batch: Batch) {
        let tally = batch.clone_tally();
        match target.clone().consume(batch, Pressure::Refuse).peek() {
            Answer::Now(result) => self.note((target, tally, result)),
            Answer::Partly(shortfall) => self.note_part(&tally, shortfall),
            Answer::Later(future) => drop(self.under_way.spawn(async move { (target, tally, future.await) })),
        }
    }

    fn note(&mut self, (target, tally, result): Offered) {
        match result {
            Ok(()) => (self.taken, self.whole) = (true, true),
            Err(no) => self.said_no.push((target, tally, no)),
        }
    }

    /// Whoever took nothing of it leaves the others to answer.
    fn note_part(&mut self, tally: &Batch, shortfall: Box<Shortfall>) {
        self.taken |= shortfall.items < tally.items() as u64;
        if self.least.as_ref().is_none_or(|least| shortfall.items < least.items) {
            self.least = Some(shortfall);
        }
    }

    /// Waits for the next answer; false when there is none to come.
    async fn next(&mut self) -> bool {
        let next = self.under_way.join_next().await;
        let more = next.is_some();
        // A task that fails instead of answering took nothing, and there is nobody whom to count it for.
        next.into_iter().flatten().for_each(|offered| self.note(offered));
        more
    }

    /// Waits until one takes it: one that is at work on it, or one of the full ones that has room again.
    async fn wait_for_room(&mut self, batch: Batch) {
        let full = self.said_no.extract_if(.., |(_, _, no)| no.is_want_of_room());
        let mut waiting: Vec<_> = full
            .map(|(target, tally, no)| {
                let taken = target.clone().consume(batch.clone(), Pressure::Wait).wait();
                (target, tally, no, Box::pin(taken))
            })
            .collect();
        while !self.taken && (!waiting.is_empty() || !self.under_way.is_empty()) {
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
                    // With `Wait` it took the batch, or counted what became of it.
                    drop(waiting.remove(first));
                    self.taken = result.is_ok();
                }
                true = self.next() => {}
            }
        }
        self.said_no.extend(waiting.into_iter().map(|(target, tally, no, _)| (target, tally, no)));
    }

    /// Counts for those that did not take it, and answers for all: with what is missing, if nobody has all of it so far.
    fn settle(mut self) -> Answer {
        for (target, tally, no) in &self.said_no {
            count(&**target, tally, no, self.taken);
        }
        if self.taken {
            // Whoever still works on it goes on, whatever happens to the sender.
            if !self.under_way.is_empty() {
                tokio::spawn(finish(self.under_way));
            }
        }
        let refusal = self.said_no.drain(..).map(|(_, _, no)| no).reduce(Refusal::or).filter(|_| !self.taken);
        match (refusal, self.least.take().filter(|_| !self.whole)) {
            (Some(refusal), _) => Answer::Now(Err(refusal)),
            (None, Some(shortfall)) => Answer::Partly(shortfall),
            (None, None) => Answer::Now(Ok(())),
        }
    }
}

/// Waits for those that go on after another one took the batch.
async fn finish(mut under_way: JoinSet<Offered>) {
    while let Some(offered) = under_way.join_next().await {
        if let Ok((target, tally, Err(no))) = offered {
            count(&*target, &tally, &no, true);
        }
    }
}

/// Counts that one consumer did not take what was offered: for the sender to hear, or, when another one took it, a loss.
fn count(target: &dyn Consumer, tally: &Batch, no: &Refusal, taken: bool) {
    if no.is_want_of_room() {
        target.refused(tally);
    }
    if taken {
        target.lost(tally, no.as_loss());
    }
}

#[cfg(test)]
mod tests;
