use std::{
    cell::{Cell, RefCell},
    future::ready,
};

use super::*;

/// A probe on a paused clock; `well` says whether it succeeds after this number of milliseconds.
struct Story {
    kind: ProbeKind,
    probe: Probe,
    /// The times of checks, in milliseconds.
    checks: RefCell<Vec<u64>>,
    /// The times of reported failures.
    unhealthy: RefCell<Vec<u64>>,
    begun: Instant,
}

impl Story {
    fn new(kind: ProbeKind, delay: i32, period: i32, successes: i32, failures: i32) -> Self {
        let probe = Probe {
            initial_delay_seconds: Some(delay),
            period_seconds: Some(period),
            success_threshold: Some(successes),
            failure_threshold: Some(failures),
            ..Probe::default()
        };
        let checks = RefCell::default();
        let unhealthy = RefCell::default();
        Self { kind, probe, checks, unhealthy, begun: Instant::now() }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap()
    }

    /// The outcomes within this number of seconds, with their times; the first missing element is where the
    /// probe ended.
    async fn run(&self, limit: u64, well: impl Fn(u64) -> bool) -> Vec<(u64, ProbeOutcome)> {
        let (told, mut heard) = watch::channel(ProbeOutcome::Unknown);
        let found = RefCell::new(Vec::new());
        let check = || {
            self.checks.borrow_mut().push(self.now());
            ready(if well(self.now()) { Ok(()) } else { Err(ProbeError::Failed("no".to_owned())) })
        };
        let listen = async {
            while heard.changed().await.is_ok() {
                found.borrow_mut().push((self.now(), heard.borrow().clone()));
            }
        };
        let work = run_probe(self.kind, &self.probe, check, &told, |_| self.unhealthy.borrow_mut().push(self.now()));
        tokio::select! {
            () = work => found.borrow_mut().push((self.now(), told.borrow().clone())),
            () = listen => {}
            () = tokio::time::sleep(Duration::from_secs(limit)) => {}
        }
        found.into_inner()
    }
}

fn failure() -> ProbeOutcome {
    ProbeOutcome::Failure("no".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_ready_at_once_is_found_so_at_once() {
    let story = Story::new(ProbeKind::Readiness, 0, 10, 1, 3);
    assert_eq!(story.run(25, |_| true).await, [(0, ProbeOutcome::Success)]);
    assert_eq!(*story.checks.borrow(), [0, 10_000, 20_000]);
}

#[tokio::test(start_paused = true)]
async fn a_program_is_found_ready_within_a_quarter_of_the_time_that_it_took() {
    for took in [15, 60, 140, 700, 3000, 20_000] {
        let story = Story::new(ProbeKind::Readiness, 0, 10, 1, 1000);
        let found = story.run(60, |now| now >= took).await;
        let at = found.first().unwrap().0;
        assert!(at >= took && at <= took + (took / 4).max(10) + 1, "{took}: {at}");
        assert!(story.checks.borrow().iter().filter(|at| **at < took).count() < 50);
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_starts_within_half_a_second_is_never_called_unhealthy() {
    let story = Story::new(ProbeKind::Startup, 0, 1, 1, 1);
    let found = story.run(60, |now| now >= 400).await;
    assert!(matches!(found[..], [(400..500, ProbeOutcome::Success), ..]), "{found:?}");
    assert!(story.unhealthy.borrow().is_empty());
}

#[tokio::test(start_paused = true)]
async fn checks_in_between_do_not_count_as_failures() {
    let story = Story::new(ProbeKind::Startup, 0, 10, 1, 3);
    assert_eq!(story.run(60, |_| false).await, [(20_500, failure())]);
    assert_eq!(*story.unhealthy.borrow(), [500, 10_500, 20_500]);
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_waited_for() {
    let story = Story::new(ProbeKind::Readiness, 5, 10, 1, 3);
    assert_eq!(story.run(20, |_| true).await, [(5000, ProbeOutcome::Success)]);
    assert_eq!(*story.checks.borrow(), [5000, 15_000]);
}

#[tokio::test(start_paused = true)]
async fn readiness_comes_and_goes_by_its_thresholds() {
    let story = Story::new(ProbeKind::Readiness, 0, 1, 2, 3);
    let found = story.run(20, |now| !(5000..10_000).contains(&now)).await;
    assert_eq!(found, [(1000, ProbeOutcome::Success), (7000, failure()), (11_000, ProbeOutcome::Success)]);
}

#[tokio::test(start_paused = true)]
async fn a_startup_probe_ends_when_it_has_succeeded() {
    let story = Story::new(ProbeKind::Startup, 0, 1, 1, 3);
    assert_eq!(story.run(20, |_| true).await, [(0, ProbeOutcome::Success)]);
    assert_eq!(*story.checks.borrow(), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_liveness_probe_ends_when_it_has_failed_for_good() {
    let story = Story::new(ProbeKind::Liveness, 0, 2, 1, 2);
    let found = story.run(60, |now| now < 5000).await;
    assert_eq!(found, [(500, ProbeOutcome::Success), (8500, failure())]);
    assert_eq!(*story.checks.borrow(), [500, 2500, 4500, 6500, 8500]);
}

#[tokio::test(start_paused = true)]
async fn checks_that_a_slow_one_made_impossible_are_not_made_up_for() {
    let (told, _heard) = watch::channel(ProbeOutcome::Unknown);
    let begun = Instant::now();
    let checks = RefCell::new(Vec::new());
    let number = Cell::new(0);
    let probe = Probe { period_seconds: Some(1), ..Probe::default() };
    let check = || {
        checks.borrow_mut().push(begun.elapsed().as_millis());
        number.set(number.get() + 1);
        let pause = Duration::from_millis(if number.get() == 1 { 2700 } else { 0 });
        async move {
            tokio::time::sleep(pause).await;
            Ok(())
        }
    };
    tokio::select! {
        () = run_probe(ProbeKind::Liveness, &probe, check, &told, |_| {}) => {}
        () = tokio::time::sleep(Duration::from_millis(5000)) => {}
    }
    assert_eq!(*checks.borrow(), [500, 3500, 4500]);
}

#[tokio::test(start_paused = true)]
async fn a_check_that_cannot_be_made_is_told_of_and_changes_nothing() {
    let errors = Cell::new(0);
    for kind in [ProbeKind::Startup, ProbeKind::Readiness, ProbeKind::Liveness] {
        let story = Story::new(kind, 0, 10, 1, 1);
        let (told, _heard) = watch::channel(ProbeOutcome::Unknown);
        let check = || ready(Err(ProbeError::Errored("couldn't find port \"web\" in the container".to_owned())));
        let work = run_probe(kind, &story.probe, check, &told, |fault| {
            assert!(matches!(fault, ProbeError::Errored(_)));
            errors.set(errors.get() + 1);
        });
        assert!(tokio::time::timeout(Duration::from_secs(45), work).await.is_err(), "{kind} ended");
        assert_eq!(*told.borrow(), ProbeOutcome::Unknown);
    }
    assert_eq!(errors.get(), 15);
}
