//! `service`

use super::{
    TextSource,
    yaml::{YamlMap, YamlValue},
};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceSection {
    /// `pipelines`, by their ids: `traces/backend`.
    pub pipelines: BTreeMap<String, PipelineSection>,
    pub log_level: Option<&'static str>,
    /// The host and port of the collector's own metrics.
    pub metrics: Option<(TextSource, u16)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct PipelineSection {
    pub receivers: Vec<String>,
    pub processors: Vec<String>,
    pub exporters: Vec<String>,
    pub uid: Option<String>,
    pub carries: Vec<String>,
}

impl ServiceSection {
    pub(super) fn to_value<'a>(&self, extensions: impl Iterator<Item = &'a String>) -> YamlValue {
        let pipelines: YamlMap = self.pipelines.iter().map(|(id, pipeline)| (id, pipeline.to_value())).collect();
        YamlMap::default()
            .with_list("extensions", extensions)
            .with_field("pipelines", pipelines)
            .with_field("telemetry", self.telemetry())
            .into()
    }

    fn telemetry(&self) -> YamlMap {
        let prometheus = self.metrics.as_ref().map(|(host, port)| {
            let prometheus = YamlMap::default().with_field("host", host).with_field("port", i64::from(*port));
            let exporter = YamlMap::default().with_field("prometheus", prometheus);
            let pull = YamlMap::default().with_field("exporter", exporter);
            YamlMap::default().with_list("readers", [YamlMap::default().with_field("pull", pull)])
        });
        YamlMap::default()
            .with_optional("logs", self.log_level.map(|level| YamlMap::default().with_field("level", level)))
            .with_optional("metrics", prometheus)
    }
}

impl PipelineSection {
    fn to_value(&self) -> YamlValue {
        YamlMap::default()
            .with_list("receivers", &self.receivers)
            .with_list("processors", &self.processors)
            .with_list("exporters", &self.exporters)
            .with_optional("uid", self.uid.as_deref())
            .with_list("carries", &self.carries)
            .into()
    }
}
