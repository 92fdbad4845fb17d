mod delivery;
mod documents;

use std::{io::Read, sync::Arc};

use kubewake_config::{
    FixedSources, load,
    model::{ExporterConfig, HttpExporter},
};
use serde_json::Value;

use super::*;
use crate::{
    exporter::log_testing::{TIME, attributes, batch, list, map, namespace, number, record, resource, text},
    net::testing::{Backend, Reply, Seen, Speaks},
};

fn settings(backend: &Backend, more: &str) -> HttpExporter {
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\n\
         exporters: {{http: {{endpoint: 'http://{}/in', compression: none{more}}}}}\n\
         service: {{pipelines: {{logs: {{receivers: [otlp], exporters: [http]}}}}}}",
        backend.address
    );
    let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    match loaded.document.exporters.into_values().next() {
        Some(ExporterConfig::Http(exporter)) => *exporter,
        other => panic!("{other:?}"),
    }
}

/// An exporter with these settings beside its endpoint, each after a comma.
fn exporter(backend: &Backend, more: &str) -> Arc<dyn Exporter> {
    build(&settings(backend, more), None).unwrap().exporter
}

async fn answering(answer: impl Fn(&Seen, usize) -> u16 + Send + Sync + 'static) -> Backend {
    Backend::start(Speaks::Http1, None, move |seen, before| Reply::http(answer(seen, before), &[], "said")).await
}

async fn taking() -> Backend {
    answering(|_, _| 200).await
}

/// The documents of all requests that were answered with a success.
fn documents(seen: &[Seen]) -> Vec<Value> {
    seen.iter().flat_map(|seen| serde_json::from_slice::<Vec<Value>>(&seen.body).unwrap()).collect()
}

/// The bodies of all documents.
fn messages(seen: &[Seen]) -> Vec<String> {
    documents(seen).iter().map(|document| document["message"].as_str().unwrap().to_owned()).collect()
}
