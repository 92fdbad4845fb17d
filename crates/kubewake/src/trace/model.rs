//! A trace as the viewer tells it. What else it says is passed over.

use std::borrow::Cow;

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
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Warning {
    /// Of which span it is told. None if of the trace.
    pub(crate) span_id: Option<String>,
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

    /// Its name; that of a request to Kubernetes by what it is about, as on the page: `PATCH …/heads/{:name}/status`. Group, version and namespace are much alike.
    pub(super) fn title(&self) -> Cow<'_, str> {
        about(&self.name).map_or(Cow::Borrowed(self.name.as_str()), Cow::Owned)
    }

    /// When it was over.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }
}

fn about(name: &str) -> Option<String> {
    let (verb, path) = name.split_once(' ')?;
    let (_group, rest) = match path.strip_prefix("/apis/") {
        Some(rest) => rest.split_once('/')?,
        None => ("", path.strip_prefix("/api/")?),
    };
    let (_version, rest) = rest.split_once('/')?;
    let below = |rest: &str| rest.strip_prefix("namespaces/")?.split_once('/').map(|(_, rest)| rest.to_owned());
    let rest = below(rest).unwrap_or_else(|| rest.to_owned());
    let is_verb = verb.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !verb.is_empty();
    (is_verb && !rest.is_empty()).then(|| format!("{verb} …/{rest}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_kubernetes_are_named_by_what_they_are_about() {
        let title = |name: &str| Span { name: name.to_owned(), ..Span::default() }.title().into_owned();
        let status = "PATCH /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/childas/{:name}/status";
        assert_eq!(title(status), "PATCH …/childas/{:name}/status");
        assert_eq!(title("GET /api/v1/nodes"), "GET …/nodes");
        assert_eq!(title("GET /api/v1/namespaces/{:name}"), "GET …/namespaces/{:name}");
        for same in ["GET /api/cart", "reconcile Head", "", "/api/v1/nodes", "GET /api/v1/"] {
            assert_eq!(title(same), same);
        }
    }
}
