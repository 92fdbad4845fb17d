//! Files of a document are where the sources locate them.

#![allow(clippy::unwrap_used)]

use std::{
    io,
    path::{Path, PathBuf},
};

use kubewake_config::{
    ConfigSources, LoadedDocument, load,
    model::{ExporterConfig, PemSource, ProcessorConfig},
};

/// All files are in a directory.
struct RelocatedSources;

impl ConfigSources for RelocatedSources {
    fn env(&self, _name: &str) -> Option<String> {
        None
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        if path == Path::new("/root/etc/endpoint") {
            Ok("backend:4317".to_owned())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn locate(&self, path: &Path) -> PathBuf {
        Path::new("/root").join(path.strip_prefix("/").unwrap_or(path))
    }
}

const DOCUMENT: &str = r#"
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}}}}
processors: {k8s_attributes: {}}
exporters:
  otlp: {endpoint: "${file:/etc/endpoint}", tls: {ca_file: /etc/ca.crt}}
  file: {path: /data/spans.json}
service:
  pipelines: {traces: {receivers: [otlp], processors: [k8s_attributes], exporters: [otlp, file]}}
"#;

fn exporter<'a>(loaded: &'a LoadedDocument, name: &str) -> &'a ExporterConfig {
    loaded.document.exporters.iter().find(|(id, _)| id.to_string() == name).unwrap().1
}

#[test]
fn paths_of_a_loaded_document_are_located() {
    let loaded = load(DOCUMENT, &RelocatedSources).unwrap();
    assert_eq!(loaded.files.iter().collect::<Vec<_>>(), [Path::new("/root/etc/endpoint")]);
    let ExporterConfig::OtlpGrpc(otlp) = exporter(&loaded, "otlp") else { panic!("another exporter") };
    assert_eq!(otlp.endpoint.to_string(), "backend:4317");
    assert_eq!(otlp.tls.ca, Some(PemSource::File("/root/etc/ca.crt".into())));
    let ExporterConfig::File(file) = exporter(&loaded, "file") else { panic!("another exporter") };
    assert_eq!(file.path, Path::new("/root/data/spans.json"));
    let Some(ProcessorConfig::KubernetesAttributes(attributes)) = loaded.document.processors.values().next() else {
        panic!("another processor")
    };
    let token = "/root/var/run/secrets/kubernetes.io/serviceaccount/token";
    assert_eq!(attributes.service_account.token(), Path::new(token));
}
