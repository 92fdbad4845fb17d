//! What the operator did, counted, in Prometheus' text format.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use kubewake_api::{Signal, State};
use kubewake_trail::controller;

use crate::{cause::Cause, closed::closed, desk::Id, kind::Kind};

#[cfg(test)]
mod tests;

/// Seconds. A reconcile that changes nothing takes a millisecond, and one that waits for a busy API server some seconds.
const BOUNDS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

closed! {
    /// What can fail.
    Step {
        /// To follow objects. Until it works again the operator goes by what it saw last.
        Watch => "watch",
        /// To take a slot.
        Slot => "slot",
        /// To keep what a pipeline is for an operator that starts later.
        Keep => "keep",
        /// To make the collector layer what it should be. Every pipeline that waits for it counts.
        Layer => "layer",
        /// To write a status.
        Status => "status",
    }
}

/// What was done so far.
#[derive(Debug, Default)]
pub struct Metrics {
    durations: Mutex<BTreeMap<Signal, Histogram>>,
    waits: Mutex<BTreeMap<Signal, Histogram>>,
    depths: Mutex<BTreeMap<Signal, usize>>,
    running: AtomicI64,
    failures: Mutex<BTreeMap<(Step, Cause), u64>>,
    runs: AtomicU64,
    failed_runs: AtomicU64,
    writes: Mutex<BTreeMap<Kind, u64>>,
    states: Mutex<BTreeMap<Id, State>>,
    leads: AtomicI64,
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.count += 1;
        self.sum += seconds;
        for (bucket, bound) in self.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
    }
}

/// Counts the pipelines of one kind that wait for a reconcile.
#[derive(Debug)]
pub struct Queue {
    metrics: Arc<Metrics>,
    signal: Signal,
}

impl Queue {
    /// Of the pipelines of this signal.
    pub fn new(metrics: &Arc<Metrics>, signal: Signal) -> Self {
        Self { metrics: Arc::clone(metrics), signal }
    }
}

impl controller::Queue for Queue {
    fn waits(&self, objects: usize) {
        let mut depths = lock(&self.metrics.depths);
        if self.metrics.is_leading() {
            depths.insert(self.signal, objects);
        }
    }

    fn begins(&self, waited: Duration) {
        lock(&self.metrics.waits).entry(self.signal).or_default().add(waited);
    }
}

/// A reconcile that is under way. It is over when this is dropped.
#[derive(Debug)]
pub struct Timer {
    metrics: Arc<Metrics>,
    signal: Signal,
    started: Instant,
}

impl Metrics {
    /// A reconcile begins.
    pub fn reconcile(self: &Arc<Self>, signal: Signal) -> Timer {
        self.running.fetch_add(1, Ordering::Relaxed);
        Timer { metrics: Arc::clone(self), signal, started: Instant::now() }
    }

    /// Something failed.
    pub fn failed(&self, step: Step, cause: Cause) {
        *lock(&self.failures).entry((step, cause)).or_default() += 1;
    }

