//! Filters: the telemetry that a pipeline drops.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a filter compares text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatchType {
    /// The whole text must be equal.
    #[default]
    Strict,
    /// The regular expression (RE2) must match somewhere in the text.
    Regexp,
}

/// A filter drops the spans that match all conditions set in it. For a list of texts or enum values, one item
/// must match. For a list of attributes, all items must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.services) || has(self.spanNames) || has(self.spanKinds) || has(self.statusCodes) || has(self.attributes) || has(self.resources)",
    "a filter without a condition would drop everything: set `services`, `spanNames`, `spanKinds`, `statusCodes`, `attributes` or `resources`"
))]
pub struct SpanFilter {
    /// How text is compared: `strict` (default) for equality, or `regexp` for a regular expression (RE2). An
    /// expression matches anywhere in the text unless it is anchored with `^` and `$`.
    #[serde(default)]
    pub match_type: MatchType,
    /// Values of the resource attribute `service.name`, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub services: Vec<String>,
    /// Span names, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub span_names: Vec<String>,
    /// Span kinds, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 5))]
    pub span_kinds: Vec<SpanKind>,
    /// Status codes of spans, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 3))]
    pub status_codes: Vec<StatusCode>,
    /// Span attributes. All of them must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub attributes: Vec<AttributeMatcher>,
    /// Resource attributes. All of them must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub resources: Vec<AttributeMatcher>,
}

/// A filter drops the log records that match all conditions set in it. For a list of texts, one item must
/// match. For a list of attributes, all items must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.services) || has(self.severityBelow) || has(self.severityTexts) || has(self.bodies) || has(self.attributes) || has(self.resources)",
    "a filter without a condition would drop everything: set `services`, `severityBelow`, `severityTexts`, `bodies`, `attributes` or `resources`"
))]
#[x_kube(validation = (
    "!has(self.severityBelow) || !(has(self.services) || has(self.severityTexts) || has(self.bodies) || has(self.attributes) || has(self.resources))",
    "`severityBelow` must be the only condition of a filter"
))]
pub struct LogFilter {
    /// How text is compared: `strict` (default) for equality, or `regexp` for a regular expression (RE2). An
    /// expression matches anywhere in the text unless it is anchored with `^` and `$`.
    #[serde(default)]
    pub match_type: MatchType,
    /// Values of the resource attribute `service.name`, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub services: Vec<String>,
    /// Drops log records with a severity number below this severity. Log records without a severity number are
    /// kept. Cannot be combined with other conditions in the same filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity_below: Option<LogSeverity>,
    /// Severity texts of log records, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub severity_texts: Vec<String>,
    /// Bodies of log records, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub bodies: Vec<String>,
    /// Attributes of log records. All of them must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub attributes: Vec<AttributeMatcher>,
    /// Resource attributes. All of them must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub resources: Vec<AttributeMatcher>,
}

/// A filter drops the metrics that match all conditions set in it. For a list of texts, one item must match.
/// For a list of attributes, all items must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.services) || has(self.metricNames) || has(self.resources)",
    "a filter without a condition would drop everything: set `services`, `metricNames` or `resources`"
))]
pub struct MetricFilter {
    /// How text is compared: `strict` (default) for equality, or `regexp` for a regular expression (RE2). An
    /// expression matches anywhere in the text unless it is anchored with `^` and `$`.
    #[serde(default)]
    pub match_type: MatchType,
    /// Values of the resource attribute `service.name`, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub services: Vec<String>,
    /// Metric names, of which one must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub metric_names: Vec<String>,
    /// Resource attributes. All of them must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub resources: Vec<AttributeMatcher>,
}

/// An attribute that must be present, and the value that it must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttributeMatcher {
    /// Key of the attribute, such as `http.route`.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Value of the attribute. Numbers and booleans are compared in their text form. Without a value, the
    /// attribute matches if it is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
}

/// Kind of a span in OpenTelemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// An operation inside an application
    Internal,
    /// The handling of a remote request
    Server,
    /// A request to a remote service
    Client,
    /// The sending of a message
    Producer,
    /// The processing of a received message
    Consumer,
}

/// Status code of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum StatusCode {
    /// The status is not set.
    Unset,
    /// The operation completed without an error.
    Ok,
    /// The operation ended with an error.
    Error,
}

/// Severity of a log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogSeverity {
    /// Debugging information in full detail
    Trace,
    /// Debugging information, less detailed than `TRACE`
    Debug,
    /// Information about a normal event
    Info,
    /// A warning: something may be wrong
    Warn,
    /// An error: an operation failed
    Error,
    /// A fatal error, such as a crash
    Fatal,
}
