//! `elasticsearch`: logs and traces to the bulk API of Elasticsearch.

use std::{path::PathBuf, time::Duration};

use kubewake_otlp::Signal;

use super::{
    HttpExportConfig,
    bulk_index::{
        self, BulkAction, BulkIndexConfig, MappingMode, data_stream_part, dated_index, index_with_default,
        strftime_date,
    },
};
use crate::{
    ComponentId, ConfigText,
    component::{ComponentSettings, ExporterSettings, PipelinePlace, PlaceProblem},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::YamlMap,
    name_template::NameTemplate,
};

/// A bulk request may wait for the slowest shard.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);

#[derive(Clone, Debug, PartialEq)]
pub struct ElasticsearchExporter {
    pub bulk: BulkIndexConfig,
}

impl ElasticsearchExporter {
    /// An exporter to this URL of documents of this structure, with the defaults of all other settings.
    pub fn new(endpoint: ConfigText, mode: Option<MappingMode>) -> Self {
        let stream = [attribute_or("data_stream.dataset", "generic"), attribute_or("data_stream.namespace", "default")];
        let bulk = BulkIndexConfig::new(endpoint, mode.unwrap_or(MappingMode::Otel), stream);
        let http = HttpExportConfig { timeout: Some(DEFAULT_TIMEOUT), ..bulk.http };
        Self { bulk: BulkIndexConfig { require_data_stream: true, http, ..bulk } }
    }
}

impl ComponentSettings for ElasticsearchExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let endpoints = bulk_index::endpoints(&mut fields);
        let login = bulk_index::login(&mut fields);
        let index = |at: &Cursor<'_>, report: &DecodeReport| index_with_default(at, report, None);
        let plain_logs = fields.get("logs_index", index);
        let plain_traces = fields.get("traces_index", index);
        let date = logstash_date(&mut fields);
        let dated = |index: Option<NameTemplate>| match (index, &date) {
            (Some(index), Some(date)) => dated_index(index, &date.separator, &date.format),
            (index, _) => index,
        };
        let dataset = fields.get("dataset", |at, report| data_stream_part(at, report, false, "generic"));
        let namespace = fields.get("namespace", |at, report| data_stream_part(at, report, true, "default"));
        let dataset = dataset.unwrap_or_else(|| attribute_or("data_stream.dataset", "generic"));
        let namespace = namespace.unwrap_or_else(|| attribute_or("data_stream.namespace", "default"));
        let (logs_index, traces_index) = (dated(plain_logs), dated(plain_traces));
        let templates = [Some(&dataset), Some(&namespace), logs_index.as_ref(), traces_index.as_ref()];
        let names = bulk_index::name_sources(&mut fields, templates.into_iter().flatten());
        let (mode, dedot) = bulk_index::mapping(&mut fields, MappingMode::Otel);
        skip_ineffective_fields(&mut fields);
        let has_timeout = fields.has("timeout");
        let mut http = HttpExportConfig::read(&mut fields);
        if !has_timeout {
            http.timeout = Some(DEFAULT_TIMEOUT);
        }
        let bulk = BulkIndexConfig {
            endpoints,
            login,
            stream_prefix: "",
            dataset,
            namespace,
            logs_index,
            traces_index,
            allow_record_attributes: names.allow_record_attributes,
            max_indices: names.max_indices,
            action: BulkAction::Create,
            require_data_stream: fields.get_or("require_data_stream", true, scalar::boolean),
            pipeline: fields.text("pipeline").filter(|pipeline| !pipeline.is_empty()),
            mode,
            dedot,
            document_ids: bulk_index::document_ids(&mut fields),
            max_bulk_bytes: bulk_index::max_bulk_bytes(&mut fields),
            http,
        };
        fields.finish();
        Some(Self { bulk })
    }

    fn encode(&self) -> YamlMap {
        let map = self.bulk.encode_connection(YamlMap::default());
        let map = self.bulk.encode_documents(map, MappingMode::Otel);
        let map = map.with_changed("require_data_stream", self.bulk.require_data_stream, true);
        self.bulk.http.encode_with_timeout(map, DEFAULT_TIMEOUT)
    }

    fn public_fields() -> &'static [&'static str] {
        bulk_index::PUBLIC_FIELDS
    }

    fn files(&self) -> Vec<PathBuf> {
        self.bulk.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.bulk.auth_extension_ids()
    }
}

