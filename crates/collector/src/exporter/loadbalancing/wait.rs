//! What has no place at once: it waits for one, or is refused.

use std::{
    fmt::Display,
    sync::{Arc, atomic::Ordering},
};

use kubewake_config::model::{Queue, Retry, Sizer};
use tokio::time::Instant;

use super::{
    Balancer, lock,
    peer::{Guard, State},
    place::{Giver, NoPlace, Placed},
};
use crate::core::{Answer, Batch, DropReason, MoveReason, Pressure, Refusal, SendError, UnderWay};

impl Balancer {
    /// Finds another place for what a peer did not take.
    pub(super) async fn take_over(
        &self,
        from: &Guard,
        batch: Batch,
        error: SendError,
    ) -> Result<Option<Batch>, SendError> {
        let (reason, limit) = {
            let settings = self.settings.load();
            let retry = &settings.peer_retry;
            let within = |retry: &Option<Retry>| retry.as_ref().map(|retry| retry.max_elapsed_time);
            match from.health.state() {
                State::Leaving => (MoveReason::Left, within(&settings.retry).or(within(retry))),
                State::Down => (MoveReason::Down, within(&settings.retry).or(within(retry))),
                // It lives and refuses. That another peer should have it is for the settings to say.
                State::Open => (MoveReason::Refused, within(&settings.retry)),
            }
        };
        if reason == MoveReason::Refused && limit.is_none() {
            return Err(error);
        }
        let since = batch.failing_since().unwrap_or_else(Instant::now);
        // Without retries there is one look at the others; `Some(None)` is without an end.
        let deadline = match limit {
            None => Some(Instant::now()),
            Some(limit) => limit.map(|limit| since + limit),
        };
        let giver = Giver::Peer { endpoint: &from.endpoint, reason, stays: reason == MoveReason::Down };
        match self.place_by(&batch, giver, deadline).await {
            None => Err(error),
            Some(Placed { answers, back }) => {
                self.handed.fetch_add(1, Ordering::AcqRel);
                // What is counted as lost by whoever had it last is not to be counted again.
                let _ = settle(answers, |_, _| {}).wait().await;
                Ok(back)
            }
        }
    }

    /// Places a batch as soon as that is possible; `None` when the time is up.
    async fn place_by(&self, batch: &Batch, giver: Giver<'_>, deadline: Option<Instant>) -> Option<Placed> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that nothing falls between the two.
            changed.as_mut().enable();
            if let Ok(placed) = self.try_place(batch, giver) {
                return Some(placed);
            }
            if self.halted.load(Ordering::Acquire) {
                return None;
            }
            match deadline {
                None => changed.await,
                Some(deadline) => tokio::time::timeout_at(deadline, changed).await.ok()?,
            }
        }
    }

    /// The same, one after the other: of thousands who wait not all need to look whenever something has changed.
    async fn place_in_turn(&self, batch: &Batch, deadline: Option<Instant>) -> Option<Placed> {
        let _turn = match deadline {
            None => self.turn.lock().await,
            Some(deadline) => tokio::time::timeout_at(deadline, self.turn.lock()).await.ok()?,
        };
        self.place_by(batch, Giver::Sender(Pressure::Wait), deadline).await
    }

    /// Places what was acknowledged already, however long it takes, and counts it if there is no place.
    pub(super) async fn place_or_drop(&self, batch: Batch, deadline: Option<Instant>) -> Result<(), Refusal> {
        let (since, _under_way) = (Instant::now(), UnderWay::new(&self.rest));
        if let Some(placed) = self.place_in_turn(&batch, deadline).await {
            return settle(placed.answers, |_, _| {}).wait().await;
        }
        let (reason, refusal) = match self.halted.load(Ordering::Acquire) {
            true => (DropReason::Shutdown, Refusal::shutting_down()),
            false if self.ring.load().peers.is_empty() => {
                (DropReason::RetriesExhausted, self.missing.no_peers().refusal())
            }
            false => (DropReason::QueueFull, NoPlace::Full.refusal()),
        };
        let items = batch.items() as u64;
        self.rest.send_failed.fetch_add(items, Ordering::Relaxed);
        self.dropped(items, reason, &format_args!("{refusal}, after {:?}", since.elapsed()));
        Err(refusal)
    }

    /// Data that was acknowledged is lost.
    fn dropped(&self, items: u64, reason: DropReason, error: &dyn Display) {
        tracing::error!(exporter = %self.id, pipeline = %self.pipeline, items, reason = reason.name(), error = %error,
            "dropped data");
        self.progress.dropped(reason, items);
    }

    /// Whether nothing waits for a peer.
    pub(super) fn none_waits(&self) -> bool {
        *lock(&self.waiting) == 0
    }

    /// Ends when nothing waits for a peer any more.
    pub(super) async fn waited(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.none_waits() {
                return;
            }
            changed.await;
        }
    }

    /// How much may wait.
    pub(super) fn show_room(&self) {
        let room = self.settings.load().queue.as_ref().map_or(0, |queue| queue.queue_size);
        self.rest.queue_capacity.store(room, Ordering::Relaxed);
    }

    /// What to do with a request that has no place now.
    pub(super) fn wait_or_refuse(self: Arc<Self>, batch: Batch, no: &NoPlace) -> Answer {
        let settings = self.settings.load_full();
        let deadline = settings.timeout.map(|timeout| Instant::now() + timeout);
        let Some(queue) = settings.queue.as_ref().filter(|_| matches!(no, NoPlace::NoPeers { .. } | NoPlace::Full))
        else {
            return Answer::Now(Err(no.refusal()));
        };
        if let Some(waits) = Waits::admit(&self, &batch, queue) {
            tokio::spawn(async move {
                let _ = waits.balancer.place_or_drop(batch, deadline).await;
            });
            return Answer::Now(Ok(()));
        }
        if !queue.block_on_overflow {
            return Answer::Now(Err(no.refusal()));
        }
        let refusal = no.refusal();
        Answer::later(async move {
            match self.place_by(&batch, Giver::Sender(Pressure::Refuse), deadline).await {
                Some(placed) => self.settle_some(placed.answers).wait().await,
                None => Err(refusal),
            }
        })
    }

    /// One answer for a sender. Where others took their shares, it is not asked to come again, and the rest is lost.
    pub(super) fn settle_some(self: &Arc<Self>, answers: Vec<(Batch, Answer)>) -> Answer {
        let me = self.clone();
        settle(answers, move |tally, no| me.dropped(tally.items() as u64, no.as_loss(), no))
    }
}

