//! How the collectors run: the settings of the Telemetry, with a default for each.

mod image;
mod quantity;
mod resources;
mod telemetry;

use std::time::Duration;

use kubewake_config::model::{QueueBatch, QueueConfig, QueueSizer, RetryConfig};

pub use self::{image::image_name_error, resources::EffectiveResources};
use crate::{
    ConditionReason, Signal, SpecProblem, TelemetryPipeline, ValidationReport,
    destination::PipelineDestination,
    v1alpha1::{
        CollectorLogLevel, ContainerResources, OtlpCompression, PipelineSlots, PullSecret, QueueOptions, TelemetrySpec,
        TrustedRelay,
    },
};

/// How the collectors of one operator run.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectorSettings {
    /// The namespace of the collectors.
    pub namespace: String,
    /// The minimum number of gateway collectors.
    pub min_replicas: i32,
    /// The maximum number of gateway collectors.
    pub max_replicas: i32,
    /// The autoscaler's target for CPU use, in percent of the request.
    pub cpu_utilization: i32,
    /// The resources of a gateway collector that differ from the defaults.
    pub resources: ContainerResources,
    /// The number of collectors of the sticky tier.
    pub sticky_replicas: i32,
    /// The resources of a sticky collector that differ from the defaults.
    pub sticky_resources: ContainerResources,
    /// The resources of a collector on a node that differ from the defaults.
    pub agent_resources: ContainerResources,
    /// Directories of the nodes that links in the directory of logs lead to.
    pub linked_log_directories: Vec<String>,
    /// The image, unless it is the default.
    pub image: Option<String>,
    /// The Secrets with which the image is pulled.
    pub image_pull_secrets: Vec<PullSecret>,
    /// How many pipelines of each kind may be active at once.
    pub slots: PipelineSlots,
    /// Whether OpenCensus is received, too.
    pub opencensus: bool,
    /// Whether the collectors add attributes of the sender's pod.
    pub enrichment: bool,
    /// Pods that are trusted to name the sender of telemetry that they forward.
    pub trusted_relays: Vec<TrustedRelay>,
    /// The log level of the collectors.
    pub log_level: CollectorLogLevel,
    pub(crate) defaults: SendingSettings,
}

/// Two, so that one may be evicted.
const DEFAULT_MIN_REPLICAS: i32 = 2;
const DEFAULT_MAX_REPLICAS: i32 = 10;
const DEFAULT_CPU_UTILIZATION_PERCENT: i32 = 80;

impl CollectorSettings {
    /// The settings without a Telemetry.
    pub fn new(namespace: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            min_replicas: DEFAULT_MIN_REPLICAS,
            max_replicas: DEFAULT_MAX_REPLICAS,
            cpu_utilization: DEFAULT_CPU_UTILIZATION_PERCENT,
            resources: ContainerResources::default(),
            sticky_replicas: DEFAULT_MIN_REPLICAS,
            sticky_resources: ContainerResources::default(),
            agent_resources: ContainerResources::default(),
            linked_log_directories: Vec::new(),
            image: None,
            image_pull_secrets: Vec::new(),
            slots: PipelineSlots::default(),
            opencensus: false,
            enrichment: true,
            trusted_relays: Vec::new(),
            log_level: CollectorLogLevel::default(),
            defaults: SendingSettings::default(),
        }
    }

    /// The settings of a Telemetry.
    ///
    /// # Errors
    ///
    /// All problems of the spec.
    pub fn from_spec(spec: &TelemetrySpec, namespace: impl Into<String>) -> Result<Self, Vec<SpecProblem>> {
        let (settings, problems) = Self::from_spec_lenient(spec, namespace);
        if problems.is_empty() { Ok(settings) } else { Err(problems) }
    }

    /// The settings of a Telemetry where it is valid, defaults elsewhere, and all problems.
    pub fn from_spec_lenient(spec: &TelemetrySpec, namespace: impl Into<String>) -> (Self, Vec<SpecProblem>) {
        telemetry::apply_spec(spec, Self::new(namespace))
    }

    /// The resources of a gateway collector.
    pub fn gateway(&self) -> EffectiveResources {
        EffectiveResources::new(&self.resources, resources::GATEWAY_MEMORY)
    }

    /// The resources of a sticky collector.
    pub fn sticky(&self) -> EffectiveResources {
        EffectiveResources::new(&self.sticky_resources, resources::STICKY_MEMORY)
    }

    /// The resources of a collector on a node.
    pub fn agent(&self) -> EffectiveResources {
        EffectiveResources::new(&self.agent_resources, resources::AGENT_MEMORY)
    }

    /// Warnings about a pipeline that depend on these settings.
    pub fn warnings(&self, pipeline: &TelemetryPipeline) -> Vec<SpecProblem> {
        let is_sticky = pipeline.sampling.as_ref().is_some_and(|sampling| sampling.tail.is_some());
        let amounts = match &pipeline.runtime {
            Some(_) => self.agent(),
            None if is_sticky => self.sticky(),
            None => self.gateway(),
        };
        let destinations = pipeline.destinations.iter();
        let warning = |one: &PipelineDestination| {
            too_large(&format!("{}.queue", one.path()), one.sending.queue.as_ref(), &amounts)
        };
        destinations.filter_map(warning).collect()
    }

    /// How many pipelines of a kind may be active at once.
    pub fn slots(&self, signal: Signal) -> usize {
        let slots = match signal {
            Signal::Traces => self.slots.traces,
            Signal::Logs => self.slots.logs,
            Signal::Metrics => self.slots.metrics,
        };
        slots.and_then(|slots| usize::try_from(slots).ok()).unwrap_or(1).max(1)
    }
}

