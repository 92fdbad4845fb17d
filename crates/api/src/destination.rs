//! The destination of a pipeline, whatever kind of backend it is.

use crate::v1alpha1::{
    AuthenticationOptions, DedotMode, DocumentOptions, ElasticsearchMapping, ElasticsearchOutput, HttpConnection,
    HttpOutput, HttpOutputCompression, HttpOutputFormat, LogPipelineOutput, LokiOutput, OpensearchMapping,
    OpensearchOutput, OtlpOutput, OtlpProtocol, OutputDefaults, PipelineOutput, RequestHeader, TlsOptions, ValueType,
};

/// A backend, and how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineDestination {
    /// The kind of backend, with its own settings.
    pub backend: BackendKind,
    /// The address.
    pub endpoint: ValueType,
    /// The credentials.
    pub authentication: Option<AuthenticationOptions>,
    /// Headers of every request.
    pub headers: Vec<RequestHeader>,
    /// TLS of the connection.
    pub tls: Option<TlsOptions>,
    /// Compression, timeout, retries and queue, as far as they are set.
    pub sending: OutputDefaults,
}

/// A kind of backend, with the settings that only it has.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendKind {
    /// A backend that receives OTLP.
    Otlp {
        /// The transport protocol.
        protocol: OtlpProtocol,
        /// The path instead of the usual one.
        path: Option<String>,
    },
    /// Grafana Loki.
    Loki {
        /// A text or a template.
        tenant: Option<String>,
        /// Texts or templates by name; if empty, the defaults.
        labels: Vec<(String, String)>,
        /// Attributes of records that templates may take.
        allow_record_attributes: Vec<String>,
    },
    /// Elasticsearch.
    Elasticsearch {
        /// The credentials, unless they are in `authentication`.
        api_key: Option<ValueType>,
        /// How documents are made and stored.
        documents: DocumentOptions,
        /// The structure of documents.
        mapping: Option<ElasticsearchMapping>,
    },
    /// OpenSearch.
    Opensearch {
        /// How documents are made and stored.
        documents: DocumentOptions,
        /// The structure of documents.
        mapping: Option<OpensearchMapping>,
    },
    /// JSON over HTTP.
    Http(HttpOptions),
}

/// How records become requests of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpOptions {
    /// The format of a request.
    pub format: HttpOutputFormat,
    /// The compression of a request.
    pub compression: HttpOutputCompression,
    /// What happens to dots.
    pub dedot: Option<DedotMode>,
}

impl BackendKind {
    /// The name of its field in `spec.output`.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Otlp { .. } => "otlp",
            Self::Loki { .. } => "loki",
            Self::Elasticsearch { .. } => "elasticsearch",
            Self::Opensearch { .. } => "opensearch",
            Self::Http(_) => "http",
        }
    }

    /// What happens to dots, if it stores documents and says so.
    pub(crate) fn documents(&self) -> Option<&DocumentOptions> {
        match self {
            Self::Elasticsearch { documents, .. } | Self::Opensearch { documents, .. } => Some(documents),
            Self::Otlp { .. } | Self::Loki { .. } | Self::Http(_) => None,
        }
    }
}

impl PipelineDestination {
    /// The path of the output in its resource.
    pub fn path(&self) -> String {
        format!("spec.output.{}", self.backend.field())
    }

    /// The settings that decide where data goes, and with which credentials. The others, such as its queue, may be
    /// changed by everybody who may change the pipeline.
    #[must_use]
    pub fn without_sending(&self) -> Self {
        Self { sending: OutputDefaults::default(), ..self.clone() }
    }

    /// All values that may be references.
    pub(crate) fn values(&self) -> Vec<ValueType> {
        let mut values = vec![self.endpoint.clone()];
        values.extend(self.headers.iter().map(RequestHeader::source));
        let mut tls: Vec<_> = self.tls.iter().collect();
        if let Some(authentication) = &self.authentication {
            if let Some(basic) = &authentication.basic {
                values.extend([basic.user.clone(), basic.password.clone()]);
            }
            if let Some(bearer) = &authentication.bearer {
                values.push(bearer.token.clone());
            }
            if let Some(oauth2) = &authentication.oauth2 {
                values.extend([oauth2.token_url.clone(), oauth2.client_id.clone(), oauth2.client_secret.clone()]);
                tls.extend(&oauth2.tls);
            }
        }
        if let BackendKind::Elasticsearch { api_key: Some(api_key), .. } = &self.backend {
            values.push(api_key.clone());
        }
        values.extend(tls.into_iter().flat_map(|tls| [&tls.ca, &tls.cert, &tls.key]).flatten().cloned());
        values
    }

    fn over_http(backend: BackendKind, connection: &HttpConnection) -> Self {
        let HttpConnection { endpoint, authentication, headers, tls, timeout, retry, queue } = connection.clone();
        let sending = OutputDefaults { compression: None, timeout, retry, queue };
        Self { backend, endpoint, authentication, headers, tls, sending }
    }
}

/// The destinations that are set.
impl From<&PipelineOutput> for Vec<PipelineDestination> {
    fn from(output: &PipelineOutput) -> Self {
        output.otlp.iter().map(PipelineDestination::from).collect()
    }
}

/// The destinations that are set.
impl From<&LogPipelineOutput> for Vec<PipelineDestination> {
    fn from(output: &LogPipelineOutput) -> Self {
        let LogPipelineOutput { otlp, loki, elasticsearch, opensearch, http } = output;
        let mut all: Self = otlp.iter().map(PipelineDestination::from).collect();
        all.extend(loki.as_deref().map(PipelineDestination::from));
        all.extend(elasticsearch.as_deref().map(PipelineDestination::from));
        all.extend(opensearch.as_deref().map(PipelineDestination::from));
        all.extend(http.as_deref().map(PipelineDestination::from));
        all
    }
}

impl From<&OtlpOutput> for PipelineDestination {
    fn from(output: &OtlpOutput) -> Self {
        let OtlpOutput { protocol, endpoint, path, authentication, headers, tls, compression, timeout, retry, queue } =
            output.clone();
        let backend = BackendKind::Otlp { protocol, path };
        let sending = OutputDefaults { compression, timeout, retry, queue };
        Self { backend, endpoint, authentication, headers, tls, sending }
    }
}

impl From<&LokiOutput> for PipelineDestination {
    fn from(output: &LokiOutput) -> Self {
        let LokiOutput { connection, tenant, labels, allow_record_attributes } = output.clone();
        let labels = labels.into_iter().collect();
        Self::over_http(BackendKind::Loki { tenant, labels, allow_record_attributes }, &connection)
    }
}

impl From<&ElasticsearchOutput> for PipelineDestination {
    fn from(output: &ElasticsearchOutput) -> Self {
        let ElasticsearchOutput { connection, api_key, documents, mapping } = output.clone();
        Self::over_http(BackendKind::Elasticsearch { api_key, documents, mapping }, &connection)
    }
}

impl From<&OpensearchOutput> for PipelineDestination {
    fn from(output: &OpensearchOutput) -> Self {
        let OpensearchOutput { connection, documents, mapping } = output.clone();
        Self::over_http(BackendKind::Opensearch { documents, mapping }, &connection)
    }
}

impl From<&HttpOutput> for PipelineDestination {
    fn from(output: &HttpOutput) -> Self {
        let HttpOutput { connection, format, compression, dedot } = output.clone();
        let format = format.unwrap_or_default();
        let compression = compression.unwrap_or_default();
        Self::over_http(BackendKind::Http(HttpOptions { format, compression, dedot }), &connection)
    }
}
