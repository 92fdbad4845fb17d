//! How the collectors run: what Telemetry says, with a default for everything that it does not.

mod amounts;
mod image;
mod quantity;
mod telemetry;

use std::time::Duration;

use kubewake_config::written;

pub use self::amounts::Amounts;
use crate::{
    Pipeline, Problem, Reason, Review, Signal,
    v1alpha1::{Compression, LogLevel, PullSecret, Queue, Resources, Slots, TelemetrySpec, TrustedRelay},
};

/// How the collectors run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The namespace that they run in.
    pub namespace: String,
    /// At least so many of them,
    pub min_replicas: i32,
    /// and at most so many.
    pub max_replicas: i32,
    /// There are more when they use more CPU than so many percent of what they request.
    pub cpu_utilization: i32,
    /// What each of them may use, where it is not the default.
    pub resources: Resources,
    /// How many collectors there are in which whole traces wait.
    pub sticky_replicas: i32,
    /// What each of those may use, where it is not the default.
    pub sticky_resources: Resources,
    /// The image, if it is not the default.
    pub image: Option<String>,
    /// What it takes to pull it.
    pub image_pull_secrets: Vec<PullSecret>,
    /// How many pipelines of each kind are active at once.
    pub slots: Slots,
    /// OpenCensus is received, too.
    pub opencensus: bool,
    /// The collectors say which pod sent something.
    pub enrichment: bool,
    /// Pods that are believed whose telemetry they forward.
    pub trusted_relays: Vec<TrustedRelay>,
    /// What they log.
    pub log_level: LogLevel,
    pub(crate) defaults: Sending,
}

/// Two, so that one can go.
const MIN_REPLICAS: i32 = 2;
const MAX_REPLICAS: i32 = 10;
const CPU_UTILIZATION: i32 = 80;

impl Settings {
    /// What holds without a Telemetry.
    pub fn new(namespace: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            min_replicas: MIN_REPLICAS,
            max_replicas: MAX_REPLICAS,
            cpu_utilization: CPU_UTILIZATION,
            resources: Resources::default(),
            sticky_replicas: MIN_REPLICAS,
            sticky_resources: Resources::default(),
            image: None,
            image_pull_secrets: Vec::new(),
            slots: Slots::default(),
            opencensus: false,
            enrichment: true,
            trusted_relays: Vec::new(),
            log_level: LogLevel::default(),
            defaults: Sending::default(),
        }
    }

    /// What a Telemetry says.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn of(spec: &TelemetrySpec, namespace: impl Into<String>) -> Result<Self, Vec<Problem>> {
        let (settings, problems) = Self::as_far_as_possible(spec, namespace);
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    /// What a Telemetry says where it makes sense, what holds without it elsewhere, and everything that is wrong with it.
    pub fn as_far_as_possible(spec: &TelemetrySpec, namespace: impl Into<String>) -> (Self, Vec<Problem>) {
        telemetry::read(spec, Self::new(namespace))
    }

    /// What one collector that receives requests, and what it may use.
    pub fn gateway(&self) -> Amounts {
        Amounts::new(&self.resources, amounts::GATEWAY_MEMORY)
    }

    /// The same of one in which whole traces wait.
    pub fn sticky(&self) -> Amounts {
        Amounts::new(&self.sticky_resources, amounts::STICKY_MEMORY)
    }

    /// What is unwise about a pipeline where collectors run like this.
    pub fn warnings(&self, pipeline: &Pipeline) -> Vec<Problem> {
        let is_sticky = pipeline.sampling.as_ref().is_some_and(|sampling| sampling.tail.is_some());
        let amounts = if is_sticky { self.sticky() } else { self.gateway() };
        let queue = pipeline.output.as_ref().and_then(|otlp| otlp.queue.as_ref());
        too_large("spec.output.otlp.queue", queue, &amounts).into_iter().collect()
    }

    /// How many pipelines of a kind are active at once.
    pub fn slots(&self, signal: Signal) -> usize {
        let slots = match signal {
            Signal::Traces => self.slots.traces,
            Signal::Logs => self.slots.logs,
            Signal::Metrics => self.slots.metrics,
        };
        slots.and_then(|slots| usize::try_from(slots).ok()).unwrap_or(1).max(1)
    }
}

/// Everything that is wrong with a Telemetry, or unwise about it.
pub fn validate_telemetry(spec: &TelemetrySpec) -> Review {
    let (settings, problems) = Settings::as_far_as_possible(spec, "");
    let queue = spec.defaults.as_ref().and_then(|defaults| defaults.queue.as_ref());
    let warnings = too_large("spec.defaults.queue", queue, &settings.gateway()).into_iter().collect();
    Review { problems, warnings }
}

