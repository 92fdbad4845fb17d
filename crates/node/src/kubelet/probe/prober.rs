//! One probe of one run of a container, again and again.
//!
//! The checks that count are those that the kubelet makes: the first after `initialDelaySeconds`, then one each
//! `periodSeconds`. The kubelet first hears of a container some time after it has started; here that is known at once, and the first
//! check that counts comes [a little later](GRACE), so that a program that has just begun is not called unhealthy.
//!
//! *Besides*, until a startup or readiness probe has succeeded for the first time, it is tried in between: at once, and then
//! after a quarter of the time that has passed, so that a program that is ready is found so within a quarter of the time that it
//! took. Such a check counts only if it succeeds: a program has as long to start as its probe says.
//!
//! A check that could not be made is told of, and changes nothing.

use std::{fmt, future::Future, time::Duration};

use k8s_openapi::api::core::v1::Probe;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{Checker, Fault, Target, seconds};

/// The first check of a probe without a delay counts after this time. The kubelet looks for new containers each second, so that
/// its first check comes half a second late on average.
const GRACE: Duration = Duration::from_millis(500);

/// The shortest pause between checks.
const SHORTEST: Duration = Duration::from_millis(10);

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ends when it has succeeded, or failed so often that the container is to be restarted.
    Startup,
    /// Goes on for as long as the container runs.
    Readiness,
    /// Ends when it has failed so often that the container is to be restarted.
    Liveness,
}

/// As events begin: `Readiness probe failed: …`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a probe has found, by its thresholds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing yet. A container that must be ready is not; one that must be alive is.
    #[default]
    Unknown,
    /// It succeeded, as often in a row as it must.
    Success,
    /// It failed, as often in a row as it may; why the last time.
    Failure(String),
}

/// A probe that is run until this is dropped.
#[derive(Debug)]
pub struct Prober {
    outcome: watch::Receiver<Outcome>,
    _task: JoinSet<()>,
}

impl Prober {
    /// Begins now, when the container has started. `unhealthy` hears of every check that counts and did not succeed, for an event.
    pub fn start(
        kind: Kind,
        probe: Probe,
        target: Target,
        checker: Checker,
        unhealthy: impl Fn(&Fault) + Send + Sync + 'static,
    ) -> Self {
        let (told, outcome) = watch::channel(Outcome::Unknown);
        let mut task = JoinSet::new();
        task.spawn(async move {
            run(kind, &probe, || checker.check(&probe, &target), &told, unhealthy).await;
            // Whoever waits for a change waits for one that may never come, and is not told that nobody will speak.
            told.closed().await;
        });
        Self { outcome, _task: task }
    }

    /// What it has found, now and from now on.
    pub fn outcome(&self) -> watch::Receiver<Outcome> {
        self.outcome.clone()
    }
}

/// Checks until there is nothing more to find out.
async fn run<F: Future<Output = Result<(), Fault>>>(
    kind: Kind,
    probe: &Probe,
    check: impl Fn() -> F,
    told: &watch::Sender<Outcome>,
    unhealthy: impl Fn(&Fault),
) {
    let mut rhythm = Rhythm::new(kind, probe, Instant::now());
    let mut tally = Tally::new(probe);
    loop {
        sleep_until(rhythm.next()).await;
        let counts = rhythm.counts();
        let result = check().await;
        rhythm.checked(result.is_ok(), counts, Instant::now());
        if !counts && result.is_err() {
            continue;
        }
        if let Err(fault) = &result {
            unhealthy(fault);
        }
        let Some(outcome) = tally.count(result) else { continue };
        let ends = match outcome {
            Outcome::Failure(_) => kind != Kind::Readiness,
            _ => kind == Kind::Startup,
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

/// When the next check is.
struct Rhythm {
    /// The next check that counts.
    regular: Instant,
    period: Duration,
    /// The next one in between, until one has succeeded.
    early: Option<Instant>,
    /// When the first of all was.
    begun: Instant,
}

impl Rhythm {
    fn new(kind: Kind, probe: &Probe, now: Instant) -> Self {
        let delay = seconds(probe.initial_delay_seconds, 0);
        let begun = now + delay;
        let period = seconds(probe.period_seconds, 10);
        let regular = if delay.is_zero() { begun + GRACE } else { begun };
        Self { regular, period, early: (kind != Kind::Liveness).then_some(begun), begun }
    }

    fn next(&self) -> Instant {
        self.early.map_or(self.regular, |early| early.min(self.regular))
    }

    /// Whether the next one counts although it may fail.
    fn counts(&self) -> bool {
        self.next() == self.regular
    }

    fn checked(&mut self, succeeded: bool, counted: bool, now: Instant) {
        let first_success = succeeded && self.early.take().is_some();
        if counted || first_success {
            let from = if counted { self.regular } else { now };
            self.regular = from + self.period;
            // Checks that were missed, since one took longer than the period, are not made up for.
            while self.regular <= now {
                self.regular += self.period;
            }
        }
        if self.early.is_some() {
            let pause = (now.saturating_duration_since(self.begun) / 4).max(SHORTEST);
            self.early = (pause < self.period).then_some(now + pause);
        }
    }
}

/// Counts results in a row.
struct Tally {
    last: Option<bool>,
    run: i32,
    successes: i32,
    failures: i32,
}

impl Tally {
    fn new(probe: &Probe) -> Self {
        let successes = probe.success_threshold.unwrap_or(1);
        Self { last: None, run: 0, successes, failures: probe.failure_threshold.filter(|it| *it > 0).unwrap_or(3) }
    }

    /// What is found, once there are enough results of one kind in a row.
    fn count(&mut self, result: Result<(), Fault>) -> Option<Outcome> {
        if matches!(result, Err(Fault::Errored(_))) {
            return None;
        }
        let succeeded = result.is_ok();
        self.run = if self.last == Some(succeeded) { self.run.saturating_add(1) } else { 1 };
        self.last = Some(succeeded);
        match result {
            Ok(()) => (self.run >= self.successes).then_some(Outcome::Success),
            Err(fault) => (self.run >= self.failures).then(|| Outcome::Failure(fault.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
