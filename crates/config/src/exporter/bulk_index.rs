//! Settings that `elasticsearch` and `opensearch` share: how documents are made, and where they go.

mod index_name;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use kubewake_otlp::Signal;

use super::HttpExportConfig;
use crate::{
    ComponentId, ConfigText, SecretString,
    component::{PipelinePlace, PlaceProblem},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
    name_template::{NameTemplate, allow_record_attributes},
    network::{self, url},
    yaml::NodeValue,
};
pub use index_name::is_index_character;
pub(crate) use index_name::{data_stream_part, dated_index, index_with_default, strftime_date};

/// The most endpoints of one cluster.
const MAX_ENDPOINTS: usize = 100;

/// More than most clusters have, and few enough for the shards that they take.
const DEFAULT_MAX_INDICES: u32 = 1000;

/// The default size of a bulk request. The servers' own documentation recommends a few megabytes.
const DEFAULT_BULK_BYTES: u32 = 5_000_000;
/// The servers' default limit of a request, `http.max_content_length`.
const MAX_BULK_BYTES: u32 = 100 << 20;

/// How a record becomes a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingMode {
    /// `otel`: the structure of OpenTelemetry.
    Otel,
    /// `ecs`: the Elastic Common Schema.
    Ecs,
    /// `none`: the fields of the record, with prefixes.
    Prefixed,
    /// `raw`: as `none`, but attributes have no prefix.
    Raw,
    /// `bodymap`: the body of the log record.
    BodyMap,
    /// `ss4o`: the Simple Schema for Observability.
    Ss4o,
}

/// What happens to dots in keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Dedot {
    /// `none`: they stay.
    #[default]
    None,
    /// `all_keys`: each becomes an underscore.
    AllKeys,
    /// `kubernetes`: dots and slashes in the names of Kubernetes labels and annotations become underscores.
    Kubernetes,
    /// `nested`: a key with dots becomes objects within each other.
    Nested,
}

/// What the ids of documents are made from. A document that is sent twice with the same id is stored once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DocumentIds {
    /// `content`: the record as a whole, with its resource.
    #[default]
    Content,
    /// `uid`: the attribute `log.record.uid`. Log records without it have no id.
    Uid,
    /// `none`: the destination chooses them.
    None,
}

/// What a bulk request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BulkAction {
    /// `create`: a document that exists stays as it is.
    #[default]
    Create,
    /// `index`: a document that exists is replaced.
    Index,
}

/// The credentials in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkLogin {
    /// `user` and `password`
    Basic { user: ConfigText, password: SecretString },
    /// `api_key`, encoded as the server showed it
    ApiKey(SecretString),
}

#[derive(Clone, Debug, PartialEq)]
pub struct BulkIndexConfig {
    /// The URLs of the nodes of one cluster.
    pub endpoints: Vec<ConfigText>,
    pub login: Option<BulkLogin>,
    /// What the names of data streams begin with: `ss4o_logs-…` instead of `logs-…`.
    pub stream_prefix: &'static str,
    /// The parts of the names of data streams.
    pub dataset: NameTemplate,
    pub namespace: NameTemplate,
    /// The index for logs; `None`: a data stream.
    pub logs_index: Option<NameTemplate>,
    /// The index for traces; `None`: a data stream.
    pub traces_index: Option<NameTemplate>,
    pub allow_record_attributes: Vec<String>,
    /// `max_indices`: so many different indices are in use at once.
    pub max_indices: u32,
    pub action: BulkAction,
    /// Whether the server is told that a name is that of a data stream, so that it never makes an index of it.
    pub require_data_stream: bool,
    /// The ingest pipeline.
    pub pipeline: Option<String>,
    pub mode: MappingMode,
    pub dedot: Dedot,
    pub document_ids: DocumentIds,
    /// The size of a bulk request in bytes, before compression. A single larger document is sent alone.
    pub max_bulk_bytes: u32,
    pub http: HttpExportConfig,
}

impl BulkIndexConfig {
    /// Documents of this structure in data streams with these names, with the defaults of all other settings.
    pub(crate) fn new(endpoint: ConfigText, mode: MappingMode, [dataset, namespace]: [NameTemplate; 2]) -> Self {
        Self {
            endpoints: vec![endpoint],
            login: None,
            stream_prefix: "",
            dataset,
            namespace,
            logs_index: None,
            traces_index: None,
            allow_record_attributes: Vec::new(),
            max_indices: DEFAULT_MAX_INDICES,
            action: BulkAction::default(),
            require_data_stream: false,
            pipeline: None,
            mode,
            dedot: default_dedot(mode),
            document_ids: DocumentIds::default(),
            max_bulk_bytes: DEFAULT_BULK_BYTES,
            http: HttpExportConfig::default(),
        }
    }

    /// The index for a signal; `None`: a data stream.
    pub fn index(&self, signal: Signal) -> Option<&NameTemplate> {
        match signal {
            Signal::Traces => self.traces_index.as_ref(),
            Signal::Logs | Signal::Metrics => self.logs_index.as_ref(),
        }
    }

