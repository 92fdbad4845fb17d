//! The operator's metrics, in Prometheus' text format.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use kubewake_api::{Signal, State};
use kubewake_runtime::{
    label_enum,
    lock::Mutex,
    prometheus::{LabelSet, MetricKind, MetricsText},
};
use kubewake_trail::controller;

use crate::{
    model::object_kind::ObjectKind, pipeline::pipeline_cache::PipelineKey, runtime::failure_cause::FailureCause,
};

#[cfg(test)]
mod tests;

/// Bucket bounds in seconds. A reconcile without changes takes a millisecond, and one that waits for a busy API
/// server some seconds.
const BUCKET_BOUNDS_SECONDS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

label_enum! {
    pub enum ReconcileStep {
        /// Watching objects. Until it works again the operator relies on its caches.
        Watch => "watch",
        Slot => "slot",
        /// Recording a pipeline's last valid spec.
        LastValid => "keep",
        /// Reconciling the collector layer. Every pipeline that waits for the run counts.
        Layer => "layer",
        Status => "status",
        /// Deleting what deleted pipelines left.
        Orphans => "clear",
    }
}

#[derive(Debug, Default)]
pub struct OperatorMetrics {
    durations: Mutex<BTreeMap<Signal, SecondsHistogram>>,
    waits: Mutex<BTreeMap<Signal, SecondsHistogram>>,
    depths: Mutex<BTreeMap<Signal, usize>>,
    running: AtomicI64,
    failures: Mutex<BTreeMap<(ReconcileStep, FailureCause), u64>>,
    runs: AtomicU64,
    failed_runs: AtomicU64,
    writes: Mutex<BTreeMap<ObjectKind, u64>>,
    states: Mutex<BTreeMap<PipelineKey, State>>,
    leading: AtomicI64,
}

#[derive(Debug, Default)]
struct SecondsHistogram {
    buckets: [u64; BUCKET_BOUNDS_SECONDS.len()],
    count: u64,
    sum: f64,
}

impl SecondsHistogram {
    fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.count += 1;
        self.sum += seconds;
        for (bucket, bound) in self.buckets.iter_mut().zip(BUCKET_BOUNDS_SECONDS) {
            *bucket += u64::from(seconds <= bound);
        }
    }
}

/// Counts the pipelines of one kind that wait for a reconcile.
#[derive(Debug)]
pub struct QueueMetrics {
    metrics: Arc<OperatorMetrics>,
    signal: Signal,
}

impl QueueMetrics {
    /// The queue of the pipelines of this signal.
    pub fn new(metrics: &Arc<OperatorMetrics>, signal: Signal) -> Self {
        Self { metrics: Arc::clone(metrics), signal }
    }
}

impl controller::QueueObserver for QueueMetrics {
    fn on_depth_changed(&self, objects: usize) {
        let mut depths = self.metrics.depths.lock();
        if self.metrics.is_leading() {
            depths.insert(self.signal, objects);
        }
    }

    fn on_run_started(&self, waited: Duration) {
        self.metrics.waits.lock().entry(self.signal).or_default().observe(waited);
    }
}

/// A reconcile in progress, which ends when this is dropped.
#[derive(Debug)]
pub struct ReconcileTimer {
    metrics: Arc<OperatorMetrics>,
    signal: Signal,
    started: Instant,
}

impl OperatorMetrics {
    pub fn reconcile(self: &Arc<Self>, signal: Signal) -> ReconcileTimer {
        self.running.fetch_add(1, Ordering::Relaxed);
        ReconcileTimer { metrics: Arc::clone(self), signal, started: Instant::now() }
    }

    pub fn count_failure(&self, step: ReconcileStep, cause: FailureCause) {
        *self.failures.lock().entry((step, cause)).or_default() += 1;
    }

