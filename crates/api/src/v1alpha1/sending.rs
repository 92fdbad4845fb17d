//! Queue, batches and retries of exporters.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{output::OtlpCompression, value::duration};

/// Retries of requests that failed with a retryable error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryOptions {
    /// Whether failed requests are retried. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Time before the first retry. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub initial_interval: Option<String>,
    /// Maximum time between two retries. Default: `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub max_interval: Option<String>,
    /// Time after which a request is dropped. `0s` means that it is retried without limit. Default: `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub max_elapsed_time: Option<String>,
}

/// Queue of each collector for a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueOptions {
    /// Capacity of the queue in bytes. Telemetry that does not fit is rejected, or is counted as dropped if
    /// another pipeline accepted it. Default: 67108864 (64 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1048576, max = 1099511627776_i64))]
    pub size_bytes: Option<i64>,
    /// Maximum number of concurrent requests. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub num_consumers: Option<i32>,
    /// Batches into which the queue merges requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchOptions>,
}

/// Batches into which a queue merges requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.minSizeBytes) || !has(self.maxSizeBytes) || self.minSizeBytes <= self.maxSizeBytes",
    "`minSizeBytes` must not be greater than `maxSizeBytes`"
))]
pub struct BatchOptions {
    /// Maximum time before a batch is sent. Default: `200ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub flush_timeout: Option<String>,
    /// Size in bytes at which a batch is sent without further delay. Default: 524288 (512 KiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1099511627776_i64))]
    pub min_size_bytes: Option<i64>,
    /// Maximum size of a batch in bytes. Default: 3145728 (3 MiB), because many backends accept at most 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1099511627776_i64))]
    pub max_size_bytes: Option<i64>,
}

/// Defaults of the outputs of all pipelines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputDefaults {
    /// Compression of requests. Default: `gzip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<OtlpCompression>,
    /// Timeout of one attempt to send a request, such as `10s`. `0s` means no timeout. Default: 5s with gRPC
    /// and 30s with HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// Retries of requests that failed with a retryable error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryOptions>,
    /// Queue of each collector for a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueOptions>,
}
