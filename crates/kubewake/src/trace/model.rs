//! A trace in the viewer's response. Other fields are ignored.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TraceDocument {
    pub(crate) trace_id: String,
    #[serde(deserialize_with = "nanoseconds")]
    pub(crate) start: u64,
    pub(crate) duration: u64,
    /// Resources, by the index in spans.
    pub(crate) services: Vec<ServiceDocument>,
    pub(crate) spans: Vec<SpanDocument>,
    pub(crate) warnings: Vec<WarningDocument>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceDocument {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SpanDocument {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: String,
    #[serde(deserialize_with = "nanoseconds")]
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) resource: usize,
    pub(crate) attributes: Vec<AttributeDocument>,
    pub(crate) events: Vec<IgnoredAny>,
    pub(crate) links: Vec<IgnoredAny>,
    /// The correction of its clock.
    pub(crate) skew: Option<IgnoredAny>,
    pub(crate) warnings: Vec<IgnoredAny>,
    pub(crate) status: String,
    pub(crate) message: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct AttributeDocument {
    pub(crate) key: String,
    pub(crate) value: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WarningDocument {
    /// The span concerned; none if it is the whole trace.
    pub(crate) span_id: Option<String>,
    pub(crate) message: String,
}

impl SpanDocument {
    pub(crate) fn is_error(&self) -> bool {
        self.status == "error"
    }

    /// Whether the span is work inside a process.
    pub(super) fn is_internal(&self) -> bool {
        self.kind == "internal" || self.kind == "unspecified"
    }

    /// Whether the span only measures how long a change took as a whole. The work is in other spans.
    pub(super) fn is_duration_only(&self) -> bool {
        self.name.starts_with("converge ")
    }

    /// The name to show. That of a request to Kubernetes is shortened to its resource, as on the page:
    /// `PATCH …/heads/{:name}/status`. Group, version and namespace are much alike.
    pub(super) fn display_name(&self) -> Cow<'_, str> {
        describe_request(&self.name).map_or(Cow::Borrowed(self.name.as_str()), Cow::Owned)
    }

    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }
}

fn describe_request(name: &str) -> Option<String> {
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

impl TraceDocument {
    pub(crate) fn service_name(&self, span: &SpanDocument) -> &str {
        self.services.get(span.resource).map(|service| service.name.as_str()).unwrap_or_default()
    }
}

/// Times are strings, since numbers in JSON lack the precision.
pub(crate) fn nanoseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrNumber {
        Text(String),
        Number(u64),
    }
    match TextOrNumber::deserialize(deserializer)? {
        TextOrNumber::Text(text) => text.parse().map_err(serde::de::Error::custom),
        TextOrNumber::Number(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_kubernetes_are_named_by_what_they_are_about() {
        let title =
            |name: &str| SpanDocument { name: name.to_owned(), ..SpanDocument::default() }.display_name().into_owned();
        let status = "PATCH /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/childas/{:name}/status";
        assert_eq!(title(status), "PATCH …/childas/{:name}/status");
        assert_eq!(title("GET /api/v1/nodes"), "GET …/nodes");
        assert_eq!(title("GET /api/v1/namespaces/{:name}"), "GET …/namespaces/{:name}");
        for same in ["GET /api/cart", "reconcile Head", "", "/api/v1/nodes", "GET /api/v1/"] {
            assert_eq!(title(same), same);
        }
    }
}
