//! How exporters hold, send and send again.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{output::OtlpCompression, value::duration};

/// What happens to a request that failed and may be sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryOptions {
    /// Whether it is sent again. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How long to wait the first time. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub initial_interval: Option<String>,
    /// How long to wait at most. Default: `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub max_interval: Option<String>,
    /// When to give up and drop it; `0s` is never. Default: `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub max_elapsed_time: Option<String>,
}

/// What each collector holds for a backend while it cannot take it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueOptions {
    /// How many bytes of telemetry are held. Default: 67108864 (64 MiB). What does not fit is refused, or
    /// counted as dropped if another pipeline took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1048576, max = 1099511627776_i64))]
    pub size_bytes: Option<i64>,
    /// How many requests are under way at once. Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub num_consumers: Option<i32>,
    /// How requests are joined before they are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<BatchOptions>,
}

/// How requests are joined before they are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.minSizeBytes) || !has(self.maxSizeBytes) || self.minSizeBytes <= self.maxSizeBytes",
    "`minSizeBytes` must not be greater than `maxSizeBytes`"
))]
pub struct BatchOptions {
    /// How long to wait for more. Default: `200ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub flush_timeout: Option<String>,
    /// With so many bytes it is sent at once. Default: 524288 (512 KiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1099511627776_i64))]
    pub min_size_bytes: Option<i64>,
    /// A request is not made larger than that. Default: 3145728 (3 MiB), as many backends take no more than 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1099511627776_i64))]
    pub max_size_bytes: Option<i64>,
}

/// What pipelines have that do not say it themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputDefaults {
    /// How requests are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<OtlpCompression>,
    /// How long one attempt may take, such as `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// What happens to a request that failed and may be sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryOptions>,
    /// What is held for a backend in each collector while it cannot take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueOptions>,
}
