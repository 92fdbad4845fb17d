//! `otlphttp`, `otlp_http`.

use std::path::PathBuf;

use kubewake_otlp::Signal;

use crate::{
    ComponentId,
    component::{ComponentSettings, ExporterSettings, PipelinePlace, PlaceProblem},
    decode::{Cursor, DecodeReport, exporter},
    model::OtlpHttpExporter,
};

impl ComponentSettings for OtlpHttpExporter {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        exporter::http(at, report)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.tls.files()
    }

    fn auth_extension_ids(&self) -> Vec<&ComponentId> {
        self.auth.iter().collect()
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
