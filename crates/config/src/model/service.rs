//! What runs, how it is wired, and what the collector says of itself.

use std::collections::BTreeMap;

use crate::{ComponentId, PipelineId};

/// `service`
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Service {
    /// `extensions` that run.
    pub extensions: Vec<ComponentId>,
    /// `pipelines`
    pub pipelines: BTreeMap<PipelineId, Pipeline>,
    /// `telemetry`
    pub telemetry: Telemetry,
}

/// One of `pipelines`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pipeline {
    /// `receivers`, each once.
    pub receivers: Vec<ComponentId>,
    /// `processors` in their order.
    pub processors: Vec<ComponentId>,
    /// `exporters`, each once.
    pub exporters: Vec<ComponentId>,
    /// `uid`: which one it is of all that have had its id. With another one it is another pipeline, which begins anew.
    pub uid: Option<String>,
    /// `carries`: the uids of the pipelines elsewhere for which it carries data. What is lost here is lost to them.
    pub carries: Vec<String>,
}

/// `telemetry`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Telemetry {
    /// `logs`
    pub logs: Logs,
    /// `metrics`
    pub metrics: Metrics,
    /// `resource`
    pub resource: BTreeMap<String, String>,
}

/// `telemetry: logs`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Logs {
    /// `level`
    pub level: LogLevel,
    /// `encoding`
    pub encoding: LogEncoding,
}

/// From which level on a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// `debug`
    Debug,
    /// `info`
    #[default]
    Info,
    /// `warn`
    Warn,
    /// `error`
    Error,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogEncoding {
    /// `console`
    #[default]
    Console,
    /// `json`
    Json,
}

/// `telemetry: metrics`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// `level`
    pub level: Level,
    /// Where Prometheus scrapes: the first pull reader, or the old `address`. `None`: nowhere.
    pub endpoint: Option<String>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { level: Level::Normal, endpoint: Some("localhost:8888".into()) }
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Nothing, and no endpoint.
    None,
    /// The essential.
    Basic,
    /// The default.
    #[default]
    Normal,
    /// Everything.
    Detailed,
}
