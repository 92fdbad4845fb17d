//! Outputs of log pipelines: backends beside those that receive OTLP.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    output::{AuthenticationOptions, OtlpOutput, RequestHeader, TlsOptions},
    sending::{QueueOptions, RetryOptions},
    value::{ValueType, duration},
};

// Outputs are boxed: objects are moved a lot, and only one of these is there.
/// The backend that the pipeline sends to. Exactly one must be set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.otlp), has(self.loki), has(self.elasticsearch), has(self.opensearch), has(self.http)].exists_one(set, set)",
    "set exactly one of `otlp`, `loki`, `elasticsearch`, `opensearch` and `http`"
))]
pub struct LogPipelineOutput {
    /// A backend that receives OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpOutput>,
    /// Grafana Loki, or a backend with its push API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loki: Option<Box<LokiOutput>>,
    /// Elasticsearch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elasticsearch: Option<Box<ElasticsearchOutput>>,
    /// OpenSearch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opensearch: Option<Box<OpensearchOutput>>,
    /// A server that receives JSON over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<HttpOutput>>,
}

/// The connection to a backend over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpConnection {
    /// URL of the backend, such as `https://backend.example.com`.
    pub endpoint: ValueType,
    /// Authentication to the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<AuthenticationOptions>,
    /// Headers that are added to every request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub headers: Vec<RequestHeader>,
    /// TLS settings of the connection. By default the certificate of the backend must be signed by a well-known
    /// certificate authority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsOptions>,
    /// Timeout of one attempt to send a request, such as `10s`. `0s` means no timeout. Default:
    /// `spec.defaults.timeout` of the Telemetry, or else that of the exporter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// Retries of requests that failed with a retryable error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryOptions>,
    /// Queue of each collector for this backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueOptions>,
}

/// Grafana Loki, or a backend with its push API. Templates such as `%{k8s.namespace.name}` take attributes of the
/// resource.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LokiOutput {
    /// The connection. The endpoint is the URL of Loki, such as `http://loki.example.com:3100`, or of its push API.
    #[serde(flatten)]
    pub connection: HttpConnection,
    /// Tenant, as a text or a template. By default no tenant is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub tenant: Option<String>,
    /// Labels of streams, by name: texts or templates. Default: names of the cluster, the namespace, the workload, the
    /// container and the service. All other attributes become structured metadata of each line.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 15), length(max = 1024))]
    pub labels: BTreeMap<String, String>,
    /// Attributes of records that templates may take. Whoever writes a log chooses their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 256)))]
    pub allow_record_attributes: Vec<String>,
}

/// Elasticsearch. Templates such as `%{k8s.namespace.name}` take attributes of the resource.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.index) && has(self.dataStream))", "set either `index` or `dataStream`"))]
#[x_kube(validation = ("!(has(self.apiKey) && has(self.authentication))", "set either `apiKey` or `authentication`"))]
pub struct ElasticsearchOutput {
    /// The connection. The endpoint is the URL of a node, such as `https://search.example.com:9200`.
    #[serde(flatten)]
    pub connection: HttpConnection,
    /// API key, encoded as the server showed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<ValueType>,
    /// How documents are made, and where they are stored.
    #[serde(flatten)]
    pub documents: DocumentOptions,
    /// Structure of documents: `otel` (default), `ecs`, `none`, `raw` or `bodymap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<ElasticsearchMapping>,
}

/// OpenSearch. Templates such as `%{k8s.namespace.name}` take attributes of the resource.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.index) && has(self.dataStream))", "set either `index` or `dataStream`"))]
pub struct OpensearchOutput {
    /// The connection. The endpoint is the URL of a node, such as `https://search.example.com:9200`.
    #[serde(flatten)]
    pub connection: HttpConnection,
    /// How documents are made, and where they are stored.
    #[serde(flatten)]
    pub documents: DocumentOptions,
    /// Structure of documents: `ss4o` (default), `ecs`, `none`, `raw`, `otel` or `bodymap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapping: Option<OpensearchMapping>,
}

/// How documents are made of records, and where they are stored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DocumentOptions {
    /// Index, as a text or a template, which may contain a date such as `%{+yyyy.MM.dd}`. By default documents are
    /// stored in a data stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub index: Option<String>,
    /// The parts of the name of the data stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_stream: Option<DataStreamOptions>,
    /// Ingest pipeline that changes documents before they are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub pipeline: Option<String>,
    /// What happens to dots in the names of attributes: they stay (`none`), become underscores in all names
    /// (`allKeys`) or in those of Kubernetes labels and annotations (`kubernetes`), or separate the names of nested
    /// objects (`nested`). Default: `nested` for the mapping `ecs`, or else `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedot: Option<DedotMode>,
    /// Attributes of records that templates may take. Whoever writes a log chooses their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 256)))]
    pub allow_record_attributes: Vec<String>,
}

/// The parts of the name of a data stream, as texts or templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataStreamOptions {
    /// Dataset. Default: `generic` with Elasticsearch, `default` with OpenSearch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub dataset: Option<String>,
    /// Namespace of the data stream, which is none of Kubernetes. Default: `default` with Elasticsearch, `namespace`
    /// with OpenSearch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub namespace: Option<String>,
}

/// Structure of documents in Elasticsearch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ElasticsearchMapping {
    /// The structure of OpenTelemetry
    Otel,
    /// The Elastic Common Schema
    Ecs,
    /// The fields of the record, with prefixes
    None,
    /// The fields of the record, without prefixes of attributes
    Raw,
    /// The body of the record
    Bodymap,
}

/// Structure of documents in OpenSearch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OpensearchMapping {
    /// The Simple Schema for Observability
    Ss4o,
    /// The Elastic Common Schema
    Ecs,
    /// The fields of the record, with prefixes
    None,
    /// The fields of the record, without prefixes of attributes
    Raw,
    /// The structure of OpenTelemetry
    Otel,
    /// The body of the record
    Bodymap,
}

/// What happens to dots in the names of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DedotMode {
    /// They stay.
    None,
    /// Each becomes an underscore.
    AllKeys,
    /// Dots and slashes in the names of Kubernetes labels and annotations become underscores.
    Kubernetes,
    /// A name with dots becomes objects within each other.
    Nested,
}

/// A server that receives JSON over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpOutput {
    /// The connection. The endpoint is the whole URL that records are sent to.
    #[serde(flatten)]
    pub connection: HttpConnection,
    /// Format of a request: `json` (default) is an array of records, `lines` has one record in each line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<HttpOutputFormat>,
    /// Compression of requests: `gzip` (default) or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<HttpOutputCompression>,
    /// What happens to dots in the names of attributes, as with `elasticsearch`. Default: `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedot: Option<DedotMode>,
}

/// Format of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpOutputFormat {
    /// An array of records
    #[default]
    Json,
    /// One record in each line
    Lines,
}

/// Compression of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpOutputCompression {
    /// Requests are compressed with gzip.
    #[default]
    Gzip,
    /// Requests are sent without compression.
    None,
}
