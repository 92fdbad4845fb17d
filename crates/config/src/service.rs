//! `service`: enabled components, how they are connected, and the collector's own telemetry.

mod telemetry;

use std::collections::BTreeMap;

pub(crate) use telemetry::telemetry;

use crate::{ComponentId, ConfigText, PipelineId};

#[derive(Clone, Debug, PartialEq, Default)]
pub struct ServiceConfig {
    pub extensions: Vec<ComponentId>,
    pub pipelines: BTreeMap<PipelineId, PipelineConfig>,
    pub telemetry: TelemetryConfig,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PipelineConfig {
    pub receivers: Vec<ComponentId>,
    pub processors: Vec<ComponentId>,
    pub exporters: Vec<ComponentId>,
    /// `uid`: tells pipelines of the same id apart. A pipeline with another uid starts anew.
    pub uid: Option<String>,
    /// `carries`: the uids of pipelines elsewhere for which it carries data. Losses here are losses of these.
    pub carries: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TelemetryConfig {
    pub logs: LogsConfig,
    pub metrics: MetricsConfig,
    pub resource: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LogsConfig {
    pub level: LogLevel,
    pub encoding: LogEncoding,
}

/// The lowest level that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogLevel {
    Debug,
    #[default]
    Info,
    Warn,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogEncoding {
    #[default]
    Console,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsConfig {
    pub level: MetricsLevel,
    /// The address that Prometheus scrapes: that of the first pull reader, or the old `address`. `None`: there
    /// is none.
    pub endpoint: Option<ConfigText>,
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { level: MetricsLevel::Normal, endpoint: Some("localhost:8888".into()) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum MetricsLevel {
    None,
    Basic,
    #[default]
    Normal,
    Detailed,
}
