//! A trace as the viewer tells it. What else it says is passed over.

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

/// A trace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Trace {
    pub(crate) trace_id: String,
    #[serde(deserialize_with = "nanoseconds")]
    pub(crate) start: u64,
    pub(crate) duration: u64,
    /// Resources, by the index that spans have.
    pub(crate) services: Vec<Service>,
    pub(crate) spans: Vec<Span>,
    pub(crate) warnings: Vec<Warning>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Service {
    pub(crate) name: String,
}

/// A span.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Span {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    /// `internal`, `server`, …
    pub(crate) kind: String,
    #[serde(deserialize_with = "nanoseconds")]
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) resource: usize,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) events: Vec<IgnoredAny>,
    pub(crate) links: Vec<IgnoredAny>,
    /// By how much its clock was set right.
    pub(crate) skew: Option<IgnoredAny>,
    pub(crate) warnings: Vec<IgnoredAny>,
    /// `unset`, `ok` or `error`.
    pub(crate) status: String,
    pub(crate) message: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Attribute {
    pub(crate) key: String,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Warning {
    pub(crate) message: String,
}

impl Span {
    pub(crate) fn is_error(&self) -> bool {
        self.status == "error"
    }

    /// Whether it is work inside of a process.
    pub(super) fn is_inner(&self) -> bool {
        self.kind == "internal" || self.kind == "unspecified"
    }

    /// Whether it says how long something took as a whole. What it measures is in other spans.
    pub(super) fn measures(&self) -> bool {
        self.name.starts_with("converge ")
    }

    /// When it was over.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }
}

impl Trace {
    pub(crate) fn service(&self, span: &Span) -> &str {
        self.services.get(span.resource).map(|service| service.name.as_str()).unwrap_or_default()
    }
}

/// Times are texts, since numbers in JSON have too few digits for them.
pub(crate) fn nanoseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(String),
        Number(u64),
    }
    match Either::deserialize(deserializer)? {
        Either::Text(text) => text.parse().map_err(serde::de::Error::custom),
        Either::Number(number) => Ok(number),
    }
}