/// The part of its memory that a collector fills before it refuses what comes in, as documents say it: three quarters, less what is kept free in them.
const FILLED: f64 = 0.6;

/// A queue that can never be full: the collector refuses what comes in before, also for other pipelines.
fn too_large(path: &str, queue: Option<&Queue>, amounts: &Amounts) -> Option<Problem> {
    let (size, memory) = (queue?.size_bytes?, amounts.limits.get("memory")?);
    let room = amounts.memory()? * FILLED;
    (size as f64 > room).then(|| Problem {
        path: format!("{path}.sizeBytes"),
        reason: Reason::SettingInvalid,
        message: format!(
            "is more than a collector of {memory} can hold, which is {room:.0}: before the queue is full, memory is, and all pipelines are refused data; raise \
             the limit of memory in Telemetry `default`, or lower this"
        ),
    })
}

/// How an exporter holds, sends and sends again, as far as somebody said it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sending {
    pub(crate) compression: Option<Compression>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: Retrying,
    pub(crate) queue: Batching,
}

/// As `retry_on_failure`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Retrying {
    pub(crate) enabled: Option<bool>,
    pub(crate) initial_interval: Option<Duration>,
    pub(crate) max_interval: Option<Duration>,
    pub(crate) max_elapsed_time: Option<Duration>,
}

/// As `sending_queue`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Batching {
    pub(crate) bytes: Option<i64>,
    pub(crate) consumers: Option<i32>,
    pub(crate) flush_timeout: Option<Duration>,
    pub(crate) min_bytes: Option<i64>,
    pub(crate) max_bytes: Option<i64>,
}

/// A fifth of what a collector of the usual size holds, so that a few pipelines have room beside each other.
pub(crate) const QUEUE_BYTES: i64 = 64 << 20;
/// Large enough that the cost of a request does not count.
const MIN_BATCH_BYTES: i64 = 512 << 10;
/// gRPC servers take messages of up to 4 MiB unless they are told otherwise.
const MAX_BATCH_BYTES: i64 = 3 << 20;

impl Retrying {
    /// What this says, then what the defaults say, then what the collector does by itself. What was said for this very pipeline is kept, and the rest follows
    /// it: a pipeline that gives up after 10 s does not wait 30 s.
    pub(crate) fn over(&self, defaults: &Self) -> written::Retry {
        if !self.enabled.or(defaults.enabled).unwrap_or(true) {
            return written::Retry::Off;
        }
        let or = |own: Option<Duration>, default: Option<Duration>, seconds| {
            own.or(default).unwrap_or(Duration::from_secs(seconds))
        };
        let mut initial = or(self.initial_interval, defaults.initial_interval, 5);
        let mut max = or(self.max_interval, defaults.max_interval, 30);
        let mut elapsed = or(self.max_elapsed_time, defaults.max_elapsed_time, 300);
        if !elapsed.is_zero() {
            match self.max_elapsed_time {
                Some(_) => max = self.max_interval.unwrap_or(max.min(elapsed)),
                None => elapsed = elapsed.max(self.initial_interval.unwrap_or_default()).max(max),
            }
        }
        match (self.initial_interval, self.max_interval) {
            (Some(_), None) => max = max.max(initial),
            (None, _) => initial = initial.min(max),
            (Some(_), Some(_)) => {}
        }
        written::Retry::On { initial_interval: initial, max_interval: max, max_elapsed_time: elapsed }
    }
}

impl Batching {
    /// As [`Retrying::over`].
    pub(crate) fn over(&self, defaults: &Self) -> written::Queue {
        let bytes = self.bytes.or(defaults.bytes).unwrap_or(QUEUE_BYTES);
        let min = self.min_bytes.or(defaults.min_bytes).unwrap_or(MIN_BATCH_BYTES);
        let max = self.max_bytes.or(defaults.max_bytes).unwrap_or(MAX_BATCH_BYTES);
        let max = if self.max_bytes.is_none() { max.max(self.min_bytes.unwrap_or(1)) } else { max };
        let min = min.min(max);
        // What is joined has to fit.
        let bytes = if self.bytes.is_none() { bytes.max(min) } else { bytes };
        let min = min.min(bytes);
        written::Queue {
            bytes,
            consumers: self.consumers.or(defaults.consumers),
            batch: written::QueueBatch {
                flush_timeout: self.flush_timeout.or(defaults.flush_timeout).unwrap_or(Duration::from_millis(200)),
                min_bytes: min,
                max_bytes: max,
            },
        }
    }
}
