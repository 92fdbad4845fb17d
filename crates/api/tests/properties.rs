//! Properties of arbitrary resources within the schema: validating and rendering never fails, the collector
//! accepts the documents of valid ones, and no secret is where it could be seen.
//!
//! The schema's CEL rules are not applied, so that more is tried than an API server would accept.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{cell::Cell, sync::LazyLock};

use fastrand::Rng;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::core::ObjectMeta;
use kubewake_api::{
    CollectorSettings, ReferencedValue, ResolvedReferences, TelemetryPipeline, ValidPipeline, crds, render,
    v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline},
    validate, validate_spec,
};
use kubewake_config::load;
use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Map, Value, json};

/// A marker that must not be visible anywhere.
const PLANTED: &str = "PLANTED";

/// A certificate and its key, and the key of another one.
static PEM: LazyLock<[String; 3]> = LazyLock::new(|| {
    let key = KeyPair::generate().unwrap();
    let other = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["backend".to_owned()]).unwrap().self_signed(&key).unwrap();
    [certificate.pem(), key.serialize_pem(), other.serialize_pem()]
});

/// Generates values that a schema allows.
struct Maker {
    rng: Rng,
    /// The probability of nonsensical values, in percent.
    folly: u32,
}

impl Maker {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.rng.usize(..from.len())]
    }

    fn is_foolish(&mut self) -> bool {
        self.rng.u32(..100) < self.folly
    }

    fn make(&mut self, path: &str, schema: &JSONSchemaProps) -> Value {
        if let Some(words) = &schema.enum_ {
            return words[self.rng.usize(..words.len())].0.clone();
        }
        match schema.type_.as_deref() {
            Some("object") => self.object(path, schema),
            Some("array") => self.array(path, schema),
            Some("boolean") => json!(self.rng.u8(..4) == 0),
            Some("integer") => json!(self.integer(path, schema)),
            Some("number") => json!(self.rng.f64() * 100.0),
            // A quantity, which may be a number or a text.
            None => json!(["100m", "1", "512Mi", "2Gi"][self.rng.usize(..4)]),
            _ => Value::String(self.text(path, schema)),
        }
    }

    fn object(&mut self, path: &str, schema: &JSONSchemaProps) -> Value {
        let mut object = Map::new();
        let properties = schema.properties.iter().flatten();
        let required = schema.required.clone().unwrap_or_default();
        let exclusive = schema.x_kubernetes_validations.iter().flatten().any(|rule| rule.rule.contains("exists_one"));
        let names: Vec<&String> = schema.properties.iter().flatten().map(|(name, _)| name).collect();
        let optional: Vec<&&String> = names.iter().filter(|name| !required.contains(**name)).collect();
        let chosen = (!optional.is_empty()).then(|| optional[self.rng.usize(..optional.len().max(1))]);
        for (name, property) in properties {
            let wanted = match (required.contains(name), exclusive && !self.is_foolish()) {
                (true, _) => true,
                (false, true) => chosen.is_some_and(|chosen| **chosen == *name),
                (false, false) => self.rng.u8(..3) == 0,
            };
            if wanted {
                object.insert(name.clone(), self.make(&format!("{path}.{name}"), property));
            }
        }
        if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
            for key in ["cpu", "memory", "audience"].iter().take(self.rng.usize(..3)) {
                object.insert((*key).to_owned(), self.make(&format!("{path}.x"), value));
            }
        }
        if !self.is_foolish() {
            self.mend(path, schema, &mut object);
        }
        Value::Object(object)
    }

    /// Makes fields of an object consistent with each other.
    fn mend(&mut self, path: &str, schema: &JSONSchemaProps, object: &mut Map<String, Value>) {
        let property = |name: &str| schema.properties.as_ref().and_then(|properties| properties.get(name));
        let pairs = [("value", "valueFrom"), ("secretKeyRef", "configMapKeyRef"), ("include", "exclude")];
        for (one, other) in pairs.into_iter().filter(|(_, other)| property(other).is_some()) {
            if object.contains_key(other) {
                object.remove(one);
            } else if !object.contains_key(one) && one != "include" {
                object.insert(one.into(), self.make(&format!("{path}.{one}"), property(one).unwrap()));
            }
        }
        for name in ["otlp", "cert", "key"].into_iter().filter(|name| property(name).is_some()) {
            let is_wanted = name != "otlp" && (object.contains_key("cert") || object.contains_key("key"));
            if (path.ends_with(".output") || is_wanted) && property("name").is_none() && !object.contains_key(name) {
                object.insert(name.into(), self.make(&format!("{path}.{name}"), property(name).unwrap()));
            }
        }
        if property("apiKey").is_some() && object.contains_key("authentication") {
            object.remove("apiKey");
        }
        if property("dataStream").is_some() && object.contains_key("index") {
            object.remove("dataStream");
        }
        if object.get("json") == Some(&json!(false)) {
            *object = Map::from_iter([("json".to_owned(), json!(false))]);
        }
        if object.contains_key("include") {
            object.remove("system");
        }
        if object.get("protocol") != Some(&json!("http")) {
            object.remove("path");
        }
        if path.contains(".filter.") && property("services").is_some() {
            if let Some(severity) = object.remove("severityBelow") {
                *object = Map::from_iter([("severityBelow".to_owned(), severity)]);
            } else if object.keys().all(|name| name == "matchType") {
                object.insert("services".into(), json!(["a$b"]));
            }
        }
        if let Some(first) = object.get("compositeSubPolicy").and_then(|parts| parts.get(0)) {
            let share = json!({"policy": first["name"], "percent": 50});
            object.insert("rateAllocation".into(), json!([share]));
        }
    }

    fn array(&mut self, path: &str, schema: &JSONSchemaProps) -> Value {
        let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items else { return json!([]) };
        let least = usize::try_from(schema.min_items.unwrap_or(0)).unwrap();
        let count = least.max(self.rng.usize(..3));
        let items: Vec<Value> = (0..count).map(|index| self.make(&format!("{path}.{index}"), item)).collect();
        Value::Array(items)
    }

    fn integer(&mut self, path: &str, schema: &JSONSchemaProps) -> i64 {
        if !self.is_foolish() {
            match path.rsplit('.').next().unwrap_or_default() {
                "minSizeBytes" | "thresholdMs" | "minSpans" | "minValue" => return self.rng.i64(1..1000),
                "maxSizeBytes" | "upperThresholdMs" | "maxSpans" | "maxValue" => return self.rng.i64(1000..2000),
                "min" => return 3,
                "max" => return 5,
                _ => {}
            }
        }
        let least = schema.minimum.unwrap_or(-1e9) as i64;
        let most = schema.maximum.unwrap_or(1e9) as i64;
        match self.rng.u8(..6) {
            0 => least,
            1 => most,
            _ => self.rng.i64(least..=most.min(least.saturating_add(1_000_000))),
        }
    }

    fn text(&mut self, path: &str, schema: &JSONSchemaProps) -> String {
        const ODD: &[&str] =
            &["", " ", "$", "${env:POD_IP}", "a\nb", "[", "(", "\"", "null", "0x1", "ä€", "x", "*", "-1s", "s"];
        let name = path.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
        if self.is_foolish() {
            let most = usize::try_from(schema.max_length.unwrap_or(64)).unwrap();
            return format!("{}{}", self.secret_at(path), self.pick(ODD)).chars().take(most).collect();
        }
        match name {
            "value" if path.contains(".endpoint.") && !path.contains(".otlp.") => {
                self.pick(&["https://backend", "http://backend:3100/base", "https://[::1]:9200/"]).into()
            }
            "value" if path.contains(".endpoint.") => {
                self.pick(&["backend:4317", "https://backend:4317", "https://[::1]:4318", "http://backend:80/"]).into()
            }
            "value" if path.contains(".tokenURL.") => format!("https://tokens/{PLANTED}"),
            "value" if path.contains(".ca.") || path.contains(".cert.") => PEM[0].clone(),
            "value" if path.contains("tls.key.") => PEM[1].clone(),
            "value" => format!("{}$v{}", self.secret_at(path), self.rng.u8(..)),
            "initialInterval" => self.pick(&["0s", "1s", "250ms"]).into(),
            _ if name.ends_with("Interval") || name.ends_with("Timeout") || name.ends_with("Wait") => {
                self.pick(&["1s", "1m30s", "1.5h"]).into()
            }
            "timeout" | "maxElapsedTime" | "decisionWaitAfterRootReceived" => self.pick(&["0s", "5s", "2h"]).into(),
            "path" => self.pick(&["/v1/traces", "x/y"]).into(),
            "include" | "exclude" | "namespace" => self.pick(&["default", "shop", "kube-system"]).into(),
            "linkedLogDirectories" => "/var/lib/docker/containers".into(),
            "x" | "index" | "tenant" | "dataset" => {
                self.pick(&["a", "%{k8s.namespace.name}-x", "%{team:-none}"]).into()
            }
            _ => format!("{}{}", self.pick(&["a", "shop", "x-y"]), self.rng.u8(..)),
        }
    }

    /// The marker, in fields that hold secrets.
    fn secret_at(&self, path: &str) -> &'static str {
        let is_open = path.contains(".filter.") || path.contains(".endpoint.value") || !path.ends_with(".value");
        if is_open { "" } else { PLANTED }
    }

    /// The value of a reference.
    fn found(&mut self, key: &str, wanted: &str) -> ReferencedValue {
        if self.is_foolish() {
            let odd = [
                ReferencedValue::NoObject,
                ReferencedValue::NoKey,
                ReferencedValue::NotText,
                ReferencedValue::Unreadable("forbidden".into()),
            ];
            let text = [PLANTED, "", "PLANTED\u{7}", "PLANTED://x", "-----BEGIN CERTIFICATE-----\nPLANTED", &PEM[2]];
            return match self.rng.usize(..10) {
                index @ 0..4 => odd[index].clone(),
                index => ReferencedValue::text(text[index - 4], "r:7/é"),
            };
        }
        let text = match wanted {
            "endpoint" => "https://PLANTED.example:4317\n".to_owned(),
            "certificate" => PEM[0].clone(),
            "key" => PEM[1].clone(),
            _ => format!("{PLANTED}${{env:POD_IP}}{key}\n"),
        };
        ReferencedValue::text(text, "77")
    }
}

