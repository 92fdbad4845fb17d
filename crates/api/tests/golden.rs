//! Golden tests of the collectors' documents: `golden/NAME.in.yaml` becomes `golden/NAME.yaml`, which
//! `UPDATE_GOLDEN=1` rewrites.
//!
//! The collector accepts every document without a warning.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{collections::BTreeMap, fmt::Write as _, fs, path::PathBuf};

use jiff::Timestamp;
use kube::core::ObjectMeta;
use kubewake_api::{
    CollectorConfigs, CollectorSettings, ReferencedValue, RenderedDocument, ResolvedReferences, TelemetryPipeline,
    ValidPipeline, ValueReference, render,
    v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline},
    validate,
};
use kubewake_config::{SecretString, load};
use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;

/// Compares the documents of a case.
fn case(name: &str) {
    let path = |ending: &str| PathBuf::from(format!("{}/tests/golden/{name}.{ending}", env!("CARGO_MANIFEST_DIR")));
    let (pipelines, settings) = read(&fs::read_to_string(path("in.yaml")).unwrap());
    let layer = render(&pipelines, &settings).unwrap();
    let mut reversed = pipelines;
    reversed.reverse();
    assert_eq!(layer, render(&reversed, &settings).unwrap(), "the order does not matter");
    for document in layer.documents() {
        let loaded = load(&document.yaml, &layer.sources());
        let loaded = loaded.unwrap_or_else(|errors| panic!("{name}: {errors}\n{}", document.yaml));
        assert_eq!(loaded.warnings, [], "{name}");
    }
    let made = shown(&layer);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path("yaml"), &made).unwrap();
    }
    let golden = fs::read_to_string(path("yaml")).unwrap_or_default();
    assert!(golden == made, "{name}: not as in {}:\n{made}", path("yaml").display());
}

fn shown(layer: &CollectorConfigs) -> String {
    let mut text = String::new();
    let documents = [("gateway", &layer.gateway), ("sticky", &layer.sticky), ("agent", &layer.agent)];
    for (name, document) in documents.iter().filter_map(|(name, document)| Some((name, document.as_ref()?))) {
        let RenderedDocument { yaml, .. } = document;
        write!(text, "# {name}\n{yaml}---\n").unwrap();
    }
    show_keys(&mut text, "# the keys of the Secret", &layer.secrets);
    if layer.agent.is_some() {
        show_keys(&mut text, "# the keys of the Secret of the agents", &layer.agent_secrets);
    }
    text
}

fn show_keys(text: &mut String, title: &str, secrets: &BTreeMap<String, SecretString>) {
    writeln!(text, "{title}").unwrap();
    for (key, value) in secrets {
        let value = value.reveal().lines().next().unwrap_or_default();
        writeln!(text, "{key}: {}", serde_json::to_string(value).unwrap()).unwrap();
    }
}

/// Parses the resources of a file, all at generation 2.
fn read(text: &str) -> (Vec<ValidPipeline>, CollectorSettings) {
    let mut settings = CollectorSettings::new("kubewake-system");
    let mut pipelines = Vec::new();
    for value in serde_saphyr::from_multiple::<Value>(text).unwrap() {
        let pipeline = match value["kind"].as_str().unwrap() {
            "TracePipeline" => TelemetryPipeline::from(&stored::<TracePipeline>(value, |one| &mut one.metadata)),
            "LogPipeline" => TelemetryPipeline::from(&stored::<LogPipeline>(value, |one| &mut one.metadata)),
            "MetricPipeline" => TelemetryPipeline::from(&stored::<MetricPipeline>(value, |one| &mut one.metadata)),
            _ => {
                let telemetry: Telemetry = serde_json::from_value(value).unwrap();
                settings = CollectorSettings::from_spec(&telemetry.spec, "kubewake-system").unwrap();
                continue;
            }
        };
        let pair = Pair::new();
        let found = pipeline.references().into_iter().map(|reference| (reference.clone(), pair.find(&reference)));
        pipelines.push(validate(&pipeline, &found.collect(), Timestamp::now()).unwrap());
    }
    (pipelines, settings)
}

fn stored<K: serde::de::DeserializeOwned>(value: Value, metadata: impl Fn(&mut K) -> &mut ObjectMeta) -> K {
    let mut object: K = serde_json::from_value(value).unwrap();
    metadata(&mut object).uid = Some("5f0c1a2b-0000-0000-0000-000000000000".into());
    metadata(&mut object).generation = Some(2);
    object
}

/// A certificate and its key.
struct Pair {
    cert: String,
    key: String,
}

impl Pair {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new(["backend.internal".to_owned()]).unwrap().self_signed(&key).unwrap();
        Self { cert: cert.pem(), key: key.serialize_pem() }
    }

    /// Resolves references to values at revision 77.
    fn find(&self, reference: &ValueReference) -> ReferencedValue {
        let text = match reference.key.as_str() {
            "ca.crt" | "tls.crt" => &self.cert,
            "tls.key" => &self.key,
            "endpoint" => "https://backend.example.com:4317\n",
            "url" => "https://backend.example.com/otlp?key=$a",
            _ => "p${env:POD_IP}$$\"word",
        };
        ReferencedValue::text(text, "77")
    }
}

