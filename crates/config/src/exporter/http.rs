//! `http`: log records as JSON documents to any HTTP server.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use kubewake_otlp::Signal;

use super::{Dedot, HttpExportConfig, bulk_index};
use crate::{
    ComponentId, ConfigText,
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
    network::url,
};

#[derive(Clone, Debug, PartialEq)]
pub struct HttpExporter {
    /// `endpoint`
    pub url: ConfigText,
    pub method: HttpMethod,
    pub format: HttpFormat,
    /// `date_key`: the member with the time of the record; `None`: there is none.
    pub date_key: Option<String>,
    pub date_format: DateNotation,
    /// `body_key`: the member with the body of the record.
    pub body_key: String,
    /// `merge_attributes`: the attributes of the record are members of the document, and not of `attributes`.
    pub merge_attributes: bool,
    pub dedot: Dedot,
    /// `max_request_size`: the size of a request in bytes, before compression. A single larger document is sent alone.
    pub max_request_bytes: u32,
    pub http: HttpExportConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HttpMethod {
    #[default]
    Post,
    Put,
}

/// How documents are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HttpFormat {
    /// An array.
    #[default]
    Json,
    /// A document a line.
    JsonLines,
}

/// The notation of the member `date_key`, with the names of Fluent Bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateNotation {
    /// `2024-02-29T23:30:00.123456Z`
    #[default]
    Iso8601,
    /// `2024-02-29 23:30:00.123456`
    JavaSqlTimestamp,
    /// Seconds since 1970.
    Epoch,
    /// Milliseconds since 1970.
    EpochMs,
    /// Seconds since 1970, with microseconds behind the point.
    Double,
}

const DEFAULT_DATE_KEY: &str = "date";
const DEFAULT_BODY_KEY: &str = "message";
const DEFAULT_MAX_REQUEST_BYTES: u32 = 1 << 20;

const METHODS: [(&str, HttpMethod); 2] = [("post", HttpMethod::Post), ("put", HttpMethod::Put)];

const FORMATS: [(&str, HttpFormat); 2] = [("json", HttpFormat::Json), ("json_lines", HttpFormat::JsonLines)];

const DATE_NOTATIONS: [(&str, DateNotation); 5] = [
    ("iso8601", DateNotation::Iso8601),
    ("java_sql_timestamp", DateNotation::JavaSqlTimestamp),
    ("epoch", DateNotation::Epoch),
    ("epoch_ms", DateNotation::EpochMs),
    ("double", DateNotation::Double),
];

/// The members of a document that are not attributes; `body_key` and `date_key` must be others.
const OWN_MEMBERS: [&str; 9] =
    ["time", "stream", "kubernetes", "resource", "attributes", "level", "trace_id", "span_id", "log"];

impl ComponentSettings for HttpExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let url = fields.get("endpoint", url);
        if url.is_none() {
            let help = "set `endpoint` to a URL, such as https://logs.example.com/ingest";
            fields.require("endpoint", "the exporter needs an `endpoint`", Some(help.into()));
        }
        let date_key = fields.get_or("date_key", DEFAULT_DATE_KEY.to_owned(), scalar::text);
        let exporter = Self {
            url: url.unwrap_or_default().into(),
            method: fields
                .get_or("method", HttpMethod::default(), |at, report| scalar::keyword_any_case(at, report, &METHODS)),
            format: fields.get_or("format", HttpFormat::default(), |at, report| scalar::keyword(at, report, &FORMATS)),
            date_key: Some(date_key).filter(|key| !key.is_empty()),
            date_format: fields.get_or("date_format", DateNotation::default(), |at, report| {
                scalar::keyword(at, report, &DATE_NOTATIONS)
            }),
            body_key: fields.text("body_key").unwrap_or_else(|| DEFAULT_BODY_KEY.into()),
            merge_attributes: fields.get_or("merge_attributes", true, scalar::boolean),
            dedot: fields.get_or("dedot", Dedot::None, bulk_index::dedot),
            max_request_bytes: bulk_index::number(
                &mut fields,
                "max_request_size",
                DEFAULT_MAX_REQUEST_BYTES,
                100 << 20,
            ),
            http: HttpExportConfig::read(&mut fields),
        };
        check_keys(&exporter, &fields);
        fields.finish();
        Some(exporter)
    }

    fn encode(&self) -> YamlMap {
        let merge_attributes = (!self.merge_attributes).then_some(false);
        let map = YamlMap::default()
            .with_field("endpoint", &self.url)
            .with_changed("method", encode::keyword(&METHODS, &self.method), "post")
            .with_changed("format", encode::keyword(&FORMATS, &self.format), "json")
            .with_changed("date_key", self.date_key.as_deref().unwrap_or_default(), DEFAULT_DATE_KEY)
            .with_changed("date_format", encode::keyword(&DATE_NOTATIONS, &self.date_format), "iso8601")
            .with_changed("body_key", self.body_key.as_str(), DEFAULT_BODY_KEY)
            .with_optional("merge_attributes", merge_attributes)
            .with_changed("dedot", encode::keyword(&bulk_index::DEDOTS, &self.dedot), "none")
            .with_changed("max_request_size", self.max_request_bytes, DEFAULT_MAX_REQUEST_BYTES);
        self.http.encode(map)
    }

    fn public_fields() -> &'static [&'static str] {
        &["method", "format", "date_key", "date_format", "body_key", "merge_attributes"]
    }

    fn files(&self) -> Vec<PathBuf> {
        self.http.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.http.auth_extension_ids()
    }
}

impl ExporterSettings for HttpExporter {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Logs]
    }
}

impl HttpExporter {
    /// An exporter to this URL, with the defaults of all other settings.
    pub fn new(url: ConfigText) -> Self {
        Self {
            url,
            method: HttpMethod::default(),
            format: HttpFormat::default(),
            date_key: Some(DEFAULT_DATE_KEY.into()),
            date_format: DateNotation::default(),
            body_key: DEFAULT_BODY_KEY.into(),
            merge_attributes: true,
            dedot: Dedot::default(),
            max_request_bytes: DEFAULT_MAX_REQUEST_BYTES,
            http: HttpExportConfig::default(),
        }
    }
}

/// Refuses keys that a document has anyway. `time` is the exception: it may have another notation.
fn check_keys(exporter: &HttpExporter, fields: &FieldReader<'_, '_>) {
    let date_key = exporter.date_key.as_deref().unwrap_or_default();
    for (name, key) in [("body_key", exporter.body_key.as_str()), ("date_key", date_key)] {
        let is_taken =
            OWN_MEMBERS.contains(&key) && (name, key) != ("date_key", "time") && (name, key) != ("body_key", "log");
        if is_taken || (name == "date_key" && key == exporter.body_key) {
            let at = fields.cursor_at(name);
            let shown = at.quote(key);
            fields.report.error(&at, format!("`{name}`: documents have another member {shown}"), None);
        }
    }
}