    /// Counts a run of the layer.
    pub fn count_layer_run(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_layer_failure(&self) {
        self.failed_runs.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an object that was written or deleted.
    pub fn count_write(&self, kind: ObjectKind) {
        *self.writes.lock().entry(kind).or_default() += 1;
    }

    /// Sets the state of a pipeline. Ignored after leadership has ended, when a reconcile may still be running.
    pub fn state(&self, id: &PipelineKey, state: Option<State>) {
        let mut states = self.states.lock();
        match state.filter(|_| self.is_leading()) {
            Some(state) => _ = states.insert(id.clone(), state),
            None => _ = states.remove(id),
        }
    }

    /// Drops the states of all other pipelines.
    pub fn retain(&self, is_there: impl Fn(&PipelineKey) -> bool) {
        self.states.lock().retain(|id, _| is_there(id));
    }

    /// Sets whether this operator leads. One that does not lead knows no states of pipelines.
    pub fn set_leading(&self, leads: bool) {
        self.leading.store(leads.into(), Ordering::Relaxed);
        // The locks order this after the store: a later writer sees that this operator no longer leads.
        if !leads {
            self.states.lock().clear();
            self.depths.lock().clear();
        }
    }

    fn is_leading(&self) -> bool {
        self.leading.load(Ordering::Relaxed) != 0
    }

    pub fn render(&self) -> String {
        let mut page = MetricsText::default();
        let load = |gauge: &AtomicI64| gauge.load(Ordering::Relaxed);
        let help = "Whether this replica is the leader.";
        page.single("kubewake_operator_leader", MetricKind::Gauge, help, load(&self.leading));
        let help = "Reconciles in progress.";
        page.single("kubewake_operator_reconciles_running", MetricKind::Gauge, help, load(&self.running));
        let help = "Reconciles of the collector layer.";
        let runs = self.runs.load(Ordering::Relaxed);
        page.single("kubewake_operator_layer_runs_total", MetricKind::Counter, help, runs);
        let help = "Failed reconciles of the collector layer.";
        let failed = self.failed_runs.load(Ordering::Relaxed);
        page.single("kubewake_operator_layer_failures_total", MetricKind::Counter, help, failed);
        let help = "Duration of reconciles, including failed ones.";
        write_histograms(&mut page, "kubewake_operator_reconcile_duration_seconds", help, &self.durations.lock());
        let help = "Pipelines that wait for their reconcile to start.";
        let mut depths = page.family("kubewake_operator_queue_depth", MetricKind::Gauge, help);
        for (signal, depth) in &*self.depths.lock() {
            depths.sample(&signal_label(*signal), depth);
        }
        let help = "Time from a trigger to the start of the reconcile.";
        write_histograms(&mut page, "kubewake_operator_queue_wait_seconds", help, &self.waits.lock());
        self.write_failures(&mut page);
        self.write_writes(&mut page);
        self.write_states(&mut page);
        page.into_text()
    }

    fn write_failures(&self, page: &mut MetricsText) {
        let help = "Errors, by step and reason.";
        let mut failures = page.family("kubewake_operator_errors_total", MetricKind::Counter, help);
        for ((step, cause), count) in &*self.failures.lock() {
            failures.sample(&LabelSet::new(&[("step", step.name()), ("reason", cause.name())]), count);
        }
    }

    fn write_writes(&self, page: &mut MetricsText) {
        let help = "Requests that wrote or deleted objects of the collector layer.";
        let mut writes = page.family("kubewake_operator_writes_total", MetricKind::Counter, help);
        for (kind, count) in &*self.writes.lock() {
            writes.sample(&LabelSet::new(&[("kind", &format!("{kind:?}"))]), count);
        }
    }

    fn write_states(&self, page: &mut MetricsText) {
        let mut counts = BTreeMap::<(Signal, &str), u64>::new();
        for (id, state) in &*self.states.lock() {
            *counts.entry((id.signal, state.as_str())).or_default() += 1;
        }
        let help = "Pipelines, by signal and state.";
        let mut pipelines = page.family("kubewake_operator_pipelines", MetricKind::Gauge, help);
        for ((signal, state), count) in counts {
            pipelines.sample(&signal_label(signal).with("state", state), count);
        }
    }
}

impl Drop for ReconcileTimer {
    fn drop(&mut self) {
        self.metrics.running.fetch_sub(1, Ordering::Relaxed);
        self.metrics.durations.lock().entry(self.signal).or_default().observe(self.started.elapsed());
    }
}

fn write_histograms(page: &mut MetricsText, name: &str, help: &str, histograms: &BTreeMap<Signal, SecondsHistogram>) {
    let mut family = page.family(name, MetricKind::Histogram, help);
    for (signal, histogram) in histograms {
        let buckets = BUCKET_BOUNDS_SECONDS.into_iter().zip(histogram.buckets);
        family.histogram(&signal_label(*signal), buckets, histogram.sum, histogram.count);
    }
}

fn signal_label(signal: Signal) -> LabelSet {
    LabelSet::new(&[("signal", signal.name())])
}
