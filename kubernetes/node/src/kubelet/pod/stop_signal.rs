//! The stop signal for the containers of a pod.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use tokio::{sync::watch, time::Instant};

use super::PodWorker;
use crate::kubelet::status::PodFailure;

/// Kubernetes' default grace period.
const DEFAULT_GRACE_PERIOD: Duration = Duration::from_secs(30);

/// The desired run state of the containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DesiredRunState {
    Run,
    /// Stop, at this time at the latest.
    Stop(Instant),
}

#[derive(Clone, Debug)]
pub(super) struct StopSignal(watch::Receiver<DesiredRunState>);

impl StopSignal {
    pub(super) fn subscribe(order: &watch::Sender<DesiredRunState>) -> Self {
        Self(order.subscribe())
    }

    /// Waits for the stop.
    pub(super) async fn wait_for_stop(&mut self) {
        let told = self.0.wait_for(|order| *order != DesiredRunState::Run).await.is_ok();
        if !told {
            std::future::pending().await
        }
    }

    /// Waits until the desired state changes.
    pub(super) async fn wait_for_change(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// The deadline of the stop, if there is one.
    pub(super) fn stop_deadline(&self) -> Option<Instant> {
        match *self.0.borrow() {
            DesiredRunState::Run => None,
            DesiredRunState::Stop(by) => Some(by),
        }
    }

    /// Sleeps. None if the pod stops meanwhile.
    pub(super) async fn sleep_unless_stopped(&mut self, wait: Duration) -> Option<()> {
        tokio::select! {
            () = tokio::time::sleep(wait) => Some(()),
            () = self.wait_for_stop() => None,
        }
    }
}

/// An earlier deadline replaces a later one, never the other way round.
fn request_stop(order: &watch::Sender<DesiredRunState>, by: Instant) {
    order.send_if_modified(|order| {
        let sooner = !matches!(order, DesiredRunState::Stop(before) if *before <= by);
        if sooner {
            *order = DesiredRunState::Stop(by);
        }
        sooner
    });
}

impl PodWorker {
    /// Sends stop signals, for ever: after the deletion of the pod, at its active deadline, on a failure, on a
    /// node stop.
    pub(super) async fn send_stop_signals(&self, order: &watch::Sender<DesiredRunState>) {
        let mut told = self.updates.clone();
        let mut board = self.status.version();
        let mut stopping = self.node.stop_deadline.subscribe();
        loop {
            board.borrow_and_update();
            let (going, deadline) = {
                let told = told.borrow_and_update();
                (told.gone || told.pod.metadata.deletion_timestamp.is_some(), active_deadline(&told.pod))
            };
            let judged = self.status.read(|facts| facts.failure.as_ref().map(|verdict| verdict.grace));
            if let Some(limit) = *stopping.borrow_and_update() {
                request_stop(order, limit.min(Instant::now() + self.grace_period()));
            } else if going {
                request_stop(order, Instant::now() + self.grace_period());
            } else if let Some(grace) = judged {
                request_stop(order, Instant::now() + grace.unwrap_or_else(|| self.grace_period()));
            } else if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.fail_pod(
                    "DeadlineExceeded",
                    "Pod was active on the node longer than the specified deadline",
                    None,
                );
            }
            tokio::select! {
                _ = told.changed() => {}
                _ = stopping.changed() => {}
                _ = board.changed() => {}
                () = sleep_until(deadline.filter(|_| judged.is_none())) => {}
            }
        }
    }

    /// Fails the pod on behalf of the node.
    pub(super) fn fail_pod(&self, reason: &'static str, message: &str, grace: Option<Duration>) {
        self.node.events.record_warning(self.reference.clone(), reason, message);
        let verdict = PodFailure { reason: reason.into(), message: message.to_owned(), grace };
        self.status.update(|facts| {
            facts.failure.get_or_insert(verdict);
        });
    }

    /// The grace period of the pod.
    pub(super) fn grace_period(&self) -> Duration {
        let told = self.updates.borrow();
        let asked = told.pod.metadata.deletion_grace_period_seconds;
        let usual = told.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let seconds = asked.or(usual).and_then(|seconds| u64::try_from(seconds).ok());
        // A pod may ask for more seconds than a clock can represent.
        seconds.map_or(DEFAULT_GRACE_PERIOD, |seconds| Duration::from_secs(seconds.min(u32::MAX.into())))
    }
}

/// The time at which the pod exceeds `activeDeadlineSeconds`.
fn active_deadline(pod: &Pod) -> Option<Instant> {
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