    /// Adds the endpoints and the credentials.
    pub(crate) fn encode_connection(&self, map: YamlMap) -> YamlMap {
        let map = map.with_list("endpoints", &self.endpoints);
        match &self.login {
            None => map,
            Some(BulkLogin::ApiKey(key)) => map.with_field("api_key", key),
            Some(BulkLogin::Basic { user, password }) => {
                let map = map.with_field("user", user);
                if password.is_empty() { map } else { map.with_field("password", password) }
            }
        }
    }

    /// Adds what decides how documents are made and where they go. `mode` is the default of the exporter.
    pub(crate) fn encode_documents(&self, map: YamlMap, mode: MappingMode) -> YamlMap {
        let mapping = YamlMap::default()
            .with_changed("mode", encode::keyword(&MODES, &self.mode), encode::keyword(&MODES, &mode))
            .with_changed(
                "dedot",
                encode::keyword(&DEDOTS, &self.dedot),
                encode::keyword(&DEDOTS, &default_dedot(self.mode)),
            );
        let flush = YamlMap::default().with_changed("bytes", self.max_bulk_bytes, DEFAULT_BULK_BYTES);
        let ids = encode::keyword(&DOCUMENT_IDS, &self.document_ids);
        map.with_field("dataset", &self.dataset)
            .with_field("namespace", &self.namespace)
            .with_optional("logs_index", self.logs_index.as_ref())
            .with_optional("traces_index", self.traces_index.as_ref())
            .with_list("allow_record_attributes", &self.allow_record_attributes)
            .with_changed("max_indices", self.max_indices, DEFAULT_MAX_INDICES)
            .with_optional("pipeline", self.pipeline.as_ref())
            .with_section("mapping", mapping)
            .with_changed("document_ids", ids, encode::keyword(&DOCUMENT_IDS, &DocumentIds::default()))
            .with_section("flush", flush)
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.http.files()
    }

    pub(crate) fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.http.auth_extension_ids()
    }

    pub(crate) fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        if self.mode != MappingMode::BodyMap || place.signal == Signal::Logs {
            return Vec::new();
        }
        let message = format!("the mapping mode `bodymap` of the exporter `{}` is for logs only", place.id);
        vec![PlaceProblem::error(message, "use another exporter with another mode for this pipeline")]
    }
}

const DOCUMENT_IDS: [(&str, DocumentIds); 3] =
    [("content", DocumentIds::Content), ("uid", DocumentIds::Uid), ("none", DocumentIds::None)];

const MODES: [(&str, MappingMode); 6] = [
    ("otel", MappingMode::Otel),
    ("ecs", MappingMode::Ecs),
    ("none", MappingMode::Prefixed),
    ("raw", MappingMode::Raw),
    ("bodymap", MappingMode::BodyMap),
    ("ss4o", MappingMode::Ss4o),
];

pub(crate) const DEDOTS: [(&str, Dedot); 4] =
    [("none", Dedot::None), ("all_keys", Dedot::AllKeys), ("kubernetes", Dedot::Kubernetes), ("nested", Dedot::Nested)];

/// The names of fields that both exporters have and messages may show.
pub(crate) const PUBLIC_FIELDS: &[&str] = &[
    "endpoints",
    "logs_index",
    "traces_index",
    "dataset",
    "namespace",
    "pipeline",
    "mapping",
    "mode",
    "dedot",
    "document_ids",
    "max_indices",
    "allow_record_attributes",
    "require_data_stream",
    "logstash_format",
    "flush",
    "http",
    "bulk_action",
    "logs_index_fallback",
    "logs_index_time_format",
    "traces_index_fallback",
    "traces_index_time_format",
];

/// `endpoint` or `endpoints`.
pub(crate) fn endpoints(fields: &mut FieldReader<'_, '_>) -> Vec<ConfigText> {
    let single = fields.get("endpoint", url);
    let several = fields.get("endpoints", |at, report| {
        let Some(items) = at.items() else { return scalar::wrong_type(at, report, "a list", None) };
        Some(items.filter_map(|item| url(&item, report)).collect::<Vec<_>>())
    });
    if single.is_some() && several.is_some() {
        let help = "move the URL of `endpoint` to the list".to_owned();
        fields.report.error(&fields.cursor_at("endpoint"), "set `endpoint` or `endpoints`, not both", help);
    }
    let all: Vec<String> = several.unwrap_or_default().into_iter().chain(single).collect();
    if all.is_empty() && !fields.failed("endpoint") && !fields.failed("endpoints") {
        let help = "set `endpoint` to a URL, such as https://search.example.com:9200, or `endpoints` to a list of them";
        fields.require("endpoint", "the exporter needs an `endpoint`", Some(help.into()));
    }
    let place = if fields.has("endpoints") { "endpoints" } else { "endpoint" };
    if all.len() > MAX_ENDPOINTS {
        fields.report.error(&fields.cursor_at(place), format!("there are more than {MAX_ENDPOINTS} endpoints"), None);
    }
    if all.iter().any(|url| url.contains(['?', '#'])) {
        let message = format!("`{place}` has a URL with a query, which the exporter would replace");
        fields.report.error(&fields.cursor_at(place), message, None);
    }
    all.into_iter().map(Into::into).collect()
}

