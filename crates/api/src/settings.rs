//! How the collectors run: what Telemetry says, with a default for everything that it does not.

mod quantity;

use std::time::Duration;

use kubewake_config::written;

use crate::{
    Problem, Reason, Signal,
    v1alpha1::{Compression, Defaults, LogLevel, PullSecret, Resources, Slots, TelemetrySpec},
    validate::sending,
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
        let mut problems = Vec::new();
        let none = Defaults::default();
        let defaults = sending("spec.defaults", spec.defaults.as_ref().unwrap_or(&none), &mut problems);
        let mut settings = Self::new(namespace);
        settings.defaults = defaults;
        settings.scale(spec, &mut problems);
        for (path, given) in [
            ("spec.resources", spec.resources.as_ref()),
            ("spec.sticky.resources", spec.sticky.as_ref().and_then(|sticky| sticky.resources.as_ref())),
        ] {
            quantity::check(path, given, &mut problems);
        }
        settings.image = spec.image.clone();
        settings.image_pull_secrets = spec.image_pull_secrets.clone();
        settings.slots = spec.slots.clone().unwrap_or_default();
        settings.resources = spec.resources.clone().unwrap_or_default();
        if let Some(sticky) = &spec.sticky {
            settings.sticky_replicas = sticky.replicas.unwrap_or(MIN_REPLICAS).max(1);
            settings.sticky_resources = sticky.resources.clone().unwrap_or_default();
        }
        let opencensus = spec.receivers.as_ref().and_then(|receivers| receivers.opencensus.as_ref());
        settings.opencensus = opencensus.is_some_and(|opencensus| opencensus.enabled);
        settings.enrichment = spec.enrichment.as_ref().is_none_or(|enrichment| enrichment.enabled);
        settings.log_level = spec.log_level.unwrap_or_default();
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    fn scale(&mut self, spec: &TelemetrySpec, problems: &mut Vec<Problem>) {
        let (min, max) = spec.replicas.as_ref().map_or((None, None), |replicas| (replicas.min, replicas.max));
        let least = min.unwrap_or(MIN_REPLICAS).max(1);
        self.max_replicas = max.unwrap_or(MAX_REPLICAS.max(least)).max(1);
        self.min_replicas = if min.is_some() { least } else { least.min(self.max_replicas) };
        if self.min_replicas > self.max_replicas {
            let message = "`min` must not be greater than `max`".to_owned();
            problems.push(Problem { path: "spec.replicas".into(), reason: Reason::SettingInvalid, message });
        }
        let cpu = spec.scaling.as_ref().and_then(|scaling| scaling.cpu_utilization);
        self.cpu_utilization = cpu.unwrap_or(CPU_UTILIZATION).max(1);
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

/// Everything that is wrong with a Telemetry.
pub fn validate_telemetry(spec: &TelemetrySpec) -> Vec<Problem> {
    Settings::of(spec, "").err().unwrap_or_default()
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
