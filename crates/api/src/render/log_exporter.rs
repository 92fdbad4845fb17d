//! Renders exporters of logs to backends that do not receive OTLP.

use kubewake_config::{
    ConfigText, SecretString,
    model::{
        BulkIndexConfig, BulkLogin, CompressionType, Dedot, ElasticsearchExporter, ExporterConfig, HttpExportConfig,
        HttpExporter, HttpFormat, LokiExporter, MappingMode, NameTemplate, OpensearchExporter,
    },
};

use crate::{
    destination::HttpOptions,
    v1alpha1::{
        DedotMode, DocumentOptions, ElasticsearchMapping, HttpOutputCompression, HttpOutputFormat, OpensearchMapping,
    },
};

/// An exporter to Loki.
pub(super) fn loki(
    exporter: LokiExporter,
    tenant: Option<&str>,
    labels: &[(String, String)],
    allowed: &[String],
    http: HttpExportConfig,
) -> ExporterConfig {
    let tenant = tenant.and_then(template);
    let given: Vec<(String, NameTemplate)> =
        labels.iter().filter_map(|(name, text)| Some((name.clone(), template(text)?))).collect();
    let labels = if given.is_empty() { exporter.labels.clone() } else { given };
    let used = tenant.iter().chain(labels.iter().map(|(_, value)| value));
    let allow_record_attributes = used_attributes(allowed, used);
    let http = HttpExportConfig { compression: CompressionType::None, ..http };
    ExporterConfig::Loki(LokiExporter { allow_record_attributes, tenant, labels, http, ..exporter }.into())
}

/// An exporter to Elasticsearch.
pub(super) fn elasticsearch(
    endpoint: ConfigText,
    mapping: Option<ElasticsearchMapping>,
    api_key: Option<SecretString>,
    documents: &DocumentOptions,
    http: impl FnOnce(&HttpExportConfig) -> HttpExportConfig,
) -> ExporterConfig {
    let mode = mapping.map(|mapping| match mapping {
        ElasticsearchMapping::Otel => MappingMode::Otel,
        ElasticsearchMapping::Ecs => MappingMode::Ecs,
        ElasticsearchMapping::None => MappingMode::Prefixed,
        ElasticsearchMapping::Raw => MappingMode::Raw,
        ElasticsearchMapping::Bodymap => MappingMode::BodyMap,
    });
    let default = ElasticsearchExporter::new(endpoint, mode).bulk;
    let http = http(&default.http);
    let login = api_key.map(BulkLogin::ApiKey);
    let bulk = with_documents(BulkIndexConfig { login, http, ..default }, documents);
    ExporterConfig::Elasticsearch(ElasticsearchExporter { bulk }.into())
}

/// An exporter to OpenSearch.
pub(super) fn opensearch(
    endpoint: ConfigText,
    mapping: Option<OpensearchMapping>,
    documents: &DocumentOptions,
    http: impl FnOnce(&HttpExportConfig) -> HttpExportConfig,
) -> ExporterConfig {
    let mode = mapping.map(|mapping| match mapping {
        OpensearchMapping::Ss4o => MappingMode::Ss4o,
        OpensearchMapping::Ecs => MappingMode::Ecs,
        OpensearchMapping::None => MappingMode::Prefixed,
        OpensearchMapping::Raw => MappingMode::Raw,
        OpensearchMapping::Otel => MappingMode::Otel,
        OpensearchMapping::Bodymap => MappingMode::BodyMap,
    });
    let default = OpensearchExporter::new(endpoint, mode).bulk;
    let http = http(&default.http);
    let bulk = with_documents(BulkIndexConfig { http, ..default }, documents);
    ExporterConfig::Opensearch(OpensearchExporter { bulk }.into())
}

/// An exporter of JSON.
pub(super) fn http(
    endpoint: ConfigText,
    options: HttpOptions,
    http: impl FnOnce(&HttpExportConfig) -> HttpExportConfig,
) -> ExporterConfig {
    let default = HttpExporter::new(endpoint);
    let compression = match options.compression {
        HttpOutputCompression::Gzip => CompressionType::Gzip,
        HttpOutputCompression::None => CompressionType::None,
    };
    let format = match options.format {
        HttpOutputFormat::Json => HttpFormat::Json,
        HttpOutputFormat::Lines => HttpFormat::JsonLines,
    };
    let http = HttpExportConfig { compression, ..http(&default.http) };
    let dedot = options.dedot.map_or(default.dedot, dedot);
    ExporterConfig::Http(HttpExporter { format, dedot, http, ..default }.into())
}

fn dedot(mode: DedotMode) -> Dedot {
    match mode {
        DedotMode::None => Dedot::None,
        DedotMode::AllKeys => Dedot::AllKeys,
        DedotMode::Kubernetes => Dedot::Kubernetes,
        DedotMode::Nested => Dedot::Nested,
    }
}

/// Sets where documents go, and what happens to dots. Compression is gzip: the servers know no other.
fn with_documents(default: BulkIndexConfig, options: &DocumentOptions) -> BulkIndexConfig {
    let stream = options.data_stream.as_ref();
    let part = |text: Option<&String>, default: NameTemplate| text.and_then(|text| template(text)).unwrap_or(default);
    let dataset = part(stream.and_then(|stream| stream.dataset.as_ref()), default.dataset);
    let namespace = part(stream.and_then(|stream| stream.namespace.as_ref()), default.namespace);
    let logs_index = options.index.as_deref().and_then(template);
    let used = [&dataset, &namespace].into_iter().chain(&logs_index);
    BulkIndexConfig {
        allow_record_attributes: used_attributes(&options.allow_record_attributes, used),
        dataset,
        namespace,
        logs_index,
        pipeline: options.pipeline.clone(),
        dedot: options.dedot.map_or(default.dedot, dedot),
        http: HttpExportConfig { compression: CompressionType::Gzip, ..default.http },
        ..default
    }
}

/// A template. Validation has refused those that are none.
fn template(text: &str) -> Option<NameTemplate> {
    NameTemplate::parse(text).ok()
}

/// The allowed attributes that templates take. The collector warns of others.
fn used_attributes<'t>(allowed: &[String], templates: impl Iterator<Item = &'t NameTemplate>) -> Vec<String> {
    let used: Vec<&str> = templates.flat_map(NameTemplate::attribute_keys).collect();
    allowed.iter().filter(|key| used.contains(&key.as_str())).cloned().collect()
}
