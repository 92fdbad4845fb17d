//! `loki`: log records to Grafana Loki's push API.

mod default_labels;
mod label_name;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use kubewake_otlp::Signal;

use super::HttpExportConfig;
use crate::{
    ComponentId, ConfigText,
    component::{ComponentSettings, ExporterSettings},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
    name_template::{NamePiece, NameTemplate, allow_record_attributes, name_template},
    network::{CompressionType, url},
    yaml::NodeValue,
};

/// The path of the push API.
const PUSH_PATH: &str = "/loki/api/v1/push";

/// Loki's default limit of labels, `max_label_names_per_series`.
const LOKI_MAX_LABELS: usize = 15;

const DEFAULT_MAX_STREAMS: u32 = 5000;
const DEFAULT_MAX_TENANTS: u32 = 1000;
/// Loki refuses lines beyond 256 KB.
const DEFAULT_MAX_LINE_BYTES: u32 = 256_000;
const DEFAULT_MAX_REQUEST_BYTES: u32 = 1 << 20;

const BEHAVIORS: [(&str, LongLineBehavior); 2] =
    [("truncate", LongLineBehavior::Truncate), ("drop", LongLineBehavior::Drop)];

/// The longest tenant id that Loki accepts, in bytes.
pub const LOKI_MAX_TENANT_BYTES: usize = 150;

#[derive(Clone, Debug, PartialEq)]
pub struct LokiExporter {
    /// `endpoint`: the URL of Loki, or that of its push API.
    pub endpoint: ConfigText,
    /// `tenant`: the value of `X-Scope-OrgID`; without it there is no such header.
    pub tenant: Option<NameTemplate>,
    /// `labels`: name and value, sorted by name.
    pub labels: Vec<(String, NameTemplate)>,
    pub allow_record_attributes: Vec<String>,
    /// `structured_metadata`; `None` when it is switched off.
    pub structured_metadata: Option<StructuredMetadataConfig>,
    /// `max_streams`: so many different sets of labels are in use at once.
    pub max_streams: u32,
    /// `max_tenants`: so many different tenants are in use at once.
    pub max_tenants: u32,
    /// `max_line_size` in bytes.
    pub max_line_bytes: u32,
    pub max_line_behavior: LongLineBehavior,
    /// `max_request_size`: the size of a request in bytes, before compression. A single larger record is sent alone.
    pub max_request_bytes: u32,
    pub http: HttpExportConfig,
}

/// Limits of structured metadata, per line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructuredMetadataConfig {
    pub max_entries: u32,
    /// `max_size`: of all names and values together, in bytes.
    pub max_bytes: u32,
}

impl Default for StructuredMetadataConfig {
    /// Loki's own limits: it refuses lines beyond them.
    fn default() -> Self {
        Self { max_entries: 128, max_bytes: 64_000 }
    }
}

/// What happens to a line that is longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LongLineBehavior {
    /// Its end is cut off.
    #[default]
    Truncate,
    /// The record is refused, and counted.
    Drop,
}

impl ComponentSettings for LokiExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let endpoint = fields.get("endpoint", url);
        if endpoint.is_none() {
            let help = "set `endpoint` to the URL of Loki, such as http://loki.example.com:3100";
            fields.require("endpoint", "the exporter needs an `endpoint`", Some(help.into()));
        }
        let tenant = fields.get("tenant", tenant).filter(|tenant| tenant.as_text() != Some(""));
        let labels = match fields.find("labels") {
            Some(at) => labels(&at, report),
            None => default_labels::labels(),
        };
        let templates = tenant.iter().chain(labels.iter().map(|(_, value)| value));
        let exporter = Self {
            endpoint: endpoint.unwrap_or_default().into(),
            allow_record_attributes: allow_record_attributes(&mut fields, templates),
            tenant,
            labels,
            structured_metadata: structured_metadata(&mut fields),
            max_streams: count(&mut fields, "max_streams", DEFAULT_MAX_STREAMS, 1_000_000),
            max_tenants: count(&mut fields, "max_tenants", DEFAULT_MAX_TENANTS, 100_000),
            max_line_bytes: count(&mut fields, "max_line_size", DEFAULT_MAX_LINE_BYTES, 16 << 20),
            max_line_behavior: fields.get_or("max_line_behavior", LongLineBehavior::default(), |at, report| {
                scalar::keyword(at, report, &BEHAVIORS)
            }),
            max_request_bytes: count(&mut fields, "max_request_size", DEFAULT_MAX_REQUEST_BYTES, 64 << 20),
            http: HttpExportConfig::read_uncompressed(&mut fields),
        };
        // Bodies are in Snappy's block format, because Loki reads protobuf in no other form.
        fields.get("compression", |at, report| scalar::keyword(at, report, &[("snappy", ())]));
        fields.finish();
        Some(exporter)
    }

    fn encode(&self) -> YamlMap {
        let labels = self.labels.iter().fold(YamlMap::default(), |map, (name, value)| map.with_field(name, value));
        let labels = (self.labels != default_labels::labels()).then_some(labels);
        let metadata = match &self.structured_metadata {
            Some(metadata) => metadata.encode(),
            None => YamlMap::default().with_field("enabled", false),
        };
        let map = YamlMap::default()
            .with_field("endpoint", &self.endpoint)
            .with_optional("tenant", self.tenant.as_ref())
            .with_optional("labels", labels)
            .with_list("allow_record_attributes", &self.allow_record_attributes)
            .with_section("structured_metadata", metadata)
            .with_changed("max_streams", self.max_streams, DEFAULT_MAX_STREAMS)
            .with_changed("max_tenants", self.max_tenants, DEFAULT_MAX_TENANTS)
            .with_changed("max_line_size", self.max_line_bytes, DEFAULT_MAX_LINE_BYTES)
            .with_changed("max_line_behavior", encode::keyword(&BEHAVIORS, &self.max_line_behavior), "truncate")
            .with_changed("max_request_size", self.max_request_bytes, DEFAULT_MAX_REQUEST_BYTES);
        self.http.encode_uncompressed(map)
    }

    fn public_fields() -> &'static [&'static str] {
        &["tenant", "max_streams", "max_tenants", "max_line_size", "max_line_behavior", "max_request_size"]
    }

    fn files(&self) -> Vec<PathBuf> {
        self.http.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.http.auth_extension_ids()
    }
}

