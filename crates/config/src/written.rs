//! A document as it is written, for programs that make one.
//!
//! The reader stays the only judge: what is made here is checked by [`load`](crate::load()), as anything else is. Here are the components that the operator
//! uses, each with the settings that it needs; what is not set is left out, and the reader's defaults hold.
//!
//! # Guarantees
//!
//! - The same document is the same text, byte for byte.
//! - No text can break out of its place: it is quoted where YAML needs it, and has no reference in it unless it is a [`Text::File`] or a [`Text::Env`].
//! - A secret is in no document if it is a [`Text::File`]. What the file holds is expanded, too, so that it has to be written by [`escape`].

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

pub use exporter::{Client, Exporter, Grpc, Http, LoadBalancing, Queue, QueueBatch, Retry, Tls};
pub use extension::Extension;
pub use processor::{AttributeMatch, Conditions, MatchType, Processor, Selection};
pub use receiver::{OtlpReceiver, Receiver};
pub use sampling::{Policy, Rule, TailSampling};
pub use service::{Pipeline, Service};

use yaml::{Map, Value};

/// A document that is being made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// `receivers`, by their ids.
    pub receivers: BTreeMap<String, Receiver>,
    /// `processors`, by their ids.
    pub processors: BTreeMap<String, Processor>,
    /// `exporters`, by their ids.
    pub exporters: BTreeMap<String, Exporter>,
    /// `extensions`, by their ids. All of them run.
    pub extensions: BTreeMap<String, Extension>,
    /// `service`
    pub service: Service,
}

impl Written {
    /// The text.
    pub fn to_yaml(&self) -> String {
        let section = |map: Map| Some(map).filter(|map| *map != Map::default());
        Map::default()
            .maybe("extensions", section(self.extensions.iter().map(|(id, one)| (id, one.to_value())).collect()))
            .maybe("receivers", section(self.receivers.iter().map(|(id, one)| (id, one.to_value())).collect()))
            .maybe("processors", section(self.processors.iter().map(|(id, one)| (id, one.to_value())).collect()))
            .maybe("exporters", section(self.exporters.iter().map(|(id, one)| (id, one.to_value())).collect()))
            .with("service", self.service.to_value(self.extensions.keys()))
            .to_yaml()
    }
}

/// A text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// This text, whatever is in it.
    Literal(String),
    /// What is in a file, written there by [`escape`]: `${file:path}`. The path must not have a `$` or a `}` in it.
    File(PathBuf),
    /// The value of a variable, and a text behind it: `${env:NAME}:4317`.
    Env(&'static str, String),
}

impl Text {
    /// This text, whatever is in it.
    pub fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }
}

impl From<&Text> for Value {
    fn from(text: &Text) -> Self {
        Self::Text(match text {
            Text::Literal(text) => escape(text),
            Text::File(path) => format!("${{file:{}}}", path.display()),
            Text::Env(name, rest) => format!("${{env:{name}}}{}", escape(rest)),
        })
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(escape(text))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(escape(text))
    }
}

/// Go's notation, exact: `200ms`, `5s`, `1.5s`.
impl From<Duration> for Value {
    fn from(duration: Duration) -> Self {
        let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
        Self::Text(match nanos {
            0 => format!("{seconds}s"),
            nanos if seconds == 0 && nanos % 1_000_000 == 0 => format!("{}ms", nanos / 1_000_000),
            nanos => format!("{seconds}.{nanos:09}").trim_end_matches('0').to_owned() + "s",
        })
    }
}

/// A text as it is written where references are expanded, such as in a file that a [`Text::File`] names: dollars are doubled.
pub fn escape(text: &str) -> String {
    text.replace('$', "$$")
}
