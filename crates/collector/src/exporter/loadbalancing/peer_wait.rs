//! Waits for a peer with room, or refuses.

use std::{
    fmt::Display,
    sync::{Arc, atomic::Ordering},
};

use kubewake_config::model::{QueueConfig, QueueSizer, RetryConfig};
use tokio::time::Instant;

use super::{
    LoadBalancer,
    peer::{PeerFailover, PeerState},
    placement::{BatchSource, PlacedBatch, PlacementError},
};
use crate::core::{Batch, ConsumeOutcome, DropReason, InFlightRequest, MoveReason, OverflowPolicy, Refusal, SendError};

impl LoadBalancer {
    /// Places a batch that a peer did not take at other peers.
    pub(super) async fn hand_to_other_peers(
        &self,
        from: &PeerFailover,
        batch: Batch,
        error: SendError,
    ) -> Result<Option<Batch>, SendError> {
        let (reason, limit) = {
            let settings = self.settings.load();
            let retry = &settings.peer_retry;
            let within = |retry: &Option<RetryConfig>| retry.as_ref().map(|retry| retry.max_elapsed_time);
            match from.health.state() {
                PeerState::Leaving => (MoveReason::Left, within(&settings.retry).or(within(retry))),
                PeerState::Down => (MoveReason::Down, within(&settings.retry).or(within(retry))),
                // The peer answers and refuses. The settings decide whether another peer gets the batch.
                PeerState::Open => (MoveReason::Refused, within(&settings.retry)),
            }
        };
        if reason == MoveReason::Refused && limit.is_none() {
            return Err(error);
        }
        let since = batch.failing_since().unwrap_or_else(Instant::now);
        // Without retries the others are tried once; `Some(None)` is without a limit.
        let deadline = match limit {
            None => Some(Instant::now()),
            Some(limit) => limit.map(|limit| since + limit),
        };
        let giver = BatchSource::Peer { endpoint: &from.endpoint, reason, stays: reason == MoveReason::Down };
        match self.place_until(&batch, giver, deadline).await {
            None => Err(error),
            Some(PlacedBatch { outcomes: answers, back }) => {
                self.handed_over.fetch_add(1, Ordering::AcqRel);
                // The peer that had a batch last counts its loss; it must not be counted again.
                let _ = merge_outcomes(answers, |_, _| {}).wait().await;
                Ok(back)
            }
        }
    }

    /// Places a batch as soon as possible; `None` when the time is up.
    async fn place_until(
        &self,
        batch: &Batch,
        giver: BatchSource<'_>,
        deadline: Option<Instant>,
    ) -> Option<PlacedBatch> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the attempt, so that no notification in between is missed.
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

    /// As `place_until`, one request after another: of thousands, not all need to try after each change.
    async fn place_in_turn(&self, batch: &Batch, deadline: Option<Instant>) -> Option<PlacedBatch> {
        let _turn = match deadline {
            None => self.turn.lock().await,
            Some(deadline) => tokio::time::timeout_at(deadline, self.turn.lock()).await.ok()?,
        };
        self.place_until(batch, BatchSource::Sender(OverflowPolicy::Wait), deadline).await
    }

    /// Places an acknowledged batch before the deadline, and counts it as dropped otherwise.
    pub(super) async fn place_or_drop(&self, batch: Batch, deadline: Option<Instant>) -> Result<(), Refusal> {
        let since = Instant::now();
        let _under_way = InFlightRequest::new(&self.unassigned_stats);
        if let Some(placed) = self.place_in_turn(&batch, deadline).await {
            return merge_outcomes(placed.outcomes, |_, _| {}).wait().await;
        }
        let (reason, refusal) = match self.halted.load(Ordering::Acquire) {
            true => (DropReason::Shutdown, Refusal::shutting_down()),
            false if self.ring.load().peers.is_empty() => {
                (DropReason::RetriesExhausted, self.missing.no_peers_error().refusal())
            }
            false => (DropReason::QueueFull, PlacementError::Full.refusal()),
        };
        self.unassigned_stats.send_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
        let lost = batch.return_unsent().items() as u64;
        if lost > 0 {
            self.count_dropped(lost, reason, &format_args!("{refusal}, after {:?}", since.elapsed()));
        }
        Err(refusal)
    }

    /// Counts and logs the loss of acknowledged data.
    fn count_dropped(&self, items: u64, reason: DropReason, error: &dyn Display) {
        tracing::error!(exporter = %self.id, pipeline = %self.pipeline, items, reason = reason.name(), error = %error,
            "dropped data");
        self.progress.count_dropped(reason, items);
    }

    /// Whether no data waits for a peer.
    pub(super) fn is_wait_empty(&self) -> bool {
        *self.waiting.lock() == 0
    }