impl ExporterSettings for ElasticsearchExporter {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Traces, Signal::Logs]
    }

    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        self.bulk.check_place(place)
    }
}

fn attribute_or(key: &str, default: &str) -> NameTemplate {
    NameTemplate::from_attribute(key).with_default(default)
}

/// `logstash_format`, if it is enabled.
struct LogstashDate {
    separator: String,
    format: String,
}

fn logstash_date(fields: &mut FieldReader<'_, '_>) -> Option<LogstashDate> {
    let at = fields.find("logstash_format")?;
    let mut logstash = FieldReader::new(&at, fields.report);
    let enabled = logstash.get_or("enabled", false, scalar::boolean);
    let separator = logstash.text("prefix_separator").unwrap_or_else(|| "-".into());
    let format = logstash.get_or("date_format", "yyyy.MM.dd".to_owned(), |at, report| {
        let text = scalar::text(at, report)?;
        let date = strftime_date(&text);
        if date.is_none() {
            let help = "use %Y, %m, %d and %H, with . - or _ between them".to_owned();
            report.error(at, format!("{} is no date that the name of an index can have", at.subject(&text)), help);
        }
        date
    });
    if separator.chars().any(|c| !bulk_index::is_index_character(c)) {
        let place = logstash.cursor_at("prefix_separator");
        logstash.report.error(&place, "`prefix_separator` has characters that the name must not have", None);
    }
    logstash.finish();
    if enabled && !fields.has("logs_index") && !fields.has("traces_index") {
        let help = "set `logs_index` or `traces_index`: the names of data streams have no date".to_owned();
        fields.report.error(&at, "`logstash_format` needs an index", help);
    }
    enabled.then_some(LogstashDate { separator, format })
}

fn skip_ineffective_fields(fields: &mut FieldReader<'_, '_>) {
    for name in ["logs_dynamic_index", "traces_dynamic_index"] {
        section_without_effect(fields, name, &["enabled"]);
    }
    section_without_effect(fields, "logs_dynamic_id", &["enabled"]);
    fields.warn_ineffective("num_workers", "set `sending_queue.num_consumers`", scalar::integer);
    fields.accept_without_effect(&["include_source_on_error"], scalar::boolean);
    if let Some(at) = fields.find("retry") {
        let message = "`retry` has no effect: `retry_on_failure` decides, and single documents are sent again";
        fields.report.warning(&at, message, Some("set `retry_on_failure` instead".into()));
    }
    for name in ["discover", "telemetry", "metrics_dynamic_index", "batcher"] {
        if let Some(at) = fields.find(name) {
            fields.report.warning(&at, format!("`{name}` has no effect"), None);
        }
    }
    fields.accept_without_effect(&["metrics_index"], scalar::text);
    fields.unsupported(&["cloudid", "logs_dynamic_pipeline", "dynamic_templates", "metadata_keys"]);
}

fn section_without_effect(fields: &mut FieldReader<'_, '_>, name: &'static str, flags: &[&'static str]) {
    let Some(at) = fields.find(name) else { return };
    let mut section = FieldReader::new(&at, fields.report);
    let is_on = section.get_or("enabled", false, scalar::boolean);
    section.accept_without_effect(flags, scalar::boolean);
    section.finish();
    if is_on {
        let help = "name attributes in the template, such as %{service.name}".to_owned();
        fields.report.warning(&at, format!("`{name}` has no effect"), help);
    }
}
