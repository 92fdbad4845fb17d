//! Problems and warnings of pipelines, with their messages.

use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::*;
use crate::{
    ReferencedValue, ValueReference,
    v1alpha1::{LogPipeline, MetricPipeline, TracePipeline},
};

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

fn traces(spec: Value) -> TelemetryPipeline {
    TelemetryPipeline::from(&TracePipeline::new("backend", serde_json::from_value(spec).unwrap()))
}

fn otlp(more: Value) -> TelemetryPipeline {
    let mut otlp = json!({"endpoint": {"value": "backend:4317"}});
    otlp.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    traces(json!({"output": {"otlp": otlp}}))
}

/// Formats each as `reason path: message`.
fn said(problems: &[SpecProblem]) -> Vec<String> {
    problems.iter().map(|problem| format!("{} {problem}", problem.reason)).collect()
}

fn refused(pipeline: &TelemetryPipeline, resolved: &ResolvedReferences) -> Vec<String> {
    said(&validate(pipeline, resolved, now()).expect_err("it was taken"))
}

fn warned(pipeline: &TelemetryPipeline, resolved: &ResolvedReferences) -> Vec<String> {
    let valid = validate(pipeline, resolved, now()).unwrap_or_else(|problems| panic!("{:?}", said(&problems)));
    said(valid.warnings())
}

#[track_caller]
fn is_refused(pipeline: &TelemetryPipeline, words: &str) {
    let problems = refused(pipeline, &ResolvedReferences::new());
    assert!(problems.len() == 1 && problems[0].contains(words), "{problems:?}");
}

fn secret(key: &str) -> Value {
    json!({"valueFrom": {"secretKeyRef": {"name": "s", "namespace": "n", "key": key}}})
}

fn secret_reference(key: &str) -> ValueReference {
    ValueReference::from_value(&crate::v1alpha1::ValueType::secret("n", "s", key)).unwrap()
}

#[test]
fn endpoints_are_refused_for_what_is_wrong_with_them() {
    let grpc = |text: &str| otlp(json!({"endpoint": {"value": text}}));
    let http = |text: &str| otlp(json!({"protocol": "http", "endpoint": {"value": text}}));
    let http_path = |path: &str| otlp(json!({"protocol": "http", "endpoint": {"value": "http://b"}, "path": path}));
    for (pipeline, words) in [
        (grpc("backend"), "EndpointInvalid spec.output.otlp.endpoint: has no port; write it as host:port"),
        (grpc("backend:0"), "has a port that is not a number from 1 to 65535"),
        (grpc("backend:99999"), "has a port that is not a number"),
        (grpc("backend:http"), "has a port that is not a number"),
        (grpc("::1:4317"), "write an IPv6 address in brackets"),
        (grpc("[::1:4317"), "a bracket that is not closed"),
        (grpc("[::x]:4317"), "without an IPv6 address"),
        (grpc("back end:4317"), "contains spaces"),
        (grpc("unix:///socket"), "has a scheme that is neither https nor http"),
        (grpc("https://backend:4317/v1/traces"), "has a path"),
        (grpc("https://me:secret@backend:4317"), "set credentials in `authentication`"),
        (grpc(":4317"), "has no host"),
        (grpc("a/b:4317"), "has a path"),
        (grpc("ü:4317"), "non-ASCII characters"),
        (grpc(""), "SpecInvalid spec.output.otlp.endpoint: is empty"),
        (http("backend:4318"), "does not begin with https:// or http://; write it as a whole URL"),
        (http("https://"), "has no host"),
        (http("https://backend:x/"), "has a port that is not a number"),
        (http("https://backend/#a"), "has a fragment"),
        (otlp(json!({"path": "/x"})), "EndpointInvalid spec.output.otlp.path: is only allowed with `protocol: http`"),
        (
            http_path("/a b"),
            "EndpointInvalid spec.output.otlp.path: has the invalid character ` ` at position 3: write %20",
        ),
        (http_path("/ü\n"), "path: has the invalid character `ü` at position 2: write %C3%BC"),
        (http_path("/\n"), "path: has the invalid character `\\n` at position 2: write %0A"),
        (http_path("/a`b"), "path: has the invalid character ``` at position 3: write %60"),
        (http_path("/a?key=b#c"), "path: has a query at position 3 (`?`): append the query to the endpoint"),
        (http_path("/a#b"), "path: has a fragment at position 3 (`#`), which is never sent"),
        (http_path(""), "path: is empty"),
    ] {
        is_refused(&pipeline, words);
    }
    for text in
        ["backend:4317", "https://backend.example.com:4317/", "http://10.0.0.1:4317", "[2001:db8::1]:4317", " a_b:1 "]
    {
        assert!(validate(&grpc(text), &ResolvedReferences::new(), now()).is_ok(), "{text}");
    }
    for text in ["http://backend", "https://backend:4318/base/?key=1", "https://[::1]/"] {
        assert!(validate(&http(text), &ResolvedReferences::new(), now()).is_ok(), "{text}");
    }
}

