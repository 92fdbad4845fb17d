//! Exporters, and the queue and retry settings that they share.

use std::{path::PathBuf, time::Duration};

use super::network::{ClientKeepalive, ClientTls, CompressionType};
use crate::{ComponentId, SecretString};

#[derive(Clone, Debug, PartialEq)]
pub struct OtlpGrpcExporter {
    /// `endpoint` without its scheme: `host:port`.
    pub endpoint: String,
    /// `tls`; a scheme of `http` sets `insecure`, one of `https` clears it.
    pub tls: ClientTls,
    pub compression: CompressionType,
    pub headers: Vec<(String, SecretString)>,
    pub authority: Option<String>,
    pub auth: Option<ComponentId>,
    pub keepalive: Option<ClientKeepalive>,
    /// `timeout` of one attempt; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `retry_on_failure`; `None` when it is switched off.
    pub retry: Option<RetryConfig>,
    /// `sending_queue`; `None` when it is switched off.
    pub queue: Option<QueueConfig>,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BodyEncoding {
    #[default]
    Proto,
    Json,
}

#[derive(Clone, Debug, PartialEq)]
pub struct OtlpHttpExporter {
    /// The whole URL for traces; `None` if neither `endpoint` nor `traces_endpoint` is set.
    pub traces_url: Option<String>,
    /// The whole URL for metrics.
    pub metrics_url: Option<String>,
    /// The whole URL for logs.
    pub logs_url: Option<String>,
    pub encoding: BodyEncoding,
    pub tls: ClientTls,
    pub compression: CompressionType,
    pub headers: Vec<(String, SecretString)>,
    pub auth: Option<ComponentId>,
    /// `timeout` of one attempt; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `retry_on_failure`; `None` when it is switched off.
    pub retry: Option<RetryConfig>,
    /// `sending_queue`; `None` when it is switched off.
    pub queue: Option<QueueConfig>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RetryConfig {
    pub initial_interval: Duration,
    /// `randomization_factor`, 0 to 1
    pub randomization_factor: f64,
    pub multiplier: f64,
    pub max_interval: Duration,
    /// `max_elapsed_time`; `None`: never gives up.
    pub max_elapsed_time: Option<Duration>,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            initial_interval: Duration::from_secs(5),
            randomization_factor: 0.5,
            multiplier: 1.5,
            max_interval: Duration::from_secs(30),
            max_elapsed_time: Some(Duration::from_secs(300)),
        }
    }
}

/// The unit of sizes in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum QueueSizer {
    /// Requests as they are sent on: batches.
    #[default]
    Requests,
    /// Spans, data points, log records.
    Items,
    /// Bytes of OTLP.
    Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// `num_consumers`: how many requests are under way at once.
    pub num_consumers: u32,
    pub queue_size: u64,
    pub sizer: QueueSizer,
    /// `block_on_overflow`: a sender waits for room instead of being refused.
    pub block_on_overflow: bool,
    /// `wait_for_result`: a sender is answered when its data was delivered.
    pub wait_for_result: bool,
    pub batch: Option<QueueBatch>,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            num_consumers: 10,
            queue_size: 1000,
            sizer: QueueSizer::Requests,
            block_on_overflow: false,
            wait_for_result: false,
            batch: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueBatch {
    pub flush_timeout: Duration,
    pub min_size: u64,
    pub max_size: u64,
    /// `sizer`: items or bytes.
    pub sizer: QueueSizer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DebugVerbosity {
    /// One line for each batch.
    #[default]
    Basic,
    /// One line for each record.
    Normal,
    Detailed,
    /// One JSON object for each record, on standard output. Ours.
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugExporter {
    pub verbosity: DebugVerbosity,
    /// `sampling_initial`: this many messages in each second are shown,
    pub sampling_initial: u32,
    /// `sampling_thereafter`: and then one in this many (0: none).
    pub sampling_thereafter: u32,
}

impl Default for DebugExporter {
    fn default() -> Self {
        Self { verbosity: DebugVerbosity::Basic, sampling_initial: 2, sampling_thereafter: 1 }
    }
}

/// `nop`, which has no settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NopExporter;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FileFormat {
    /// One OTLP JSON document a line.
    #[default]
    Json,
    /// Each request as a big-endian length of 4 bytes and its protobuf.
    Proto,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExporter {
    pub path: PathBuf,
    pub rotation: Option<RotationConfig>,
    pub format: FileFormat,
    /// `append`: keep what is there; without it the file is emptied at the start.
    pub append: bool,
    pub flush_interval: Duration,
    pub zstd: bool,
    pub create_directory: Option<u32>,
    /// `group_by`; `None` unless it is enabled.
    pub group_by: Option<GroupBy>,
}

/// `group_by`: a file for each value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupBy {
    /// `resource_attribute`: its value stands in the path instead of `*`.
    pub resource_attribute: String,
    /// `max_open_files`, at least one.
    pub max_open_files: u32,
}

impl Default for GroupBy {
    fn default() -> Self {
        Self { resource_attribute: "fileexporter.path_segment".into(), max_open_files: 100 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotationConfig {
    /// `max_megabytes`: a file of this size is closed and renamed.
    pub max_megabytes: u32,
    /// `max_days`: renamed files older than this are removed; zero: never.
    pub max_days: u32,
    /// `max_backups`: only so many renamed files are kept; zero: all.
    pub max_backups: u32,
    /// `localtime` in the names of renamed files, instead of UTC.
    pub localtime: bool,
}

impl Default for RotationConfig {
    fn default() -> Self {
        Self { max_megabytes: 100, max_days: 0, max_backups: 100, localtime: false }
    }
}
