//! `service`

use super::{
    Text,
    yaml::{Map, Value},
};
use std::collections::BTreeMap;

/// `service`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// `pipelines`, by their ids: `traces/backend`.
    pub pipelines: BTreeMap<String, Pipeline>,
    /// `telemetry: logs: level`
    pub log_level: Option<&'static str>,
    /// The host and port of the collector's own metrics.
    pub metrics: Option<(Text, u16)>,
}

/// One of `pipelines`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pipeline {
    /// `receivers`
    pub receivers: Vec<String>,
    /// `processors`, in their order.
    pub processors: Vec<String>,
    /// `exporters`
    pub exporters: Vec<String>,
    /// `uid`
    pub uid: Option<String>,
    /// `carries`
    pub carries: Vec<String>,
}

impl Service {
    pub(super) fn to_value<'a>(&self, extensions: impl Iterator<Item = &'a String>) -> Value {
        let pipelines: Map = self.pipelines.iter().map(|(id, pipeline)| (id, pipeline.to_value())).collect();
        Map::default()
            .list("extensions", extensions)
            .with("pipelines", pipelines)
            .with("telemetry", self.telemetry())
            .into()
    }

    fn telemetry(&self) -> Map {
        let prometheus = self.metrics.as_ref().map(|(host, port)| {
            let prometheus = Map::default().with("host", host).with("port", i64::from(*port));
            let exporter = Map::default().with("prometheus", prometheus);
            let pull = Map::default().with("exporter", exporter);
            Map::default().list("readers", [Map::default().with("pull", pull)])
        });
        Map::default()
            .maybe("logs", self.log_level.map(|level| Map::default().with("level", level)))
            .maybe("metrics", prometheus)
    }
}

impl Pipeline {
    fn to_value(&self) -> Value {
        Map::default()
            .list("receivers", &self.receivers)
            .list("processors", &self.processors)
            .list("exporters", &self.exporters)
            .maybe("uid", self.uid.as_deref())
            .list("carries", &self.carries)
            .into()
    }
}
