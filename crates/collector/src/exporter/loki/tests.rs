mod attributes;
mod delivery;
mod limits;
mod properties;
mod strict_loki;

use std::sync::Arc;

use kubewake_config::{
    FixedSources, load,
    model::{ExporterConfig, LokiExporter},
};
use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs},
};

use super::*;
use crate::{
    core::{Part, SendError},
    exporter::log_testing::{TIME, attributes, batch, list, map, namespace, number, record, resource, text},
};
use strict_loki::{Limits, Line, Manner, StrictLoki};

fn settings(url: &str, more: &str) -> LokiExporter {
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nexporters: {{loki: {{endpoint: '{url}'{more}}}}}\n\
         service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [loki]}}}}}}"
    );
    let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    match loaded.document.exporters.into_values().next() {
        Some(ExporterConfig::Loki(exporter)) => *exporter,
        other => panic!("{other:?}"),
    }
}

/// An exporter with these settings beside its endpoint, each after a comma.
fn exporter(loki: &StrictLoki, more: &str) -> Arc<dyn Exporter> {
    build(&settings(&loki.url(), more), None).unwrap().exporter
}

/// Sends a batch, and what is left of it again, until nothing is left; returns the errors and the last result.
async fn deliver(exporter: &dyn Exporter, batch: Batch) -> (Vec<SendError>, SendSuccess) {
    let mut rest = batch;
    let mut errors = Vec::new();
    loop {
        match exporter.send(&rest).await {
            Ok(success) => return (errors, success),
            Err(mut error) => {
                assert!(error.retryable && errors.len() < 20, "{error}");
                if let Some(partial) = error.partial.take() {
                    rest = partial.rest;
                }
                errors.push(error);
            }
        }
    }
}

fn line(after: u64, text: &str) -> Line {
    Line { time: TIME + after, text: text.into(), metadata: Default::default() }
}
