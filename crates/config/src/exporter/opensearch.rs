//! `opensearch`: logs and traces to the bulk API of OpenSearch.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use super::{
    HttpExportConfig,
    bulk_index::{
        self, BulkAction, BulkIndexConfig, BulkLogin, MappingMode, data_stream_part, dated_index, index_with_default,
    },
};
use crate::{
    ComponentId, ConfigText,
    component::{ComponentSettings, ExporterSettings, PipelinePlace, PlaceProblem},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
    name_template::NameTemplate,
    sending,
};

const ACTIONS: [(&str, BulkAction); 2] = [("create", BulkAction::Create), ("index", BulkAction::Index)];

#[derive(Clone, Debug, PartialEq)]
pub struct OpensearchExporter {
    pub bulk: BulkIndexConfig,
}

impl OpensearchExporter {
    /// An exporter to this URL of documents of this structure, with the defaults of all other settings.
    pub fn new(endpoint: ConfigText, mode: Option<MappingMode>) -> Self {
        let stream = ["default", "namespace"].map(NameTemplate::from_text);
        let bulk = BulkIndexConfig::new(endpoint, mode.unwrap_or(MappingMode::Ss4o), stream);
        Self { bulk: BulkIndexConfig { stream_prefix: "ss4o_", ..bulk } }
    }
}

impl ComponentSettings for OpensearchExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let Connection { endpoints, login, mut http } = connection(&mut fields);
        http.timeout = sending::timeout(&mut fields, HttpExportConfig::default().timeout.unwrap_or_default());
        http.retry = sending::retry(&mut fields);
        http.queue = sending::queue(&mut fields);
        let logs_index = index(&mut fields, ["logs_index", "logs_index_fallback", "logs_index_time_format"]);
        let traces_index = index(&mut fields, ["traces_index", "traces_index_fallback", "traces_index_time_format"]);
        let dataset = fields.get("dataset", |at, report| data_stream_part(at, report, false, "default"));
        let namespace = fields.get("namespace", |at, report| data_stream_part(at, report, true, "namespace"));
        let dataset = dataset.unwrap_or_else(|| NameTemplate::from_text("default"));
        let namespace = namespace.unwrap_or_else(|| NameTemplate::from_text("namespace"));
        let templates = [Some(&dataset), Some(&namespace), logs_index.as_ref(), traces_index.as_ref()];
        let names = bulk_index::name_sources(&mut fields, templates.into_iter().flatten());
        let action =
            fields.get_or("bulk_action", BulkAction::Create, |at, report| scalar::keyword(at, report, &ACTIONS));
        if action == BulkAction::Index && (logs_index.is_none() || traces_index.is_none()) {
            let help =
                "data streams take only `create`: set the index of the signal, or remove `bulk_action`".to_owned();
            report.warning(&fields.cursor_at("bulk_action"), "`index` has no effect on data streams", help);
        }
        let (mode, dedot) = bulk_index::mapping(&mut fields, MappingMode::Ss4o);
        let bulk = BulkIndexConfig {
            endpoints,
            login,
            stream_prefix: "ss4o_",
            dataset,
            namespace,
            logs_index,
            traces_index,
            allow_record_attributes: names.allow_record_attributes,
            max_indices: names.max_indices,
            action,
            require_data_stream: false,
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
        let http = self.bulk.encode_connection(YamlMap::default());
        let map = YamlMap::default().with_section("http", self.bulk.http.encode_connection(http));
        let map = self.bulk.encode_documents(map, MappingMode::Ss4o);
        let map = map.with_changed("bulk_action", encode::keyword(&ACTIONS, &self.bulk.action), "create");
        self.bulk.http.encode_sending(map)
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

impl ExporterSettings for OpensearchExporter {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Traces, Signal::Logs]
    }

    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        self.bulk.check_place(place)
    }
}

/// `http`: the connection and the credentials.
struct Connection {
    endpoints: Vec<ConfigText>,
    login: Option<BulkLogin>,
    http: HttpExportConfig,
}

fn connection(fields: &mut FieldReader<'_, '_>) -> Connection {
    let Some(at) = fields.find_even_empty("http") else {
        let help = "set `http.endpoint` to a URL, such as https://search.example.com:9200".to_owned();
        fields.require("http", "the exporter needs an `http.endpoint`", help);
        return Connection { endpoints: Vec::new(), login: None, http: HttpExportConfig::default() };
    };
    let mut http = FieldReader::new(&at, fields.report);
    for name in ["timeout", "retry_on_failure", "sending_queue"] {
        if http.has(name) {
            let message = format!("`{name}` belongs to the exporter, and not to `http`");
            http.report.error(&http.cursor_at(name), message, Some("move it one level up".into()));
        }
    }
    let connection = Connection {
        endpoints: bulk_index::endpoints(&mut http),
        login: bulk_index::login(&mut http),
        http: HttpExportConfig::read(&mut http),
    };
    http.finish();
    connection
}

/// An index with its fallback for missing attributes and its date.
fn index(fields: &mut FieldReader<'_, '_>, names: [&'static str; 3]) -> Option<NameTemplate> {
    let [name, fallback, date] = names;
    let fallback = fields.text(fallback);
    let date = fields.get(date, |at, report| {
        let text = scalar::text(at, report).filter(|text| !text.is_empty())?;
        if NameTemplate::parse(&format!("%{{+{text}}}")).is_ok() {
            return Some(text);
        }
        let help = "use yyyy, MM, dd and HH, with . - or _ between them".to_owned();
        report.error(at, format!("{} is no date that the name of an index can have", at.subject(&text)), help);
        None
    });
    let index = fields.get(name, |at, report| index_with_default(at, report, fallback.as_deref()))?;
    match date {
        Some(date) => dated_index(index, "-", &date),
        None => Some(index),
    }
}
