//! What a pipeline drops.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How texts are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatchType {
    /// The texts are the same.
    #[default]
    Strict,
    /// The expression (RE2) is found in the text.
    Regexp,
}

/// Spans to drop: those that match everything that is set here, and of each list one item. All attributes must
/// be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.services) || has(self.spanNames) || has(self.spanKinds) || has(self.statusCodes) || has(self.attributes) || has(self.resources)",
    "a filter without a condition would drop everything: set `services`, `spanNames`, `spanKinds`, `statusCodes`, `attributes` or `resources`"
))]
pub struct SpanFilter {
    /// How texts are compared: `strict` (default) or `regexp` (RE2, found anywhere in the text unless it says
    /// `^` and `$`).
    #[serde(default)]
    pub match_type: MatchType,
    /// The resource's `service.name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub services: Vec<String>,
    /// The span's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub span_names: Vec<String>,
    /// The span's kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 5))]
    pub span_kinds: Vec<SpanKind>,
    /// The span's status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 3))]
    pub status_codes: Vec<StatusCode>,
    /// Attributes of the span.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub attributes: Vec<AttributeMatcher>,
    /// Attributes of its resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub resources: Vec<AttributeMatcher>,
}

/// Log records to drop: those that match everything that is set here, and of each list one item. All attributes
/// must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.services) || has(self.severityBelow) || has(self.severityTexts) || has(self.bodies) || has(self.attributes) || has(self.resources)",
    "a filter without a condition would drop everything: set `services`, `severityBelow`, `severityTexts`, `bodies`, `attributes` or `resources`"
))]
#[x_kube(validation = (
    "!has(self.severityBelow) || !(has(self.services) || has(self.severityTexts) || has(self.bodies) || has(self.attributes) || has(self.resources))",
    "`severityBelow` stands alone in a filter"
))]
pub struct LogFilter {
    /// How texts are compared: `strict` (default) or `regexp` (RE2, found anywhere in the text unless it says
    /// `^` and `$`).
    #[serde(default)]
    pub match_type: MatchType,
    /// The resource's `service.name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub services: Vec<String>,
    /// Records that are less severe than this. Those without a severity stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity_below: Option<LogSeverity>,
    /// The severity as the program wrote it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub severity_texts: Vec<String>,
    /// The body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub bodies: Vec<String>,
    /// Attributes of the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub attributes: Vec<AttributeMatcher>,
    /// Attributes of its resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub resources: Vec<AttributeMatcher>,
}

/// Metrics to drop: those that match everything that is set here, and of each list one item. All attributes
/// must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.services) || has(self.metricNames) || has(self.resources)",
    "a filter without a condition would drop everything: set `services`, `metricNames` or `resources`"
))]
pub struct MetricFilter {
    /// How texts are compared: `strict` (default) or `regexp` (RE2, found anywhere in the text unless it says
    /// `^` and `$`).
    #[serde(default)]
    pub match_type: MatchType,
    /// The resource's `service.name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub services: Vec<String>,
    /// The metric's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub metric_names: Vec<String>,
    /// Attributes of its resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 64))]
    pub resources: Vec<AttributeMatcher>,
}

/// An attribute that must be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttributeMatcher {
    /// Its key.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Its value; numbers and booleans are compared as they are written. Without it any value will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub value: Option<String>,
}

/// What a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SpanKind {
    /// Work within a program
    Internal,
    /// A request that is answered
    Server,
    /// A request that is made
    Client,
    /// A message that is sent
    Producer,
    /// A message that is received
    Consumer,
}

/// How a span ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum StatusCode {
    /// It does not say.
    Unset,
    /// Well.
    Ok,
    /// Not well.
    Error,
}

/// How severe a log record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogSeverity {
    /// Debugging in detail
    Trace,
    /// Debugging
    Debug,
    /// Something happened.
    Info,
    /// Something may be wrong.
    Warn,
    /// Something is wrong.
    Error,
    /// It ends.
    Fatal,
}
