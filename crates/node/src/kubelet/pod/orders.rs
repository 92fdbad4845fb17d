//! When the containers of a pod have to end.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use tokio::{sync::watch, time::Instant};

use super::Worker;
use crate::kubelet::status::Verdict;

/// Without a word from the pod, containers have so long to end: Kubernetes' default.
const GRACE: Duration = Duration::from_secs(30);

/// What containers are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Run,
    /// End, at this time at the latest.
    Stop(Instant),
}

/// What one container hears.
#[derive(Clone, Debug)]
pub(super) struct Orders(watch::Receiver<Order>);

impl Orders {
    pub(super) fn from(order: &watch::Sender<Order>) -> Self {
        Self(order.subscribe())
    }

    /// Waits until it has to end.
    pub(super) async fn stop(&mut self) {
        let told = self.0.wait_for(|order| *order != Order::Run).await.is_ok();
        if !told {
            std::future::pending().await
        }
    }

    /// Waits until the order is another.
    pub(super) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// When it has to have ended, if it has to.
    pub(super) fn by(&self) -> Option<Instant> {
        match *self.0.borrow() {
            Order::Run => None,
            Order::Stop(by) => Some(by),
        }
    }

    /// None if it has to end meanwhile.
    pub(super) async fn pause(&mut self, wait: Duration) -> Option<()> {
        tokio::select! {
            () = tokio::time::sleep(wait) => Some(()),
            () = self.stop() => None,
        }
    }
}

/// An earlier end replaces a later one, never the other way round.
fn stop(order: &watch::Sender<Order>, by: Instant) {
    order.send_if_modified(|order| {
        let sooner = !matches!(order, Order::Stop(before) if *before <= by);
        if sooner {
            *order = Order::Stop(by);
        }
        sooner
    });
}

impl Worker {
    /// Says when to end, for ever: when the pod is deleted, when its time is over, when the node says so or stops.
    pub(super) async fn give_orders(&self, order: &watch::Sender<Order>) {
        let (mut told, mut board) = (self.told.clone(), self.board.version());
        let mut stopping = self.node.stopping.subscribe();
        loop {
            board.borrow_and_update();
            let (going, deadline) = {
                let told = told.borrow_and_update();
                (told.gone || told.pod.metadata.deletion_timestamp.is_some(), deadline(&told.pod))
            };
            let judged = self.board.read(|facts| facts.verdict.as_ref().map(|verdict| verdict.grace));
            if let Some(limit) = *stopping.borrow_and_update() {
                stop(order, limit.min(Instant::now() + self.grace()));
            } else if going {
                stop(order, Instant::now() + self.grace());
            } else if let Some(grace) = judged {
                stop(order, Instant::now() + grace.unwrap_or_else(|| self.grace()));
            } else if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.judge("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", None);
            }
            tokio::select! {
                _ = told.changed() => {}
                _ = stopping.changed() => {}
                _ = board.changed() => {}
                () = sleep_until(deadline.filter(|_| judged.is_none())) => {}
            }
        }
    }

    /// The node ends the pod.
    pub(super) fn judge(&self, reason: &'static str, message: &str, grace: Option<Duration>) {
        self.node.events.warning(self.reference.clone(), reason, message);
        let verdict = Verdict { reason: reason.into(), message: message.to_owned(), grace };
        self.board.change(|facts| {
            facts.verdict.get_or_insert(verdict);
        });
    }

    /// How long its containers may take to end.
    pub(super) fn grace(&self) -> Duration {
        let told = self.told.borrow();
        let asked = told.pod.metadata.deletion_grace_period_seconds;
        let usual = told.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = asked.or(usual).and_then(|seconds| u64::try_from(seconds).ok());
        // No clock goes on for as long as a pod may ask.
        seconds.map_or(GRACE, |seconds| Duration::from_secs(seconds.min(u32::MAX.into())))
    }
}

/// When the time of a pod is over, if it has a limit.
fn deadline(pod: &Pod) -> Option<Instant> {
    let seconds = u64::try_from(pod.spec.as_ref()?.active_deadline_seconds?).ok()?;
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    let passed = started.and_then(|start| Duration::try_from(Timestamp::now().duration_since(start.0)).ok());
    Some(Instant::now() + Duration::from_secs(seconds).saturating_sub(passed.unwrap_or_default()))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
