//! Writes the document as a whole.

use super::{YamlMap, YamlValue};
use crate::{
    CollectorDocument, ComponentId,
    component::ComponentKind,
    service::{PipelineConfig, ServiceConfig},
};

/// A document that cannot be written, and the setting that is the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to write {path}: the value {reason}")]
pub struct EncodeError {
    path: String,
    reason: &'static str,
}

impl EncodeError {
    /// The path of the setting.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong with the value.
    pub fn reason(&self) -> &'static str {
        self.reason
    }
}

impl CollectorDocument {
    /// Writes the document as YAML, from which [`load`](crate::load()) reads the same document.
    ///
    /// # Errors
    ///
    /// If a secret has no reference, since no document may contain a secret.
    pub fn to_yaml(&self) -> Result<String, EncodeError> {
        let document = YamlMap::default()
            .with_section("extensions", section(&self.extensions))
            .with_section("receivers", section(&self.receivers))
            .with_section("processors", section(&self.processors))
            .with_section("exporters", section(&self.exporters))
            .with_section("connectors", section(&self.connectors))
            .with_field("service", self.service.encode());
        match document.find_unwritable() {
            None => Ok(document.to_yaml()),
            Some((path, reason)) => Err(EncodeError { path, reason }),
        }
    }
}

fn section<T: ComponentKind>(components: &std::collections::BTreeMap<ComponentId, T>) -> YamlMap {
    components.iter().map(|(id, component)| (id.as_str(), component.encode())).collect()
}

impl ServiceConfig {
    fn encode(&self) -> YamlMap {
        let pipelines: YamlMap =
            self.pipelines.iter().map(|(id, pipeline)| (id.to_string(), pipeline.encode())).collect();
        YamlMap::default()
            .with_list("extensions", &self.extensions)
            .with_section("pipelines", pipelines)
            .with_section("telemetry", self.telemetry.encode())
    }
}

impl PipelineConfig {
    fn encode(&self) -> YamlValue {
        YamlMap::default()
            .with_list("receivers", &self.receivers)
            .with_list("processors", &self.processors)
            .with_list("exporters", &self.exporters)
            .with_optional("uid", self.uid.as_deref())
            .with_list("carries", &self.carries)
            .into()
    }
}
