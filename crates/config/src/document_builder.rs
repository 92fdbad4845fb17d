//! Builds documents, for programs that write them.
//!
//! The parser stays the only judge: [`load`](crate::load()) checks these documents as any other one. Only
//! components that the operator uses are here, each with the settings that it needs. Settings without a value
//! are left out, so that the parser's defaults apply.
//!
//! # Guarantees
//!
//! - The same document is the same text, byte for byte.
//! - Texts cannot break out of their place: they are quoted where YAML needs it, and contain no references
//!   unless they are a [`TextSource::File`] or a [`TextSource::Env`].
//! - A secret given as [`TextSource::File`] is in no document. References in the file's content are expanded,
//!   too, so it must be written by [`escape`].

mod exporter;
mod extension;
mod processor;
mod receiver;
mod sampling;
mod service;
mod yaml;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub use exporter::{
    ClientSection, ClientTlsSection, ExporterSection, LoadBalancingSection, OtlpGrpcSection, OtlpHttpSection,
    QueueBatchSection, QueueSection, RetrySection,
};
pub use extension::ExtensionSection;
pub use processor::{AttributeCondition, ConditionMatchType, FilterSection, MatchConditions, ProcessorSection};
pub use receiver::{OtlpReceiverSection, ReceiverSection};
pub use sampling::{PolicySection, TailSamplingRule, TailSamplingSection};
pub use service::{PipelineSection, ServiceSection};

use yaml::{YamlMap, YamlValue};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentBuilder {
    pub receivers: BTreeMap<String, ReceiverSection>,
    pub processors: BTreeMap<String, ProcessorSection>,
    pub exporters: BTreeMap<String, ExporterSection>,
    /// `extensions`, by their ids. All of them are enabled.
    pub extensions: BTreeMap<String, ExtensionSection>,
    pub service: ServiceSection,
}

impl DocumentBuilder {
    pub fn to_yaml(&self) -> String {
        let section = |map: YamlMap| Some(map).filter(|map| *map != YamlMap::default());
        YamlMap::default()
            .with_optional(
                "extensions",
                section(self.extensions.iter().map(|(id, one)| (id, one.to_value())).collect()),
            )
            .with_optional("receivers", section(self.receivers.iter().map(|(id, one)| (id, one.to_value())).collect()))
            .with_optional(
                "processors",
                section(self.processors.iter().map(|(id, one)| (id, one.to_value())).collect()),
            )
            .with_optional("exporters", section(self.exporters.iter().map(|(id, one)| (id, one.to_value())).collect()))
            .with_field("service", self.service.to_value(self.extensions.keys()))
            .to_yaml()
    }
}

/// A text in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// A text in which nothing is expanded.
    Literal(String),
    /// The content of a file, written there by [`escape`]: `${file:path}`. The path must not have a `$` or a
    /// `}` in it.
    File(PathBuf),
    /// The value of a variable, followed by a text: `${env:NAME}:4317`.
    Env(&'static str, String),
}

impl TextSource {
    pub fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }
}

impl From<&TextSource> for YamlValue {
    fn from(text: &TextSource) -> Self {
        Self::Text(match text {
            TextSource::Literal(text) => escape(text),
            TextSource::File(path) => format!("${{file:{}}}", path.display()),
            TextSource::Env(name, rest) => format!("${{env:{name}}}{}", escape(rest)),
        })
    }
}

impl From<&str> for YamlValue {
    fn from(text: &str) -> Self {
        Self::Text(escape(text))
    }
}

impl From<&String> for YamlValue {
    fn from(text: &String) -> Self {
        Self::Text(escape(text))
    }
}

/// Go's notation without loss: `200ms`, `5s`, `1.5s`.
impl From<Duration> for YamlValue {
    fn from(duration: Duration) -> Self {
        let seconds = duration.as_secs();
        let nanos = duration.subsec_nanos();
        Self::Text(match nanos {
            0 => format!("{seconds}s"),
            nanos if seconds == 0 && nanos % 1_000_000 == 0 => format!("{}ms", nanos / 1_000_000),
            nanos => format!("{seconds}.{nanos:09}").trim_end_matches('0').to_owned() + "s",
        })
    }
}

/// Escapes a text for places where references are expanded, such as a file that a [`TextSource::File`] names:
/// dollars are doubled.
pub fn escape(text: &str) -> String {
    text.replace('$', "$$")
}