    /// The layer is looked at.
    pub fn layer_run(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// That did not work.
    pub fn layer_failed(&self) {
        self.failed_runs.fetch_add(1, Ordering::Relaxed);
    }

    /// An object was written or removed.
    pub fn wrote(&self, kind: Kind) {
        *lock(&self.writes).entry(kind).or_default() += 1;
    }

    /// A pipeline is in a state. Nothing is said of it any more by a reconcile that outlives its leadership.
    pub fn state(&self, id: &Id, state: Option<State>) {
        let mut states = lock(&self.states);
        match state.filter(|_| self.is_leading()) {
            Some(state) => _ = states.insert(id.clone(), state),
            None => _ = states.remove(id),
        }
    }

    /// Only these pipelines are there.
    pub fn retain(&self, is_there: impl Fn(&Id) -> bool) {
        lock(&self.states).retain(|id, _| is_there(id));
    }

    /// Whether this one leads. Who does not knows nothing of pipelines.
    pub fn leads(&self, leads: bool) {
        self.leads.store(leads.into(), Ordering::Relaxed);
        // Whoever locks them later sees what was stored before.
        if !leads {
            lock(&self.states).clear();
            lock(&self.depths).clear();
        }
    }

    fn is_leading(&self) -> bool {
        self.leads.load(Ordering::Relaxed) != 0
    }

    /// All of it as text.
    pub fn page(&self) -> String {
        let mut page = String::new();
        // Writing to a text does not fail.
        let _ = self.write(&mut page);
        page
    }

    fn write(&self, page: &mut String) -> fmt::Result {
        let mut single = |name: &str, kind: &str, help: &str, value: i128| {
            writeln!(
                page,
                "# HELP kubewake_operator_{name} {help}\n# TYPE kubewake_operator_{name} {kind}\nkubewake_operator_{name} {value}"
            )
        };
        single("leader", "gauge", "Whether this replica leads.", self.leads.load(Ordering::Relaxed).into())?;
        single("reconciles_running", "gauge", "Reconciles under way.", self.running.load(Ordering::Relaxed).into())?;
        single(
            "layer_runs_total",
            "counter",
            "Looks at the collector layer.",
            self.runs.load(Ordering::Relaxed).into(),
        )?;
        let failed = self.failed_runs.load(Ordering::Relaxed);
        single("layer_failures_total", "counter", "Looks after which it was not as it should be.", failed.into())?;
        let took = "How long reconciles took, those that failed included.";
        write_histograms(page, "reconcile_duration_seconds", took, &lock(&self.durations))?;
        head(page, "queue_depth", "gauge", "Pipelines to which something happened and whose reconcile has not begun.")?;
        for (signal, depth) in &*lock(&self.depths) {
            writeln!(page, "kubewake_operator_queue_depth{{signal=\"{signal}\"}} {depth}")?;
        }
        let waited = "How long after something happened to pipelines their reconciles began.";
        write_histograms(page, "queue_wait_seconds", waited, &lock(&self.waits))?;
        head(page, "errors_total", "counter", "What failed, by the step that did and the reason.")?;
        for ((step, cause), count) in &*lock(&self.failures) {
            let (step, reason) = (step.as_str(), cause.as_str());
            writeln!(page, "kubewake_operator_errors_total{{step=\"{step}\",reason=\"{reason}\"}} {count}")?;
        }
        head(page, "writes_total", "counter", "Requests that wrote or removed objects of the layer.")?;
        for (kind, count) in &*lock(&self.writes) {
            writeln!(page, "kubewake_operator_writes_total{{kind=\"{kind:?}\"}} {count}")?;
        }
        self.write_states(page)
    }

    fn write_states(&self, page: &mut String) -> fmt::Result {
        let mut counts = BTreeMap::<(Signal, &str), u64>::new();
        for (id, state) in &*lock(&self.states) {
            *counts.entry((id.signal, state.as_str())).or_default() += 1;
        }
        head(page, "pipelines", "gauge", "Pipelines, by what flows through them and their state.")?;
        for ((signal, state), count) in counts {
            writeln!(page, "kubewake_operator_pipelines{{signal=\"{signal}\",state=\"{state}\"}} {count}")?;
        }
        Ok(())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.metrics.running.fetch_sub(1, Ordering::Relaxed);
        lock(&self.metrics.durations).entry(self.signal).or_default().add(self.started.elapsed());
    }
}

fn write_histograms(
    page: &mut String,
    name: &str,
    help: &str,
    histograms: &BTreeMap<Signal, Histogram>,
) -> fmt::Result {
    head(page, name, "histogram", help)?;
    let name = format!("kubewake_operator_{name}");
    for (signal, histogram) in histograms {
        for (bound, count) in BOUNDS.iter().zip(histogram.buckets) {
            writeln!(page, "{name}_bucket{{signal=\"{signal}\",le=\"{bound}\"}} {count}")?;
        }
        writeln!(page, "{name}_bucket{{signal=\"{signal}\",le=\"+Inf\"}} {}", histogram.count)?;
        writeln!(page, "{name}_sum{{signal=\"{signal}\"}} {}", histogram.sum)?;
        writeln!(page, "{name}_count{{signal=\"{signal}\"}} {}", histogram.count)?;
    }
    Ok(())
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(page, "# HELP kubewake_operator_{name} {help}\n# TYPE kubewake_operator_{name} {kind}")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