/// Validates a Telemetry: all problems and warnings.
pub fn validate_telemetry(spec: &TelemetrySpec) -> ValidationReport {
    let (settings, problems) = CollectorSettings::from_spec_lenient(spec, "");
    let queue = spec.defaults.as_ref().and_then(|defaults| defaults.queue.as_ref());
    let warnings = too_large("spec.defaults.queue", queue, &settings.gateway()).into_iter().collect();
    ValidationReport { problems, warnings }
}

/// The share of its memory that a collector fills before it refuses data. It follows from the documents: three
/// quarters, less the part of these that is reserved.
const BUFFER_MEMORY_SHARE: f64 = 0.6;

/// Warns about a queue that can never be full: the collector refuses data before, also for other pipelines.
fn too_large(path: &str, queue: Option<&QueueOptions>, amounts: &EffectiveResources) -> Option<SpecProblem> {
    let size = queue?.size_bytes?;
    let memory = amounts.limits.get("memory")?;
    let room = amounts.memory()? * BUFFER_MEMORY_SHARE;
    (size as f64 > room).then(|| SpecProblem {
        path: format!("{path}.sizeBytes"),
        reason: ConditionReason::SettingInvalid,
        message: format!(
            "is more than a collector of {memory} can hold, which is {room:.0} bytes: memory is full before the queue is, and data of all pipelines is \
             refused; raise the memory limit in Telemetry `default`, or lower this size"
        ),
    })
}

/// The compression, timeout, retry and queue of an exporter, as far as they are set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SendingSettings {
    pub(crate) compression: Option<OtlpCompression>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: RetrySettings,
    pub(crate) queue: SendingQueueSettings,
}

/// The settings of `retry_on_failure`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RetrySettings {
    pub(crate) enabled: Option<bool>,
    pub(crate) initial_interval: Option<Duration>,
    pub(crate) max_interval: Option<Duration>,
    pub(crate) max_elapsed_time: Option<Duration>,
}

/// The settings of `sending_queue`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SendingQueueSettings {
    pub(crate) bytes: Option<i64>,
    pub(crate) consumers: Option<i32>,
    pub(crate) flush_timeout: Option<Duration>,
    pub(crate) min_bytes: Option<i64>,
    pub(crate) max_bytes: Option<i64>,
}

/// A fifth of what a collector of the default size holds, so that several pipelines have room.
pub(crate) const DEFAULT_QUEUE_BYTES: i64 = 64 << 20;
/// Large enough that the cost per request is negligible.
const DEFAULT_MIN_BATCH_BYTES: i64 = 512 << 10;
/// By default gRPC servers accept messages of up to 4 MiB.
const DEFAULT_MAX_BATCH_BYTES: i64 = 3 << 20;

impl RetrySettings {
    /// Fills in settings that are not set, from `defaults` and then from the collector's own defaults. Settings
    /// of this pipeline are kept, and the others are adjusted to them: a pipeline that gives up after 10 s does
    /// not wait 30 s.
    pub(crate) fn with_defaults(&self, defaults: &Self) -> Option<RetryConfig> {
        if !self.enabled.or(defaults.enabled).unwrap_or(true) {
            return None;
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
        Some(RetryConfig {
            initial_interval: initial,
            max_interval: max,
            max_elapsed_time: Some(elapsed).filter(|elapsed| !elapsed.is_zero()),
            ..RetryConfig::default()
        })
    }
}

impl SendingQueueSettings {
    /// Fills in settings that are not set, as in [`RetrySettings::with_defaults`].
    pub(crate) fn with_defaults(&self, defaults: &Self) -> QueueConfig {
        let bytes = self.bytes.or(defaults.bytes).unwrap_or(DEFAULT_QUEUE_BYTES);
        let min = self.min_bytes.or(defaults.min_bytes).unwrap_or(DEFAULT_MIN_BATCH_BYTES);
        let max = self.max_bytes.or(defaults.max_bytes).unwrap_or(DEFAULT_MAX_BATCH_BYTES);
        let max = if self.max_bytes.is_none() { max.max(self.min_bytes.unwrap_or(1)) } else { max };
        let min = min.min(max);
        // The queue must have room for a batch.
        let bytes = if self.bytes.is_none() { bytes.max(min) } else { bytes };
        let min = min.min(bytes);
        let default = QueueConfig::default();
        let consumers = self.consumers.or(defaults.consumers).and_then(|consumers| consumers.try_into().ok());
        let batch = QueueBatch {
            flush_timeout: self.flush_timeout.or(defaults.flush_timeout).unwrap_or(Duration::from_millis(200)),
            min_size: min.unsigned_abs(),
            max_size: max.unsigned_abs(),
            sizer: QueueSizer::Bytes,
        };
        QueueConfig {
            queue_size: bytes.unsigned_abs(),
            sizer: QueueSizer::Bytes,
            num_consumers: consumers.unwrap_or(default.num_consumers),
            batch: Some(batch),
            ..default
        }
    }
}