fn spec_schema(kind: &str) -> JSONSchemaProps {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    let schema = crd.spec.versions[0].schema.clone().unwrap().open_api_v3_schema.unwrap();
    schema.properties.unwrap()["spec"].clone()
}

static SCHEMAS: LazyLock<[JSONSchemaProps; 4]> =
    LazyLock::new(|| ["TracePipeline", "LogPipeline", "MetricPipeline", "Telemetry"].map(spec_schema));

fn pipeline(maker: &mut Maker, which: usize, name: &str) -> (TelemetryPipeline, Value) {
    let spec = maker.make("spec", &SCHEMAS[which]);
    let object = json!({"metadata": ObjectMeta { name: Some(name.into()), uid: Some("5f0c1a2b-0".into()), generation: Some(2), ..ObjectMeta::default() },
        "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "x", "spec": spec});
    let pipeline = match which {
        0 => TelemetryPipeline::from(&serde_json::from_value::<TracePipeline>(object.clone()).unwrap()),
        1 => TelemetryPipeline::from(&serde_json::from_value::<LogPipeline>(object.clone()).unwrap()),
        _ => TelemetryPipeline::from(&serde_json::from_value::<MetricPipeline>(object.clone()).unwrap()),
    };
    (pipeline, object)
}

/// Resolves all references of a pipeline, by their purpose.
fn resolved(maker: &mut Maker, pipeline: &TelemetryPipeline) -> ResolvedReferences {
    let otlp = pipeline.destinations.first();
    let oauth2 = otlp.and_then(|otlp| otlp.authentication.as_ref()).and_then(|given| given.oauth2.as_ref());
    let endpoints = [otlp.map(|otlp| &otlp.endpoint), oauth2.map(|oauth2| &oauth2.token_url)];
    let tls: Vec<_> = [otlp.and_then(|otlp| otlp.tls.as_ref()), oauth2.and_then(|oauth2| oauth2.tls.as_ref())]
        .into_iter()
        .flatten()
        .collect();
    let is = |values: &[Option<&kubewake_api::v1alpha1::ValueType>], reference: &kubewake_api::ValueReference| {
        values.iter().flatten().any(|value| kubewake_api::ValueReference::from_value(value).as_ref() == Some(reference))
    };
    let mut found = ResolvedReferences::new();
    for reference in pipeline.references() {
        let certificates: Vec<_> = tls.iter().flat_map(|tls| [tls.ca.as_ref(), tls.cert.as_ref()]).collect();
        let keys: Vec<_> = tls.iter().map(|tls| tls.key.as_ref()).collect();
        let wanted = match &reference {
            one if is(&endpoints, one) => "endpoint",
            one if is(&certificates, one) => "certificate",
            one if is(&keys, one) => "key",
            _ => "credential",
        };
        let text = maker.found(&reference.key, wanted);
        found.insert(reference, text);
    }
    found
}

fn assert_hidden(text: &str, what: &str) {
    let body = |pem: &String| pem.lines().nth(1).unwrap().to_owned();
    assert!(!text.contains(PLANTED), "a secret in {what}: {text}");
    assert!(!PEM.iter().any(|pem| text.contains(&body(pem))), "a certificate or key in {what}: {text}");
}

fn checked(maker: &mut Maker, which: usize, name: &str) -> Option<ValidPipeline> {
    let (pipeline, _) = pipeline(maker, which, name);
    assert_hidden(&format!("{pipeline:?}"), "Debug");
    let now = Timestamp::now();
    let review = validate_spec(&pipeline, now);
    let resolved = resolved(maker, &pipeline);
    let result = validate(&pipeline, &resolved, now);
    let warnings = result.as_ref().map(|valid| valid.warnings().to_vec()).unwrap_or_default();
    let problems = result.as_ref().err().cloned().unwrap_or_default();
    assert!(result.is_ok() || !problems.is_empty(), "refused without a reason");
    for problem in review.problems.iter().chain(&review.warnings).chain(&problems).chain(&warnings) {
        assert_hidden(&problem.to_string(), "a problem");
    }
    // Problems of the resource alone are problems in the cluster, too.
    assert!(review.problems.iter().all(|problem| problems.contains(problem)), "{:?} {problems:?}", review.problems);
    let valid = result.ok()?;
    assert_hidden(&format!("{valid:?} {}", valid.backend()), "Debug");
    Some(valid)
}

fn settings(maker: &mut Maker) -> CollectorSettings {
    let spec = maker.make("spec", &SCHEMAS[3]);
    let telemetry: Telemetry =
        serde_json::from_value(json!({"apiVersion": "", "kind": "", "metadata": {}, "spec": spec})).unwrap();
    CollectorSettings::from_spec(&telemetry.spec, "kubewake-system")
        .unwrap_or_else(|_| CollectorSettings::new("kubewake-system"))
}

/// Tries three pipelines of any kind, and the documents of the valid ones.
fn tried(seed: u64, folly: u32) -> usize {
    let mut maker = Maker { rng: Rng::with_seed(seed), folly };
    let names = ["a", "b.c", "d-e"];
    let made = names.map(|name| {
        let which = maker.rng.usize(..3);
        checked(&mut maker, which, name)
    });
    let valid: Vec<ValidPipeline> = made.into_iter().flatten().collect();
    let layer = render(&valid, &settings(&mut maker)).unwrap();
    for document in layer.documents() {
        assert_hidden(&document.yaml, "a document");
        if let Err(errors) = load(&document.yaml, &layer.sources()) {
            panic!("{errors}\n{}", document.yaml);
        }
    }
    let fits = |key: &String| {
        key.len() <= 253 && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
    };
    assert!(layer.secrets.keys().chain(layer.agent_secrets.keys()).all(fits), "{:?}", layer.secrets);
    let has = |reads: fn(&ValidPipeline) -> bool| valid.iter().any(|valid| valid.is_rendered() && reads(valid));
    assert_eq!(layer.gateway.is_some(), has(ValidPipeline::receives_otlp));
    assert_eq!(layer.agent.is_some(), has(ValidPipeline::reads_logs));
    valid.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_the_schema_allows_is_refused_or_rendered(seed: u64, folly in 0_u32..20) {
        tried(seed, folly);
    }
}

#[test]
fn what_makes_sense_is_mostly_valid() {
    let valid = Cell::new(0);
    (0..200).for_each(|seed| valid.set(valid.get() + tried(seed, 0)));
    assert!(valid.get() > 150, "only {} of 600 were valid, so that little was tried", valid.get());
}