    /// Resolves when no data waits for a peer any more.
    pub(super) async fn wait_until_none_waits(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_wait_empty() {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn publish_wait_capacity(&self) {
        let room = self.settings.load().queue.as_ref().map_or(0, |queue| queue.queue_size);
        self.unassigned_stats.queue_capacity.store(room, Ordering::Relaxed);
    }

    /// Lets a request without a place wait, or refuses it.
    pub(super) fn wait_or_refuse(self: Arc<Self>, batch: Batch, no: &PlacementError) -> ConsumeOutcome {
        let settings = self.settings.load_full();
        let deadline = settings.timeout.map(|timeout| Instant::now() + timeout);
        let Some(queue) =
            settings.queue.as_ref().filter(|_| matches!(no, PlacementError::NoPeers { .. } | PlacementError::Full))
        else {
            return ConsumeOutcome::Now(Err(no.refusal()));
        };
        if let Some(waits) = WaitingBatch::admit(&self, &batch, queue) {
            tokio::spawn(async move {
                let _ = waits.balancer.place_or_drop(batch, deadline).await;
            });
            return ConsumeOutcome::Now(Ok(()));
        }
        if !queue.block_on_overflow {
            return ConsumeOutcome::Now(Err(no.refusal()));
        }
        let refusal = no.refusal();
        ConsumeOutcome::later(async move {
            match self.place_until(&batch, BatchSource::Sender(OverflowPolicy::Refuse), deadline).await {
                Some(placed) => self.merge_outcomes_or_drop(placed.outcomes, &batch).wait().await,
                None => Err(refusal),
            }
        })
    }

    /// One outcome for the sender. If some shares were taken, the sender must not retry, and the rest is lost, unless
    /// it has receipts and was returned.
    pub(super) fn merge_outcomes_or_drop(
        self: &Arc<Self>,
        answers: Vec<(Batch, ConsumeOutcome)>,
        whole: &Batch,
    ) -> ConsumeOutcome {
        let me = self.clone();
        let can_return = whole.has_receipts();
        merge_outcomes(answers, move |tally, no| {
            if !(can_return && no.is_temporary()) {
                me.count_dropped(tally.items() as u64, no.drop_reason(), no);
            }
        })
    }
}

/// A request that waits for a peer. The gauges of data without a peer show since when any request waits, not
/// since when the oldest does.
struct WaitingBatch {
    balancer: Arc<LoadBalancer>,
    size: u64,
}

impl WaitingBatch {
    /// Counts the request as waiting, if there is room for it.
    fn admit(balancer: &Arc<LoadBalancer>, batch: &Batch, queue: &QueueConfig) -> Option<Self> {
        let size = match queue.sizer {
            QueueSizer::Requests => 1,
            QueueSizer::Items => batch.items() as u64,
            QueueSizer::Bytes => batch.bytes() as u64,
        };
        let mut waiting = balancer.waiting.lock();
        let sum = waiting.checked_add(size).filter(|sum| *sum <= queue.queue_size)?;
        *waiting = sum;
        let since = balancer.unassigned_stats.queue.oldest().unwrap_or_else(Instant::now);
        balancer.unassigned_stats.queue.set(sum, Some(since));
        Some(Self { balancer: balancer.clone(), size })
    }
}

impl Drop for WaitingBatch {
    fn drop(&mut self) {
        let mut waiting = self.balancer.waiting.lock();
        *waiting = waiting.saturating_sub(self.size);
        let since = self.balancer.unassigned_stats.queue.oldest().filter(|_| *waiting > 0);
        self.balancer.unassigned_stats.queue.set(*waiting, since);
        drop(waiting);
        self.balancer.changed.notify_waiters();
    }
}

/// Merges the outcomes of all shares. If some were taken, `lost` is called for the others: the sender must not
/// repeat the shares that were taken.
pub(super) fn merge_outcomes(
    answers: Vec<(Batch, ConsumeOutcome)>,
    lost: impl Fn(&Batch, &Refusal) + Send + 'static,
) -> ConsumeOutcome {
    if answers.iter().all(|(_, answer)| matches!(answer, ConsumeOutcome::Now(Ok(())))) {
        return ConsumeOutcome::Now(Ok(()));
    }
    ConsumeOutcome::later(async move {
        let waits = answers.into_iter().map(|(tally, answer)| async move { (tally, answer.wait().await) });
        let results = futures_util::future::join_all(waits).await;
        let taken = results.iter().any(|(_, result)| result.is_ok());
        let refusals = results.into_iter().filter_map(|(tally, result)| Some((tally, result.err()?)));
        if taken {
            refusals.for_each(|(tally, no)| lost(&tally, &no));
            return Ok(());
        }
        refusals.map(|(_, no)| no).reduce(Refusal::prefer_retryable).map_or(Ok(()), Err)
    })
}
