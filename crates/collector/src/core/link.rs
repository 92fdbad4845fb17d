//! How one step hands data to the next.
//!
//! A [`Link`] leads to one or more [`Consumer`]s and can be pointed elsewhere while data flows. Fan-out shares the
//! bytes, not the fate: the answer is "taken" when at least one consumer took the batch, and a refusal only when none
//! did. A consumer that had no room while another one took the batch counts the loss as its own.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use arc_swap::ArcSwap;

use super::{Batch, DropReason, Refusal, RefusalKind};

/// Whether a batch was taken.
pub enum Answer {
    /// Known at once, as it is for whatever only has to be put into a buffer.
    Now(Result<(), Refusal>),
    /// Known when the future ends. Dropping it gives the batch up.
    Later(Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send>>),
}

impl Answer {
    /// An answer that takes a while.
    pub fn later(future: impl Future<Output = Result<(), Refusal>> + Send + 'static) -> Self {
        Self::Later(Box::pin(future))
    }

    /// Waits for it.
    pub async fn wait(self) -> Result<(), Refusal> {
        match self {
            Self::Now(result) => result,
            Self::Later(future) => future.await,
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
    /// Say so: the sender can come back.
    Refuse,
    /// Wait for room: the data was acknowledged already.
    Wait,
}

/// A step that takes batches.
pub trait Consumer: Send + Sync {
    /// Takes the batch as a whole, or refuses it as a whole.
    ///
    /// "Taken" means held in a bounded buffer from which nothing is dropped uncounted, or delivered.
    fn consume(self: Arc<Self>, batch: Batch, pressure: Pressure) -> Answer;

    /// Counts data that was offered here and found no room; the sender was told.
    fn refused(&self, batch: &Batch);

    /// Counts data that was offered here, found no room, and went on without this consumer.
    fn lost(&self, batch: &Batch, reason: DropReason);
}

/// A way to the next step.
pub struct Link(ArcSwap<Vec<Arc<dyn Consumer>>>);

impl Default for Link {
    fn default() -> Self {
        Self(ArcSwap::from_pointee(Vec::new()))
    }
}

impl Link {
    /// Leads to `targets` from now on.
    pub fn point_at(&self, targets: Vec<Arc<dyn Consumer>>) {
        self.0.store(Arc::new(targets));
    }

    /// Offers the batch, and answers for all targets together.
    pub fn offer(&self, batch: Batch) -> Answer {
        let targets = self.0.load();
        match targets.as_slice() {
            [] => Answer::Now(Ok(())),
            [only] => offer_to_one(only.clone(), batch),
            many => offer_to_many(many.iter().map(|target| (target.clone(), batch.clone())).collect()),
        }
    }

    /// Hands on a batch that was acknowledged already: waits until some target takes it.
    pub async fn deliver(&self, batch: Batch) {
        let targets = self.0.load_full();
        match targets.as_slice() {
            [] => {}
            // A refusal here is final and counted by the target: with `Wait` no target refuses for want of room.
            [only] => drop(only.clone().consume(batch, Pressure::Wait).wait().await),
            _ => deliver_to_many(&targets, batch).await,
        }
    }
}

/// Offers each consumer its own copy of one batch, and answers for all together.
pub(super) fn offer_each(mut offers: Vec<(Arc<dyn Consumer>, Batch)>) -> Answer {
    match offers.pop() {
        Some((target, batch)) if offers.is_empty() => offer_to_one(target, batch),
        Some(last) => {
            offers.push(last);
            offer_to_many(offers)
        }
        None => Answer::Now(Ok(())),
    }
}

fn offer_to_one(target: Arc<dyn Consumer>, batch: Batch) -> Answer {
    let tally = batch.clone_tally();
    let answer = target.clone().consume(batch, Pressure::Refuse);
    if let Answer::Now(Err(refusal)) = &answer
        && reason(refusal).is_some()
    {
        target.refused(&tally);
    }
    answer
}

fn offer_to_many(offers: Vec<(Arc<dyn Consumer>, Batch)>) -> Answer {
    let (mut taken, mut full, mut refusal, mut pending) = (false, Vec::new(), None, Vec::new());
    for (target, batch) in offers {
        let tally = batch.clone_tally();
        match target.clone().consume(batch, Pressure::Refuse).peek() {
            Answer::Now(Ok(())) => taken = true,
            Answer::Now(Err(no)) => {
                full.extend(reason(&no).map(|reason| (target, tally, reason)));
                refusal = Some(worst(refusal, no));
            }
            Answer::Later(future) => pending.push(future),
        }
    }
    let settle = move |taken: bool, refusal: Option<Refusal>| {
        full.iter().for_each(|(target, tally, reason)| match taken {
            true => target.lost(tally, *reason),
            false => target.refused(tally),
        });
        refusal.filter(|_| !taken).map_or(Ok(()), Err)
    };
    if pending.is_empty() {
        return Answer::Now(settle(taken, refusal));
    }
    // Whoever still works on it goes on, whatever happens to the sender that waits.
    let mut tasks: tokio::task::JoinSet<_> = pending.into_iter().collect();
    if taken {
        tasks.detach_all();
        return Answer::Now(settle(true, refusal));
    }
    Answer::later(async move {
        while let Some(result) = tasks.join_next().await {
            match result.unwrap_or_else(|_| Err(Refusal::shutting_down())) {
                Err(no) => refusal = Some(worst(refusal, no)),
                Ok(()) => {
                    tasks.detach_all();
                    return settle(true, refusal);
                }
            }
        }
        settle(false, refusal)
    })
}

/// Why a refusal is a loss when the data goes on without this consumer.
fn reason(refusal: &Refusal) -> Option<DropReason> {
    match refusal.kind {
        RefusalKind::NoRoom => Some(DropReason::QueueFull),
        RefusalKind::NoMemory => Some(DropReason::MemoryLimit),
        // These were counted where they happened.
        RefusalKind::BadRequest | RefusalKind::Backend => None,
    }
}

fn worst(first: Option<Refusal>, second: Refusal) -> Refusal {
    match first {
        Some(first) => first.or(second),
        None => second,
    }
}

async fn deliver_to_many(targets: &[Arc<dyn Consumer>], batch: Batch) {
    let mut full = Vec::new();
    let mut taken = false;
    let mut tasks = tokio::task::JoinSet::new();
    for target in targets {
        match target.clone().consume(batch.clone(), Pressure::Refuse).peek() {
            Answer::Now(Err(refusal)) if reason(&refusal).is_some() => full.push(target),
            // Refused for good, and counted there: waiting for it would change nothing.
            Answer::Now(_) => taken = true,
            Answer::Later(future) => drop(tasks.spawn(future)),
        }
    }
    if !taken && !tasks.is_empty() {
        taken = tasks.join_next().await.is_some();
    }
    tasks.detach_all();
    if taken {
        full.iter().for_each(|target| target.lost(&batch, DropReason::QueueFull));
        return;
    }
    wait_for_any(&full, batch).await;
}

/// All targets are full: the first that has room takes the batch, and the others lose it.
async fn wait_for_any(full: &[&Arc<dyn Consumer>], batch: Batch) {
    let mut waiting: Vec<_> = full
        .iter()
        .map(|target| (*target, Box::pin((*target).clone().consume(batch.clone(), Pressure::Wait).wait())))
        .collect();
    let winner = std::future::poll_fn(|cx| {
        for (i, (_, future)) in waiting.iter_mut().enumerate() {
            if future.as_mut().poll(cx).is_ready() {
                return Poll::Ready(i);
            }
        }
        Poll::Pending
    })
    .await;
    for (i, (target, _)) in waiting.iter().enumerate() {
        if i != winner {
            target.lost(&batch, DropReason::QueueFull);
        }
    }
}
