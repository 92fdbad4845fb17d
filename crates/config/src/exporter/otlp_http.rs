//! `otlphttp`, `otlp_http`.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use super::HttpExportConfig;
use crate::{
    ComponentId, ConfigText,
    component::{ComponentSettings, ExporterSettings, PipelinePlace, PlaceProblem},
    decode::{Cursor, DecodeReport, FieldReader, scalar},
    encode::{self, YamlMap},
    network::url,
};

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BodyEncoding {
    #[default]
    Proto,
    Json,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OtlpHttpExporter {
    /// The whole URL for traces; `None` if neither `endpoint` nor `traces_endpoint` is set.
    pub traces_url: Option<ConfigText>,
    /// The whole URL for metrics.
    pub metrics_url: Option<ConfigText>,
    /// The whole URL for logs.
    pub logs_url: Option<ConfigText>,
    pub encoding: BodyEncoding,
    pub http: HttpExportConfig,
}

const ENCODINGS: [(&str, BodyEncoding); 2] = [("proto", BodyEncoding::Proto), ("json", BodyEncoding::Json)];

impl ComponentSettings for OtlpHttpExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        let mut fields = FieldReader::new(at, report);
        let urls = SignalUrls::read(&mut fields);
        let exporter = OtlpHttpExporter {
            traces_url: urls.traces.map(Into::into),
            metrics_url: urls.metrics.map(Into::into),
            logs_url: urls.logs.map(Into::into),
            encoding: fields
                .get_or("encoding", BodyEncoding::Proto, |at, report| scalar::keyword(at, report, &ENCODINGS)),
            http: HttpExportConfig::read(&mut fields),
        };
        fields.finish();
        Some(exporter)
    }

    fn encode(&self) -> YamlMap {
        let map = YamlMap::default()
            .with_optional("traces_endpoint", self.traces_url.as_ref())
            .with_optional("metrics_endpoint", self.metrics_url.as_ref())
            .with_optional("logs_endpoint", self.logs_url.as_ref())
            .with_changed("encoding", encode::keyword(&ENCODINGS, &self.encoding), "proto");
        self.http.encode(map)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.http.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.http.auth_extension_ids()
    }
}

impl ExporterSettings for OtlpHttpExporter {
    fn signals(&self) -> &'static [Signal] {
        &Signal::ALL
    }

    /// Refuses an exporter that has endpoints for other signals only.
    fn check_place(&self, place: &PipelinePlace<'_>) -> Vec<PlaceProblem> {
        let PipelinePlace { signal, id, .. } = place;
        // An exporter without any endpoint was reported at its definition.
        let has_urls = [&self.traces_url, &self.metrics_url, &self.logs_url].into_iter().any(Option::is_some);
        if !has_urls || self.url(*signal).is_some() {
            return Vec::new();
        }
        vec![PlaceProblem::error(
            format!("the exporter `{id}` has no endpoint for {signal}"),
            format!("set its `endpoint` or `{signal}_endpoint`"),
        )]
    }
}

impl OtlpHttpExporter {
    /// The whole URL for a signal.
    pub fn url(&self, signal: Signal) -> Option<&str> {
        match signal {
            Signal::Traces => self.traces_url.as_deref(),
            Signal::Metrics => self.metrics_url.as_deref(),
            Signal::Logs => self.logs_url.as_deref(),
        }
    }
}

struct SignalUrls {
    traces: Option<String>,
    metrics: Option<String>,
    logs: Option<String>,
}

const ENDPOINT_FIELDS: [&str; 5] =
    ["endpoint", "traces_endpoint", "metrics_endpoint", "logs_endpoint", "profiles_endpoint"];

impl SignalUrls {
    fn read(fields: &mut FieldReader<'_, '_>) -> Self {
        let base = fields.get("endpoint", url);
        let mut of = |signal: Signal, name| match fields.get(name, url) {
            Some(url) => Some(url),
            None => base.as_deref().map(|base| join(base, signal)),
        };
        let urls = Self {
            traces: of(Signal::Traces, "traces_endpoint"),
            metrics: of(Signal::Metrics, "metrics_endpoint"),
            logs: of(Signal::Logs, "logs_endpoint"),
        };
        fields.warn_ineffective("profiles_endpoint", "profiles are not supported by this build", url);
        let given = |name: &&str| fields.has(name) && !is_empty(&fields.cursor_at(name));
        if !ENDPOINT_FIELDS.iter().any(given) {
            let help = "set `endpoint`, such as https://backend.example.com:4318, or one endpoint for each signal";
            fields.require("endpoint", "the exporter needs at least one endpoint", Some(help.into()));
        }
        urls
    }
}

fn is_empty(at: &Cursor<'_>) -> bool {
    scalar::text(at, &DecodeReport::default()).is_some_and(|text| text.is_empty())
}

/// The URL of a signal, joined as the Collector does.
fn join(base: &str, signal: Signal) -> String {
    format!("{}/v1/{signal}", base.strip_suffix('/').unwrap_or(base))
}
