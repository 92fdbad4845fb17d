//! What the operator did, counted, in Prometheus' text format.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Instant,
};

use kubewake_api::{Signal, State};

use crate::{desk::Id, kind::Kind, reconcile::Error};

/// Seconds. A reconcile that changes nothing takes a millisecond, and one that waits for a busy API server some seconds.
const BOUNDS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// What was done so far.
#[derive(Debug, Default)]
pub struct Metrics {
    durations: Mutex<BTreeMap<Signal, Histogram>>,
    running: AtomicI64,
    failures: Mutex<BTreeMap<&'static str, u64>>,
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

    /// A reconcile failed.
    pub fn failed(&self, error: &Error) {
        let step = match error {
            Error::Slot(_) => "slot",
            Error::Layer(_) => "layer",
            Error::Status(_) => "status",
        };
        *lock(&self.failures).entry(step).or_default() += 1;
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

    /// A pipeline is in a state.
    pub fn state(&self, id: &Id, state: Option<State>) {
        let mut states = lock(&self.states);
        match state {
            Some(state) => _ = states.insert(id.clone(), state),
            None => _ = states.remove(id),
        }
    }

    /// Only these pipelines are there.
    pub fn retain(&self, is_there: impl Fn(&Id) -> bool) {
        lock(&self.states).retain(|id, _| is_there(id));
    }

    /// Whether this one leads.
    pub fn leads(&self, leads: bool) {
        self.leads.store(leads.into(), Ordering::Relaxed);
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
        self.write_durations(page)?;
        head(page, "errors_total", "counter", "Reconciles that failed, by the step that did.")?;
        for (step, count) in &*lock(&self.failures) {
            writeln!(page, "kubewake_operator_errors_total{{step=\"{step}\"}} {count}")?;
        }
        head(page, "writes_total", "counter", "Requests that wrote or removed objects of the layer.")?;
        for (kind, count) in &*lock(&self.writes) {
            writeln!(page, "kubewake_operator_writes_total{{kind=\"{kind:?}\"}} {count}")?;
        }
        self.write_states(page)
    }

    fn write_durations(&self, page: &mut String) -> fmt::Result {
        head(page, "reconcile_duration_seconds", "histogram", "How long reconciles took, those that failed included.")?;
        let name = "kubewake_operator_reconcile_duration_seconds";
        for (signal, histogram) in &*lock(&self.durations) {
            for (bound, count) in BOUNDS.iter().zip(histogram.buckets) {
                writeln!(page, "{name}_bucket{{signal=\"{signal}\",le=\"{bound}\"}} {count}")?;
            }
            writeln!(page, "{name}_bucket{{signal=\"{signal}\",le=\"+Inf\"}} {}", histogram.count)?;
            writeln!(page, "{name}_sum{{signal=\"{signal}\"}} {}", histogram.sum)?;
            writeln!(page, "{name}_count{{signal=\"{signal}\"}} {}", histogram.count)?;
        }
        Ok(())
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
        let seconds = self.started.elapsed().as_secs_f64();
        let mut durations = lock(&self.metrics.durations);
        let histogram = durations.entry(self.signal).or_default();
        histogram.count += 1;
        histogram.sum += seconds;
        for (bucket, bound) in histogram.buckets.iter_mut().zip(BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
    }
}

fn head(page: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(page, "# HELP kubewake_operator_{name} {help}\n# TYPE kubewake_operator_{name} {kind}")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