#[test]
fn the_smallest_pipeline() {
    case("smallest");
}

#[test]
fn credentials_from_everywhere() {
    case("credentials");
}

#[test]
fn pipelines_that_select_and_drop() {
    case("selected");
}

#[test]
fn pipelines_that_sample() {
    case("sampled");
}

#[test]
fn pipelines_that_read_logs_of_containers() {
    case("agents");
}

#[test]
fn pipelines_to_other_backends() {
    case("backends");
}

#[test]
fn receiver_of_logs_stays_while_pipelines_come_go_and_change_what_they_select() {
    let valid = |name: &str, runtime: Value| {
        let spec = serde_json::json!({
            "input": {"otlp": {"enabled": false}, "runtime": runtime},
            "output": {"otlp": {"endpoint": {"value": "backend:4317"}}},
        });
        let resource = LogPipeline::new(name, serde_json::from_value(spec).unwrap());
        let pipeline = TelemetryPipeline::from(&resource);
        validate(&pipeline, &ResolvedReferences::new(), Timestamp::now()).unwrap()
    };
    let receivers = |pipelines: &[ValidPipeline]| {
        let layer = render(pipelines, &CollectorSettings::new("kubewake-system")).unwrap();
        assert!(layer.gateway.is_none() && layer.secrets.is_empty());
        let document: Value = serde_saphyr::from_str(&layer.agent.unwrap().yaml).unwrap();
        document["receivers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    let all = valid("all", serde_json::json!({}));
    let some = valid("some", serde_json::json!({"namespaces": {"include": ["shop"]}}));
    assert_eq!(receivers(std::slice::from_ref(&all)), ["file_log/pods"]);
    assert_eq!(receivers(std::slice::from_ref(&some)), ["file_log/pods"]);
    assert_eq!(receivers(&[all.clone(), some]), ["file_log/pods"]);
    let plain = valid("plain", serde_json::json!({"parse": {"json": false}, "multiline": "none"}));
    let receivers = receivers(&[all, plain]);
    assert!(receivers.len() == 2 && receivers.contains(&"file_log/pods".to_owned()), "{receivers:?}");
}

#[test]
fn defaults_and_what_overrides_them() {
    case("settings");
}

#[test]
fn a_key_of_the_secret_names_what_is_in_it() {
    let spec = serde_json::from_value(serde_json::json!({"output": {"otlp": {
        "endpoint": {"value": "backend:4317"},
        "headers": [
            {"name": "x-one", "valueFrom": {"secretKeyRef": {"name": "s", "namespace": "n", "key": "one"}}},
            {"name": "x-two", "valueFrom": {"secretKeyRef": {"name": "t", "namespace": "n", "key": "two"}}},
        ],
    }}}));
    let mut resource = TracePipeline::new("backend", spec.unwrap());
    let layer = |resource: &TracePipeline, revisions: [&str; 2]| {
        let pipeline = TelemetryPipeline::from(resource);
        let references = pipeline.references();
        let found = references
            .into_iter()
            .zip(revisions)
            .map(|(one, revision)| (one, ReferencedValue::text(revision, revision)));
        render(
            &[validate(&pipeline, &found.collect(), Timestamp::now()).unwrap()],
            &CollectorSettings::new("kubewake-system"),
        )
        .unwrap()
    };
    let keys = |layer: &CollectorConfigs| layer.secrets.keys().cloned().collect::<Vec<_>>();
    let first = layer(&resource, ["1", "2"]);
    assert_eq!(first, layer(&resource, ["1", "2"]));
    // One Secret has changed: its key and the document change, the other key stays.
    let rotated = layer(&resource, ["3", "2"]);
    assert!(keys(&rotated)[0] != keys(&first)[0] && keys(&rotated)[1] == keys(&first)[1]);
    assert!(rotated.gateway.as_ref().unwrap().hash != first.gateway.as_ref().unwrap().hash);
    // The headers have changed places, or another resource has taken the name: a key never gets another value.
    resource.metadata.generation = Some(2);
    let edited = layer(&resource, ["1", "2"]);
    resource.metadata.uid = Some("another".into());
    let another = layer(&resource, ["1", "2"]);
    for (one, other) in [(&first, &edited), (&edited, &another), (&first, &another)] {
        assert!(keys(one).iter().all(|key| !other.secrets.contains_key(key)));
    }
}

#[test]
fn a_dollar_in_a_path_is_a_dollar() {
    let spec = serde_json::json!({"output": {"otlp": {
        "protocol": "http", "endpoint": {"value": "http://backend:4318"}, "path": "/$tenant/${env:POD_IP}",
    }}});
    let pipeline = TelemetryPipeline::from(&TracePipeline::new("backend", serde_json::from_value(spec).unwrap()));
    let valid = validate(&pipeline, &ResolvedReferences::new(), Timestamp::now()).unwrap();
    let layer = render(&[valid], &CollectorSettings::new("kubewake-system")).unwrap();
    let document = layer.gateway.as_ref().unwrap();
    load(&document.yaml, &layer.sources()).unwrap();
    assert!(document.yaml.contains("http://backend:4318/$$tenant/$${env:POD_IP}"), "{}", document.yaml);
}