/// `user` with `password`, or `api_key`; not both, and not with an authenticator.
pub(crate) fn login(fields: &mut FieldReader<'_, '_>) -> Option<BulkLogin> {
    let user = fields.text("user").filter(|user| !user.is_empty());
    let password = fields.get("password", scalar::secret);
    let api_key = fields.get("api_key", |at, report| {
        let key = scalar::secret(at, report)?;
        network::check_header_value(at, report, &key).then_some(key)
    });
    let given = [user.is_some() || password.is_some(), api_key.is_some(), fields.has("auth")];
    if given.iter().filter(|is_given| **is_given).count() > 1 {
        let place = if api_key.is_some() { "api_key" } else { "user" };
        let message = "the exporter has several kinds of credentials";
        let help = "keep one of `user` with `password`, `api_key`, and `auth`".to_owned();
        fields.report.error(&fields.cursor_at(place), message, help);
    }
    match (user, password, api_key) {
        (_, _, Some(key)) => Some(BulkLogin::ApiKey(key)),
        (Some(user), password, None) => {
            if user.contains(':') {
                fields.report.error(&fields.cursor_at("user"), "`user` must not have a colon in it", None);
            }
            Some(BulkLogin::Basic { user: user.into(), password: password.unwrap_or_default() })
        }
        (None, Some(_), None) => {
            fields.require("user", "`password` needs a `user`", None);
            None
        }
        (None, None, None) => None,
    }
}

/// Where names come from, beside the names themselves.
pub(crate) struct NameSources {
    pub(crate) allow_record_attributes: Vec<String>,
    pub(crate) max_indices: u32,
}

/// `allow_record_attributes` and `max_indices`.
pub(crate) fn name_sources<'t>(
    fields: &mut FieldReader<'_, '_>,
    templates: impl IntoIterator<Item = &'t NameTemplate>,
) -> NameSources {
    NameSources {
        allow_record_attributes: allow_record_attributes(fields, templates),
        max_indices: number(fields, "max_indices", DEFAULT_MAX_INDICES, 100_000),
    }
}

/// A number from 1 to `most`.
pub(crate) fn number(fields: &mut FieldReader<'_, '_>, name: &'static str, default: u32, most: u32) -> u32 {
    let number = fields.get(name, |at, report| scalar::integer_in_range(at, report, 1, most.into()));
    number.and_then(|value| value.try_into().ok()).unwrap_or(default)
}

/// `flush`: `bytes` is the size of a bulk request. Requests wait in the queue and not here.
pub(crate) fn max_bulk_bytes(fields: &mut FieldReader<'_, '_>) -> u32 {
    let Some(at) = fields.find("flush") else { return DEFAULT_BULK_BYTES };
    let mut flush = FieldReader::new(&at, fields.report);
    let bytes = number(&mut flush, "bytes", DEFAULT_BULK_BYTES, MAX_BULK_BYTES);
    flush.warn_ineffective(
        "interval",
        "the queue decides when a batch is sent: set `sending_queue.batch`",
        scalar::duration,
    );
    flush.finish();
    bytes
}

/// `document_ids`
pub(crate) fn document_ids(fields: &mut FieldReader<'_, '_>) -> DocumentIds {
    fields.get_or("document_ids", DocumentIds::default(), |at, report| scalar::keyword(at, report, &DOCUMENT_IDS))
}

/// `mapping`: the mode, and what happens to dots. In ECS keys are nested unless the settings say otherwise.
pub(crate) fn mapping(fields: &mut FieldReader<'_, '_>, default: MappingMode) -> (MappingMode, Dedot) {
    let Some(at) = fields.find("mapping") else { return (default, default_dedot(default)) };
    let mut mapping = FieldReader::new(&at, fields.report);
    let mode = mapping.get_or("mode", default, |at, report| scalar::keyword(at, report, &MODES));
    let dedot = mapping.get_or("dedot", default_dedot(mode), dedot);
    mapping.accept_without_effect(&["dedup"], scalar::boolean);
    mapping.accept_without_effect(&["allowed_modes"], scalar::texts);
    mapping.unsupported(&["fields", "file", "timestamp_field", "unix_timestamp"]);
    mapping.finish();
    (mode, dedot)
}

fn default_dedot(mode: MappingMode) -> Dedot {
    if mode == MappingMode::Ecs { Dedot::Nested } else { Dedot::None }
}

/// A kind of dedotting, or true for nested objects as in the Collector.
pub(crate) fn dedot(at: &Cursor<'_>, report: &DecodeReport) -> Option<Dedot> {
    if matches!(at.node.value, NodeValue::Bool(_)) {
        return scalar::boolean(at, report).map(|is_on| if is_on { Dedot::Nested } else { Dedot::None });
    }
    scalar::keyword(at, report, &DEDOTS)
}