#[test]
fn what_stands_elsewhere_is_named_when_it_is_not_there() {
    let pipeline =
        otlp(json!({"endpoint": secret("endpoint"), "authentication": {"bearer": {"token": secret("token")}}}));
    let both = refused(&pipeline, &ResolvedReferences::new());
    assert_eq!(
        both,
        [
            "SecretMissing spec.output.otlp.endpoint: Secret n/s does not exist",
            "SecretMissing spec.output.otlp.authentication.bearer.token: Secret n/s does not exist"
        ]
    );
    let with = |token: ReferencedValue| {
        ResolvedReferences::new()
            .with(secret_reference("endpoint"), ReferencedValue::text("b:1", "1"))
            .with(secret_reference("token"), token)
    };
    for (found, words) in [
        (
            ReferencedValue::NoKey,
            "SecretMissing spec.output.otlp.authentication.bearer.token: Secret n/s has no key `token`",
        ),
        (
            ReferencedValue::bytes(&[0xff], "1"),
            "SecretInvalid spec.output.otlp.authentication.bearer.token: the key `token` of Secret n/s is not UTF-8 text",
        ),
        (ReferencedValue::text("\n", "1"), "SecretInvalid spec.output.otlp.authentication.bearer.token: is empty"),
        (
            ReferencedValue::text("x".repeat(20_000), "1"),
            "SecretInvalid spec.output.otlp.authentication.bearer.token: is longer than 16384 bytes",
        ),
        (
            ReferencedValue::text("a\nb", "1"),
            "AuthenticationInvalid spec.output.otlp.authentication.bearer.token: contains control characters, which cannot be sent",
        ),
        (
            ReferencedValue::Unreadable("forbidden".into()),
            "SecretUnreadable spec.output.otlp.authentication.bearer.token: Secret n/s cannot be read: forbidden",
        ),
    ] {
        assert_eq!(refused(&pipeline, &with(found)), [words]);
    }
    // Admission does not read references.
    assert_eq!(validate_spec(&pipeline, now()), ValidationReport::default());
    let valid = validate(&pipeline, &with(ReferencedValue::text("t\r\n", "7")), now()).unwrap();
    assert_eq!(valid.backend(), "Secret n/s");
    assert_eq!(pipeline.references().len(), 2);
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let pipeline = otlp(json!({
        "endpoint": {"value": "backend"},
        "timeout": "5",
        "retry": {"initialInterval": "1m", "maxInterval": "1s", "maxElapsedTime": "-1s"},
        "queue": {"sizeBytes": 2_097_152, "batch": {"minSizeBytes": 3_000_000, "flushTimeout": "0s"}},
        "headers": [{"name": "X", "value": "1"}, {"name": "x", "value": "2"}, {"name": "a b", "value": "c"}],
        "tls": {"cert": {"value": "x"}},
    }));
    let problems = refused(&pipeline, &ResolvedReferences::new());
    let expected = [
        "EndpointInvalid spec.output.otlp.endpoint: has no port",
        "TlsInvalid spec.output.otlp.tls: set both `cert` and `key`, or neither",
        "AuthenticationInvalid spec.output.otlp.headers[1].name: is a duplicate",
        "AuthenticationInvalid spec.output.otlp.headers[2].name: has characters",
        "SettingInvalid spec.output.otlp.timeout: has no unit",
        "SettingInvalid spec.output.otlp.retry.maxElapsedTime: is negative",
        "SettingInvalid spec.output.otlp.retry.initialInterval: is longer than `maxInterval`",
        "SettingInvalid spec.output.otlp.queue.batch.flushTimeout: must be positive",
        "SettingInvalid spec.output.otlp.queue.batch.minSizeBytes: is greater than `sizeBytes`",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.starts_with(expected), "{problem} is not {expected}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    let tls = |endpoint: &str, tls: Value| otlp(json!({"endpoint": {"value": endpoint}, "tls": tls}));
    is_refused(
        &tls("https://b:1", json!({"insecure": true})),
        "TlsInvalid spec.output.otlp.tls.insecure: disables TLS",
    );
    let token = json!({"headers": [{"name": "authorization", "value": "x"}],
        "authentication": {"basic": {"user": {"value": "u"}, "password": secret("p")}}});
    let resolved = ResolvedReferences::new().with(secret_reference("p"), ReferencedValue::text("p", "1"));
    let problems = refused(&otlp(token), &resolved);
    assert!(problems[0].contains("headers[0].name: is also set by `authentication`"), "{problems:?}");
    let user = json!({"authentication": {"basic": {"user": {"value": "a:b"}, "password": secret("p")}}});
    assert!(refused(&otlp(user), &resolved)[0].contains("basic.user: contains `:`"));
    // Specs that the schema would refuse.
    let both = json!({"authentication": {"bearer": {"token": {"value": "x"}}, "basic": {"user": {"value": "u"}, "password": {"value": "p"}}}});
    is_refused(&otlp(both), "SpecInvalid spec.output.otlp.authentication: set exactly one");
    is_refused(
        &otlp(json!({"endpoint": {}})),
        "SpecInvalid spec.output.otlp.endpoint: set either `value` or `valueFrom`",
    );
    is_refused(&otlp(json!({"endpoint": {"valueFrom": {}}})), "endpoint.valueFrom: set either `secretKeyRef`");
    is_refused(&traces(json!({"output": {}})), "SpecInvalid spec.output: an output must be set");
    let mut named = otlp(json!({}));
    named.name = "x".repeat(64);
    is_refused(&named, "NameInvalid metadata.name: must have at most 63 characters");
}

#[test]
fn what_is_unwise_is_warned_about() {
    let pipeline = otlp(json!({"endpoint": {"value": "http://b:1"},
        "authentication": {"bearer": {"token": {"value": "topsecret"}}}}));
    let warnings = warned(&pipeline, &ResolvedReferences::new());
    assert!(warnings[0].contains("bearer.token: is readable by everyone"), "{warnings:?}");
    assert!(warnings[1].contains("authentication: is sent without TLS"), "{warnings:?}");
    assert!(!warnings.concat().contains("topsecret"));
    let header =
        otlp(json!({"headers": [{"name": "X-Auth", "value": "topsecret"}, {"name": "x-tenant", "value": "t"}]}));
    let warnings = warned(&header, &ResolvedReferences::new());
    assert!(warnings.len() == 1 && warnings[0].contains("headers[0]: is readable by everyone"), "{warnings:?}");
    let idle = otlp(json!({"headers": [{"name": "Content-Type", "value": "text/plain"}]}));
    let warnings = warned(&idle, &ResolvedReferences::new());
    assert!(warnings.len() == 1 && warnings[0].contains("headers[0].name: is set by the protocol"), "{warnings:?}");
    let believing = otlp(json!({"tls": {"insecureSkipVerify": true}}));
    assert!(warned(&believing, &ResolvedReferences::new())[0].contains("insecureSkipVerify: skips verification"));
    let spec = json!({"input": {"otlp": {"enabled": false}}, "output": {"otlp": {"endpoint": {"value": "b:1"}}}});
    let deaf = TelemetryPipeline::from(&LogPipeline::new("deaf", serde_json::from_value(spec).unwrap()));
    assert!(warned(&deaf, &ResolvedReferences::new())[0].contains("spec.input.otlp.enabled: is false"));
    assert!(!validate(&deaf, &ResolvedReferences::new(), now()).unwrap().is_rendered());
}

/// A certificate with this period of validity in days from now, and its key.
fn certificate(from: i64, until: i64) -> (String, String) {
    let day = |days: i64| {
        let seconds = (now() + SignedDuration::from_hours(24 * days)).as_second();
        rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(u64::try_from(seconds).unwrap())
    };
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["backend".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (day(from), day(until));
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// An X.509 certificate of version 1, which nobody uses, and its key.
const VERSION_1: (&str, &str) = (
    "\
-----BEGIN CERTIFICATE-----\n\
MIIBFTCBvQIUC4oxW+6cyuM/FMMqJ81ekSfHuzEwCgYIKoZIzj0EAwIwDTELMAkG\n\
A1UEAwwCdjEwIBcNMjYxMTE2MTgwMzM1WhgPMjEyNjEwMjMxODAzMzVaMA0xCzAJ\n\
BgNVBAMMAnYxMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8eZiCDhuB6QnBVpz\n\
w5Y0be3MPDZhfyo1uMT1APy5LaVnPwca+7DyyHkDdrVx9YZkjPpdbbbmldjvDkkW\n\
gGniaTAKBggqhkjOPQQDAgNHADBEAiBv0vs46ctuhVnP48qzvLDS/K+KaZJOdx2S\n\
+2UxN1A4QwIgHAXSwqMBGEp+urTW6zaC3uqizuaDGCCjTWEz7cDj/sE=\n\
-----END CERTIFICATE-----\n\
",
    "\
-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgH91+bMFq1CZCffOp\n\
6NavOh4nyGRLRcOHlCakAD6n2LShRANCAATx5mIIOG4HpCcFWnPDljRt7cw8NmF/\n\
KjW4xPUA/LktpWc/Bxr7sPLIeQN2tXH1hmSM+l1ttuaV2O8OSRaAaeJp\n\
-----END PRIVATE KEY-----\n\
",
);

fn identified(cert: &str, key: &str) -> (TelemetryPipeline, ResolvedReferences) {
    let pipeline = otlp(json!({"tls": {"cert": secret("cert"), "key": secret("key")}}));
    (
        pipeline,
        ResolvedReferences::new()
            .with(secret_reference("cert"), ReferencedValue::text(cert, "1"))
            .with(secret_reference("key"), ReferencedValue::text(key, "1")),
    )
}

#[test]
fn certificates_are_read_and_their_time_is_told() {
    let refused = |cert: &str, key: &str| {
        let (pipeline, resolved) = identified(cert, key);
        super::tests::refused(&pipeline, &resolved).join("\n")
    };
    let (good, key) = certificate(-1, 100);
    let (other, _) = certificate(-1, 100);
    let path = "spec.output.otlp.tls";
    assert_eq!(refused(&other, &key), format!("TlsInvalid {path}: `cert` and `key` do not match"));
    assert!(refused("nothing", &key).starts_with(&format!("TlsInvalid {path}.cert: contains no certificate in PEM")));
    assert!(refused(&good, "nothing").starts_with(&format!("TlsInvalid {path}.key: contains no private key in PEM")));
    assert!(refused(&good.replace('M', "*"), &key).contains("cert: has a PEM section that is not valid base64"));
    let (old, old_key) = certificate(-9, -1);
    assert_eq!(
        refused(&old, &old_key),
        format!("CertificateExpired {path}.cert: the certificate expired at 2026-05-31T00:00:00Z")
    );
    let (young, young_key) = certificate(1, 9);
    assert!(refused(&young, &young_key).contains("is not valid before 2026-06-02T00:00:00Z"));
    // The key is not at fault.
    let first = refused(VERSION_1.0, VERSION_1.1);
    assert!(first.contains(&format!("{path}.cert: is not a usable certificate")), "{first}");
    assert!(!first.contains("tls.key"), "{first}");
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let none = format!("TlsInvalid {path}.cert: contains data that is not an X.509 certificate");
    assert_eq!(refused(garbage, &key), none, "that is all that is wrong");
    // Certificates in the middle of the chain count, too.
    assert!(refused(&format!("{good}{old}"), &key).contains("expired at"));

    let (pipeline, resolved) = identified(&good, &key);
    let valid = validate(&pipeline, &resolved, now()).unwrap();
    assert_eq!((valid.warnings(), valid.expires()), ([].as_slice(), Some(now() + SignedDuration::from_hours(2400))));
    let day = SignedDuration::from_hours(24);
    assert_eq!(valid.next_recheck(now()), Some(now() + day * 86));
    let later = now() + day * 90;
    assert_eq!(valid.next_recheck(later), Some(now() + day * 100 + SignedDuration::from_secs(1)));
    let (soon, soon_key) = certificate(-9, 14);
    let (pipeline, resolved) = identified(&soon, &soon_key);
    let expected = format!("CertificateExpiresSoon {path}.cert: the certificate expires at 2026-06-15T00:00:00Z");
    assert_eq!(warned(&pipeline, &resolved), [expected]);
}

#[test]
fn every_certificate_of_a_bundle_is_read() {
    let authorities = |text: &str| {
        let pipeline = otlp(json!({"tls": {"ca": secret("ca")}}));
        (pipeline, ResolvedReferences::new().with(secret_reference("ca"), ReferencedValue::text(text, "1")))
    };
    let (good, _) = certificate(-1, 100);
    let (old, _) = certificate(-9, -1);
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let (pipeline, resolved) = authorities(&format!("{good}{broken}"));
    assert!(refused(&pipeline, &resolved)[0].contains("tls.ca: certificate number 2 is not a valid"));
    let (pipeline, resolved) = authorities(&old);
    assert!(
        refused(&pipeline, &resolved)[0]
            .starts_with("CertificateExpired spec.output.otlp.tls.ca: the authority expired")
    );
    // As long as one authority is valid the others do no harm.
    let (pipeline, resolved) = authorities(&format!("{old}{good}"));
    assert!(warned(&pipeline, &resolved)[0].contains("1 of 2 certificates are not valid now"));
    let (mut pipeline, resolved) = authorities(&good);
    pipeline.destinations[0].tls.as_mut().unwrap().insecure = true;
    assert!(refused(&pipeline, &resolved)[0].contains("has certificates, but TLS is disabled"));
}

fn pipeline_with_field(field: &str, value: Value) -> TelemetryPipeline {
    let mut spec = json!({"output": {"otlp": {"endpoint": {"value": "backend:4317"}}}});
    spec[field] = value;
    traces(spec)
}

#[test]
fn selections_are_refused_for_what_is_wrong_with_them() {
    let many: Vec<Value> = (0..3).map(|_| json!({"matchType": "regexp", "spanNames": vec!["a"; 100]})).collect();
    for (pipeline, words) in [
        (
            pipeline_with_field("filter", json!([{"matchType": "regexp"}])),
            "FilterInvalid spec.filter[0]: has no condition",
        ),
        (
            pipeline_with_field("filter", json!([{"matchType": "regexp", "spanNames": ["a", "("]}])),
            "spec.filter[0].spanNames[1]: is not a valid regular expression",
        ),
        (
            pipeline_with_field("filter", json!([{"matchType": "regexp", "resources": [{"key": "k", "value": "["}]}])),
            "spec.filter[0].resources[0].value",
        ),
        (
            pipeline_with_field("filter", json!([{"attributes": [{"key": ""}]}])),
            "spec.filter[0].attributes[0].key: is empty",
        ),
        (pipeline_with_field("filter", Value::Array(many)), "spec.filter: has 300 expressions"),
        (
            pipeline_with_field("input", json!({"namespaces": {"include": ["a"], "exclude": ["b"]}})),
            "InputInvalid spec.input.namespaces: set either",
        ),
        (
            pipeline_with_field("input", json!({"namespaces": {"include": ["a.b"]}})),
            "spec.input.namespaces.include[0]: is not the name",
        ),
        (
            pipeline_with_field(
                "input",
                json!({"workloads": {"exclude": [{"kind": "Pod", "name": "-a", "namespace": "B"}]}}),
            ),
            "exclude[0]",
        ),
    ] {
        let problems = refused(&pipeline, &ResolvedReferences::new());
        assert!(problems[0].contains(words), "{words} {problems:?}");
    }
    let spec = json!({"filter": [{"matchType": "regexp", "metricNames": ["("]}], "output": {"otlp": {"endpoint": {"value": "b:1"}}}});
    is_refused(
        &TelemetryPipeline::from(&MetricPipeline::new("m", serde_json::from_value(spec).unwrap())),
        "spec.filter[0].metricNames[0]",
    );
}

#[test]
fn samplings_are_refused_for_what_is_wrong_with_them() {
    let tail = |policy: Value| pipeline_with_field("sampling", json!({"tail": {"policies": [policy]}}));
    let path = "SamplingInvalid spec.sampling.tail.policies[0]";
    for (pipeline, words) in [
        (
            pipeline_with_field("sampling", json!({"percentage": 100.5})),
            "SamplingInvalid spec.sampling.percentage: must be from 0 to 100".to_owned(),
        ),
        (pipeline_with_field("sampling", json!({"percentage": 1e-30})), "must be from 0 to 100".to_owned()),
        (
            pipeline_with_field("sampling", json!({"tail": {"policies": []}})),
            "policies: must hold at least one policy".to_owned(),
        ),
        (
            pipeline_with_field(
                "sampling",
                json!({"tail": {"decisionWait": "x", "policies": [{"name": "a", "alwaysSample": {}}]}}),
            ),
            "tail.decisionWait: is not a duration".to_owned(),
        ),
        (
            pipeline_with_field(
                "sampling",
                json!({"tail": {"policies": [{"name": "a", "alwaysSample": {}}, {"name": "a", "traceFlags": {}}]}}),
            ),
            "policies[1].name: is the name of another policy".to_owned(),
        ),
        (tail(json!({"name": "a"})), format!("{path}: a policy has exactly one rule")),
        (tail(json!({"name": "", "alwaysSample": {}})), format!("{path}.name: is empty")),
        (
            tail(json!({"name": "a", "latency": {"thresholdMs": 5, "upperThresholdMs": 5}})),
            format!("{path}.latency.upperThresholdMs: must be greater"),
        ),
        (
            tail(json!({"name": "a", "numericAttribute": {"key": "k"}})),
            format!("{path}.numericAttribute: has no limit"),
        ),
        (
            tail(json!({"name": "a", "numericAttribute": {"key": "k", "minValue": 5, "maxValue": 4}})),
            "`minValue` is greater".to_owned(),
        ),
        (
            tail(json!({"name": "a", "stringAttribute": {"key": "k", "values": ["("], "enabledRegexMatching": true}})),
            format!("{path}.stringAttribute.values[0]: is not a valid regular expression"),
        ),
        (
            tail(json!({"name": "a", "spanCount": {"minSpans": 5, "maxSpans": 4}})),
            format!("{path}.spanCount.maxSpans: must not be less"),
        ),
        (
            tail(
                json!({"name": "a", "and": {"andSubPolicy": [{"name": "b", "not": {"notSubPolicy": {"name": "c"}}}]}}),
            ),
            format!("{path}.and.andSubPolicy[0].not.notSubPolicy: a policy has"),
        ),
        (
            tail(json!({"name": "a", "composite": {"maxTotalSpansPerSecond": 5,
                "compositeSubPolicy": [{"name": "b", "alwaysSample": {}}], "rateAllocation": [{"policy": "c", "percent": 5}]}})),
            format!("{path}.composite.rateAllocation[0].policy: is not the name"),
        ),
    ] {
        let problems = refused(&pipeline, &ResolvedReferences::new());
        assert!(problems[0].contains(&words), "{words} {problems:?}");
    }
    assert!(
        warned(&pipeline_with_field("sampling", json!({"percentage": 0})), &ResolvedReferences::new())[0]
            .contains("is 0: no traces are kept")
    );
}

fn logs(spec: Value) -> TelemetryPipeline {
    TelemetryPipeline::from(&LogPipeline::new("backend", serde_json::from_value(spec).unwrap()))
}

/// A pipeline with this output beside its endpoint.
fn log_output(kind: &str, more: Value) -> TelemetryPipeline {
    let mut output = json!({"endpoint": {"value": "https://backend.example.com"}});
    output.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    logs(json!({"output": {kind: output}}))
}

fn runtime(input: Value) -> TelemetryPipeline {
    let mut pipeline = log_output("loki", json!({}));
    let spec = json!({"input": {"runtime": input}, "output": {"loki": {"endpoint": {"value": "https://loki"}}}});
    pipeline.runtime = logs(spec).runtime;
    pipeline
}

#[test]
fn log_pipeline_has_exactly_one_output() {
    let words = "SpecInvalid spec.output: set exactly one of `otlp`, `loki`, `elasticsearch`, `opensearch` and `http`";
    is_refused(&logs(json!({"output": {}})), words);
    let url = json!({"endpoint": {"value": "https://backend"}});
    is_refused(&logs(json!({"output": {"loki": url, "opensearch": url}})), words);
    for kind in ["loki", "elasticsearch", "opensearch", "http"] {
        let pipeline = log_output(kind, json!({}));
        let valid = validate(&pipeline, &ResolvedReferences::new(), now()).unwrap();
        assert_eq!(valid.backend(), "https://backend.example.com", "{kind}");
        let wrong = log_output(kind, json!({"endpoint": {"value": "backend:3100"}, "timeout": "soon"}));
        let problems = refused(&wrong, &ResolvedReferences::new());
        let paths = [format!("spec.output.{kind}.endpoint"), format!("spec.output.{kind}.timeout")];
        assert!(
            problems.len() == 2 && paths.iter().zip(&problems).all(|(path, said)| said.contains(path)),
            "{problems:?}"
        );
    }
}

#[test]
fn templates_of_names_are_refused_with_their_paths() {
    let index = |index: &str| log_output("elasticsearch", json!({"index": index}));
    for (pipeline, words) in [
        (index("logs-%{"), "SettingInvalid spec.output.elasticsearch.index: is not a template"),
        (
            log_output("opensearch", json!({"dataStream": {"dataset": "%{}"}})),
            "SettingInvalid spec.output.opensearch.dataStream.dataset: is not a template",
        ),
        (
            log_output("elasticsearch", json!({"index": "logs", "dataStream": {}})),
            "SpecInvalid spec.output.elasticsearch: set either `index` or `dataStream`",
        ),
        (
            log_output("loki", json!({"labels": {"a.b": "x"}})),
            "SettingInvalid spec.output.loki.labels[a.b]: is not the name of a label",
        ),
        (log_output("loki", json!({"labels": {"__a": "x"}})), "spec.output.loki.labels[__a]: is not the name"),
        (log_output("loki", json!({"tenant": "%{a"})), "SettingInvalid spec.output.loki.tenant: is not a template"),
        (
            log_output("elasticsearch", json!({"endpoint": {"value": "https://backend/?a=b"}})),
            "EndpointInvalid spec.output.elasticsearch.endpoint: has a query",
        ),
    ] {
        is_refused(&pipeline, words);
    }
    let allowed = json!({"index": "logs-%{k8s.namespace.name}-%{+yyyy.MM.dd}", "allowRecordAttributes": ["team"]});
    let said = warned(&log_output("elasticsearch", allowed), &ResolvedReferences::new());
    assert_eq!(
        said,
        [
            "SettingInvalid spec.output.elasticsearch.allowRecordAttributes[0]: has no effect: no template of the output names this attribute"
        ]
    );
    let used = json!({"index": "logs-%{team}", "allowRecordAttributes": ["team"]});
    assert_eq!(warned(&log_output("elasticsearch", used), &ResolvedReferences::new()), [""; 0]);
}

#[test]
fn api_key_is_a_credential_like_any_other() {
    let key = |value: Value| log_output("elasticsearch", json!({"apiKey": value}));
    assert_eq!(
        refused(&key(secret("key")), &ResolvedReferences::new()),
        ["SecretMissing spec.output.elasticsearch.apiKey: Secret n/s does not exist"]
    );
    let said = warned(&key(json!({"value": "planted"})), &ResolvedReferences::new());
    assert!(
        said.len() == 1 && said[0].contains("spec.output.elasticsearch.apiKey: is readable by everyone"),
        "{said:?}"
    );
    let both = json!({"apiKey": {"value": "a"}, "authentication": {"bearer": {"token": {"value": "b"}}}});
    is_refused(&log_output("elasticsearch", both), "set either `apiKey` or `authentication`");
}

#[test]
fn selection_of_container_logs_is_refused_with_its_path() {
    for (input, words) in [
        (json!({"containers": {"include": ["A"]}}), "spec.input.runtime.containers.include[0]: is not the name"),
        (json!({"namespaces": {"include": ["a.b"]}}), "spec.input.runtime.namespaces.include[0]: is not the name"),
        (
            json!({"namespaces": {"include": ["a"], "exclude": ["b"]}}),
            "spec.input.runtime.namespaces: set either `include` or `exclude`",
        ),
        (
            json!({"workloads": {"include": [{"kind": "Pod", "name": "A"}]}}),
            "spec.input.runtime.workloads.include[0].name: is not the name of a workload",
        ),
        (
            json!({"parse": {"json": false, "severity": true}}),
            "InputInvalid spec.input.runtime.parse.severity: needs `json`, which is false",
        ),
    ] {
        is_refused(&runtime(input), words);
    }
}

#[test]
fn system_namespaces_are_read_only_if_they_are_named() {
    let selected = |namespaces: Value| runtime(json!({"namespaces": namespaces})).runtime.unwrap().namespaces;
    let system = crate::pipeline::SYSTEM_NAMESPACES.map(str::to_owned);
    assert_eq!(selected(json!({})).exclude, system);
    let without = selected(json!({"exclude": ["noisy", "kube-system"]})).exclude;
    assert!(without.starts_with(&["noisy".to_owned(), "kube-system".to_owned()]), "{without:?}");
    assert_eq!(without.len(), system.len() + 1, "each once");
    let named = selected(json!({"include": ["kube-system"]}));
    assert_eq!((named.include, named.exclude), (vec!["kube-system".to_owned()], Vec::new()));
    assert_eq!(selected(json!({"system": true})), crate::v1alpha1::NamespaceSelector::default());
}

#[test]
fn pipeline_without_otlp_and_runtime_receives_nothing() {
    let spec = |input: Value| logs(json!({"input": input, "output": {"loki": {"endpoint": {"value": "https://b"}}}}));
    let nothing = spec(json!({"otlp": {"enabled": false}, "runtime": {"enabled": false}}));
    let said = warned(&nothing, &ResolvedReferences::new());
    assert!(said.len() == 1 && said[0].contains("it receives nothing"), "{said:?}");
    let valid = validate(&nothing, &ResolvedReferences::new(), now()).unwrap();
    assert!(!valid.is_rendered());
    let reading = spec(json!({"otlp": {"enabled": false}, "runtime": {}}));
    let valid = validate(&reading, &ResolvedReferences::new(), now()).unwrap();
    assert!(valid.is_rendered() && valid.reads_logs() && !valid.receives_otlp());
    assert_eq!(valid.warnings(), []);
    assert!(!validate(&spec(json!({})), &ResolvedReferences::new(), now()).unwrap().reads_logs());
}