impl ExporterSettings for LokiExporter {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Logs]
    }
}

impl LokiExporter {
    /// An exporter to this URL, with the defaults of all other settings.
    pub fn new(endpoint: ConfigText) -> Self {
        Self {
            endpoint,
            tenant: None,
            labels: default_labels::labels(),
            allow_record_attributes: Vec::new(),
            structured_metadata: Some(StructuredMetadataConfig::default()),
            max_streams: DEFAULT_MAX_STREAMS,
            max_tenants: DEFAULT_MAX_TENANTS,
            max_line_bytes: DEFAULT_MAX_LINE_BYTES,
            max_line_behavior: LongLineBehavior::default(),
            max_request_bytes: DEFAULT_MAX_REQUEST_BYTES,
            http: HttpExportConfig { compression: CompressionType::None, ..HttpExportConfig::default() },
        }
    }

    /// The URL of the push API.
    pub fn push_url(&self) -> String {
        with_push_path(&self.endpoint)
    }
}

impl StructuredMetadataConfig {
    fn encode(&self) -> YamlMap {
        let default = Self::default();
        YamlMap::default().with_changed("max_entries", self.max_entries, default.max_entries).with_changed(
            "max_size",
            self.max_bytes,
            default.max_bytes,
        )
    }
}

/// The URL of the push API, from that of Loki or from its own.
fn with_push_path(url: &str) -> String {
    let (base, query) = match url.split_once('?') {
        Some((base, query)) => (base, format!("?{query}")),
        None => (url, String::new()),
    };
    let base = base.trim_end_matches('/');
    if base.ends_with(PUSH_PATH) { format!("{base}{query}") } else { format!("{base}{PUSH_PATH}{query}") }
}

/// A number from 1 to `most`.
fn count(fields: &mut FieldReader<'_, '_>, name: &'static str, default: u32, most: u32) -> u32 {
    fields
        .get(name, |at, report| scalar::integer_in_range(at, report, 1, most.into()))
        .and_then(|value| value.try_into().ok())
        .unwrap_or(default)
}

fn tenant(at: &Cursor<'_>, report: &DecodeReport) -> Option<NameTemplate> {
    let template = name_template(at, report)?;
    let texts = template.pieces().iter().filter_map(|piece| match piece {
        NamePiece::Text(text) | NamePiece::Attribute { default: Some(text), .. } => Some(text),
        NamePiece::Attribute { .. } | NamePiece::Date(_) => None,
    });
    let mut characters = texts.flat_map(|text| text.chars());
    let fault = if !characters.all(is_tenant_character) {
        "has characters that Loki does not allow in tenants"
    } else if template.as_text().is_some_and(|text| text.len() > LOKI_MAX_TENANT_BYTES) {
        "is longer than 150 bytes"
    } else if template.as_text().is_some_and(|text| matches!(text, "." | "..")) {
        "is no tenant id in Loki"
    } else {
        return Some(template);
    };
    let help = "use letters, digits and ! - _ . * ' ( ), and placeholders such as %{k8s.namespace.name}";
    report.error(at, format!("`tenant` {fault}"), Some(help.into()));
    None
}

/// Whether Loki allows this character in a tenant id.
pub fn is_tenant_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!-_.*'()".contains(character)
}

/// The labels with their values, sorted by name.
fn labels(at: &Cursor<'_>, report: &DecodeReport) -> Vec<(String, NameTemplate)> {
    let NodeValue::Map(entries) = &at.node.value else {
        let _: Option<()> = scalar::wrong_type(at, report, "a map of names and values", None);
        return Vec::new();
    };
    report.mark_keys_public(entries);
    let mut labels = Vec::new();
    for entry in entries {
        let value = at.entry(entry);
        let name = &entry.key.text;
        if let Some(fault) = label_name::fault(name) {
            let help = "a label has letters, digits and _, does not begin with a digit, and does not begin with __";
            report.error(&value, format!("the name of the label {fault}"), Some(help.into()));
            continue;
        }
        labels.extend(name_template(&value, report).map(|template| (name.clone(), template)));
    }
    if labels.len() > LOKI_MAX_LABELS {
        let message = format!("there are {} labels; Loki refuses more than {LOKI_MAX_LABELS} by default", labels.len());
        let help = "leave attributes with many values out: they are in the structured metadata of each line";
        report.warning(at, message, Some(help.into()));
    }
    labels.sort_by(|(a, _), (b, _)| a.cmp(b));
    labels
}

fn structured_metadata(fields: &mut FieldReader<'_, '_>) -> Option<StructuredMetadataConfig> {
    let default = StructuredMetadataConfig::default();
    let Some(at) = fields.find("structured_metadata") else { return Some(default) };
    let mut fields = FieldReader::new(&at, fields.report);
    let enabled = fields.enabled();
    let metadata = StructuredMetadataConfig {
        max_entries: count(&mut fields, "max_entries", default.max_entries, 1000),
        max_bytes: count(&mut fields, "max_size", default.max_bytes, 1 << 20),
    };
    fields.finish();
    enabled.then_some(metadata)
}