/// A request that waits for a peer. The gauges of what belongs to no peer show it: since when somebody waits, not since when the oldest does.
struct Waits {
    balancer: Arc<Balancer>,
    size: u64,
}

impl Waits {
    /// Lets it wait, if there is room for it.
    fn admit(balancer: &Arc<Balancer>, batch: &Batch, queue: &Queue) -> Option<Self> {
        let size = match queue.sizer {
            Sizer::Requests => 1,
            Sizer::Items => batch.items() as u64,
            Sizer::Bytes => batch.bytes() as u64,
        };
        let mut waiting = lock(&balancer.waiting);
        let sum = waiting.checked_add(size).filter(|sum| *sum <= queue.queue_size)?;
        *waiting = sum;
        let since = balancer.rest.queue.oldest().unwrap_or_else(Instant::now);
        balancer.rest.queue.show(sum, Some(since));
        Some(Self { balancer: balancer.clone(), size })
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let mut waiting = lock(&self.balancer.waiting);
        *waiting = waiting.saturating_sub(self.size);
        let since = self.balancer.rest.queue.oldest().filter(|_| *waiting > 0);
        self.balancer.rest.queue.show(*waiting, since);
        drop(waiting);
        self.balancer.changed.notify_waiters();
    }
}

/// One answer for all shares. When some were taken, `lost` hears of the others: the sender must not repeat what was taken.
pub(super) fn settle(answers: Vec<(Batch, Answer)>, lost: impl Fn(&Batch, &Refusal) + Send + 'static) -> Answer {
    if answers.iter().all(|(_, answer)| matches!(answer, Answer::Now(Ok(())))) {
        return Answer::Now(Ok(()));
    }
    Answer::later(async move {
        let waits = answers.into_iter().map(|(tally, answer)| async move { (tally, answer.wait().await) });
        let results = futures_util::future::join_all(waits).await;
        let taken = results.iter().any(|(_, result)| result.is_ok());
        let refusals = results.into_iter().filter_map(|(tally, result)| Some((tally, result.err()?)));
        if taken {
            refusals.for_each(|(tally, no)| lost(&tally, &no));
            return Ok(());
        }
        refusals.map(|(_, no)| no).reduce(Refusal::or).map_or(Ok(()), Err)
    })
}
