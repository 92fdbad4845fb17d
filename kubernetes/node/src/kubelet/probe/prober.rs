//! Repeats one probe for one run of a container.
//!
//! The counted checks are the kubelet's: the first after `initialDelaySeconds`, then one every `periodSeconds`.
//! A kubelet notices the start of a container with some delay; here it is known at once, and the first counted
//! check comes after `DEFAULT_FIRST_CHECK_DELAY`, so that a program that has just started does not count as
//! unhealthy.
//!
//! *Early checks*: until a startup or readiness probe first succeeds, it is also tried in between: at once, and
//! then each time after a quarter of the elapsed time. So a ready program is noticed within a quarter of its
//! startup time. Such a check counts only if it succeeds: a program has as long to start as its probe allows.
//!
//! A check that was not possible is reported and changes nothing.

use std::{fmt, future::Future, time::Duration};

use k8s_openapi::api::core::v1::Probe;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{ProbeChecker, ProbeError, ProbeTarget, seconds_or};

/// The time of the first counted check of a probe without a delay. The kubelet looks for new containers every
/// second, so that its first check comes half a second late on average.
const DEFAULT_FIRST_CHECK_DELAY: Duration = Duration::from_millis(500);

/// The shortest interval between checks.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The type of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Ends on success, or on the failure after which the container is restarted.
    Startup,
    /// Continues for as long as the container runs.
    Readiness,
    /// Ends on the failure after which the container is restarted.
    Liveness,
}

/// The start of event messages: `Readiness probe failed: …`.
impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The result of a probe by its thresholds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// No result yet: not ready for a readiness probe, alive for a liveness probe.
    #[default]
    Unknown,
    /// Successful, at least `successThreshold` times in a row.
    Success,
    /// Failed, `failureThreshold` times in a row; with the last error.
    Failure(String),
}

/// A running probe; stopped on drop.
#[derive(Debug)]
pub struct Prober {
    outcome: watch::Receiver<ProbeOutcome>,
    _task: JoinSet<()>,
}

impl Prober {
    /// Starts the probe when its container has started. `unhealthy` is called for every counted check that did
    /// not succeed, to record an event.
    pub fn start(
        kind: ProbeKind,
        probe: Probe,
        target: ProbeTarget,
        checker: ProbeChecker,
        unhealthy: impl Fn(&ProbeError) + Send + Sync + 'static,
    ) -> Self {
        let (told, outcome) = watch::channel(ProbeOutcome::Unknown);
        let mut task = JoinSet::new();
        task.spawn(async move {
            run_probe(kind, &probe, || checker.check(&probe, &target), &told, unhealthy).await;
            // Keep the sender alive: receivers wait for a change that may never come, and must not see a closed
            // channel.
            told.closed().await;
        });
        Self { outcome, _task: task }
    }

    /// A receiver of the current and later results.
    pub fn outcome(&self) -> watch::Receiver<ProbeOutcome> {
        self.outcome.clone()
    }
}

/// Checks until the result is final.
async fn run_probe<F: Future<Output = Result<(), ProbeError>>>(
    kind: ProbeKind,
    probe: &Probe,
    check: impl Fn() -> F,
    told: &watch::Sender<ProbeOutcome>,
    unhealthy: impl Fn(&ProbeError),
) {
    let mut rhythm = ProbeSchedule::new(kind, probe, Instant::now());
    let mut tally = ResultCounter::new(probe);
    loop {
        sleep_until(rhythm.next_check()).await;
        let counts = rhythm.next_counts();
        let result = check().await;
        rhythm.record_check(result.is_ok(), counts, Instant::now());
        if !counts && result.is_err() {
            continue;
        }
        if let Err(fault) = &result {
            unhealthy(fault);
        }
        let Some(outcome) = tally.record_result(result) else { continue };
        let ends = match outcome {
            ProbeOutcome::Failure(_) => kind != ProbeKind::Readiness,
            _ => kind == ProbeKind::Startup,
        };
        told.send_if_modified(|held| {
            let news = std::mem::discriminant(held) != std::mem::discriminant(&outcome);
            *held = outcome;
            news
        });
        if ends {
            return;
        }
    }
}

/// The times of the next checks.
struct ProbeSchedule {
    /// The next counted check.
    next_counted: Instant,
    period: Duration,
    /// The next early check, until the first success.
    next_early: Option<Instant>,
    /// The time of the first check.
    begun: Instant,
}

impl ProbeSchedule {
    fn new(kind: ProbeKind, probe: &Probe, now: Instant) -> Self {
        let delay = seconds_or(probe.initial_delay_seconds, 0);
        let begun = now + delay;
        let period = seconds_or(probe.period_seconds, 10);
        let next_counted = if delay.is_zero() { begun + DEFAULT_FIRST_CHECK_DELAY } else { begun };
        Self { next_counted, period, next_early: (kind != ProbeKind::Liveness).then_some(begun), begun }
    }

    fn next_check(&self) -> Instant {
        self.next_early.map_or(self.next_counted, |early| early.min(self.next_counted))
    }

    /// Whether the next check counts even if it fails.
    fn next_counts(&self) -> bool {
        self.next_check() == self.next_counted
    }

    fn record_check(&mut self, succeeded: bool, counted: bool, now: Instant) {
        let first_success = succeeded && self.next_early.take().is_some();
        if counted || first_success {
            let from = if counted { self.next_counted } else { now };
            self.next_counted = from + self.period;
            // Checks missed by one that took longer than the period are skipped.
            while self.next_counted <= now {
                self.next_counted += self.period;
            }
        }
        if self.next_early.is_some() {
            let pause = (now.saturating_duration_since(self.begun) / 4).max(MIN_CHECK_INTERVAL);
            self.next_early = (pause < self.period).then_some(now + pause);
        }
    }
}

/// Counts consecutive results.
struct ResultCounter {
    last: Option<bool>,
    consecutive: i32,
    successes: i32,
    failures: i32,
}

impl ResultCounter {
    fn new(probe: &Probe) -> Self {
        let successes = probe.success_threshold.unwrap_or(1);
        Self {
            last: None,
            consecutive: 0,
            successes,
            failures: probe.failure_threshold.filter(|it| *it > 0).unwrap_or(3),
        }
    }

    /// The new outcome, once enough equal results follow each other.
    fn record_result(&mut self, result: Result<(), ProbeError>) -> Option<ProbeOutcome> {
        if matches!(result, Err(ProbeError::Errored(_))) {
            return None;
        }
        let succeeded = result.is_ok();
        self.consecutive = if self.last == Some(succeeded) { self.consecutive.saturating_add(1) } else { 1 };
        self.last = Some(succeeded);
        match result {
            Ok(()) => (self.consecutive >= self.successes).then_some(ProbeOutcome::Success),
            Err(fault) => (self.consecutive >= self.failures).then(|| ProbeOutcome::Failure(fault.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
