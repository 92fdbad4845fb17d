//! Exporters, with the queue and the retry that they share.

use std::{path::PathBuf, time::Duration};

use super::{
    balancing::LoadBalancingExporter,
    network::{ClientKeepalive, ClientTls, Compression},
};
use crate::{ComponentId, Secret};

/// A configured exporter.
#[derive(Clone, Debug, PartialEq)]
pub enum Exporter {
    /// `otlp`, also `otlp_grpc`
    OtlpGrpc(OtlpGrpcExporter),
    /// `otlphttp`, also `otlp_http`
    OtlpHttp(OtlpHttpExporter),
    /// `debug`
    Debug(DebugExporter),
    /// `file`
    File(FileExporter),
    /// `nop`
    Nop,
    /// `load_balancing`, also `loadbalancing`
    LoadBalancing(Box<LoadBalancingExporter>),
}

/// `otlp`, `otlp_grpc`
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpGrpcExporter {
    /// `endpoint` without its scheme: `host:port`.
    pub endpoint: String,
    /// `tls`; a scheme of `http` sets `insecure`, one of `https` clears it.
    pub tls: ClientTls,
    /// `compression`
    pub compression: Compression,
    /// `headers`
    pub headers: Vec<(String, Secret)>,
    /// `authority`
    pub authority: Option<String>,
    /// `auth: authenticator`
    pub auth: Option<ComponentId>,
    /// `keepalive`
    pub keepalive: Option<ClientKeepalive>,
    /// `timeout` of one attempt; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `retry_on_failure`; `None` when it is switched off.
    pub retry: Option<Retry>,
    /// `sending_queue`; `None` when it is switched off.
    pub queue: Option<Queue>,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Encoding {
    /// `proto`
    #[default]
    Proto,
    /// `json`
    Json,
}

/// `otlphttp`, `otlp_http`
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpHttpExporter {
    /// The whole URL for traces; `None` if neither `endpoint` nor `traces_endpoint` is set.
    pub traces_url: Option<String>,
    /// The whole URL for metrics.
    pub metrics_url: Option<String>,
    /// The whole URL for logs.
    pub logs_url: Option<String>,
    /// `encoding`
    pub encoding: Encoding,
    /// `tls`
    pub tls: ClientTls,
    /// `compression`
    pub compression: Compression,
    /// `headers`
    pub headers: Vec<(String, Secret)>,
    /// `auth: authenticator`
    pub auth: Option<ComponentId>,
    /// `timeout` of one attempt; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `retry_on_failure`; `None` when it is switched off.
    pub retry: Option<Retry>,
    /// `sending_queue`; `None` when it is switched off.
    pub queue: Option<Queue>,
}

/// `retry_on_failure`
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// `initial_interval`
    pub initial_interval: Duration,
    /// `randomization_factor`, 0 to 1
    pub randomization_factor: f64,
    /// `multiplier`
    pub multiplier: f64,
    /// `max_interval`
    pub max_interval: Duration,
    /// `max_elapsed_time`; `None`: never gives up.
    pub max_elapsed_time: Option<Duration>,
}

impl Default for Retry {
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

/// What a size in a queue counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sizer {
    /// Requests as they are sent on: batches.
    #[default]
    Requests,
    /// Spans, data points, log records.
    Items,
    /// Bytes of OTLP.
    Bytes,
}

/// `sending_queue`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// `num_consumers`: how many requests are under way at once.
    pub num_consumers: u32,
    /// `queue_size`, counted by `sizer`.
    pub queue_size: u64,
    /// `sizer`
    pub sizer: Sizer,
    /// `block_on_overflow`: a sender waits for room instead of being refused.
    pub block_on_overflow: bool,
    /// `wait_for_result`: a sender is answered when its data was delivered.
    pub wait_for_result: bool,
    /// `batch`
    pub batch: Option<QueueBatch>,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            num_consumers: 10,
            queue_size: 1000,
            sizer: Sizer::Requests,
            block_on_overflow: false,
            wait_for_result: false,
            batch: None,
        }
    }
}

/// `sending_queue: batch`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueBatch {
    /// `flush_timeout`
    pub flush_timeout: Duration,
    /// `min_size`
    pub min_size: u64,
    /// `max_size`; zero: no limit.
    pub max_size: u64,
    /// `sizer`: items or bytes.
    pub sizer: Sizer,
}

/// How much `debug` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verbosity {
    /// One line for each batch.
    #[default]
    Basic,
    /// One line for each record.
    Normal,
    /// Every field.
    Detailed,
    /// One JSON object for each record, on standard output. Ours.
    Json,
}

/// `debug`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugExporter {
    /// `verbosity`
    pub verbosity: Verbosity,
    /// `sampling_initial`: this many messages in each second are shown,
    pub sampling_initial: u32,
    /// `sampling_thereafter`: and then one in this many (0: none).
    pub sampling_thereafter: u32,
}

impl Default for DebugExporter {
    fn default() -> Self {
        Self { verbosity: Verbosity::Basic, sampling_initial: 2, sampling_thereafter: 1 }
    }
}

/// How `file` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FileFormat {
    /// One OTLP JSON document a line.
    #[default]
    Json,
    /// Each request as a big-endian length of 4 bytes and its protobuf.
    Proto,
}

/// `file`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExporter {
    /// `path`
    pub path: PathBuf,
    /// `rotation`
    pub rotation: Option<Rotation>,
    /// `format`
    pub format: FileFormat,
    /// `append`: keep what is there; without it the file is emptied at the start.
    pub append: bool,
    /// `flush_interval`
    pub flush_interval: Duration,
    /// `compression: zstd`
    pub zstd: bool,
    /// `create_directory`, with the `directory_permissions`.
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

/// `rotation`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// `max_megabytes`: a file of this size is closed and renamed.
    pub max_megabytes: u32,
    /// `max_days`: renamed files older than this are removed; zero: never.
    pub max_days: u32,
    /// `max_backups`: only so many renamed files are kept; zero: all.
    pub max_backups: u32,
    /// `localtime` in the names of renamed files, instead of UTC.
    pub localtime: bool,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { max_megabytes: 100, max_days: 0, max_backups: 100, localtime: false }
    }
}
