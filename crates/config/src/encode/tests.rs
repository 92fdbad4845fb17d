use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{CollectorDocument, FixedSources, load, model};

mod round_trip;

fn sources() -> FixedSources {
    FixedSources::new().with_env("POD_IP", "127.0.0.1").with_env("SECRET", "leaked").with_file("/secret", "leaked")
}

/// A small document whose exporter sends this header, and whose extension asks for this scope.
fn document(header: SecretString, scope: &str) -> CollectorDocument {
    let text = "{receivers: {otlp: {protocols: {grpc: }}}, exporters: {otlp_grpc/x: {endpoint: 'backend:4317', auth: \
                {authenticator: oauth2client}}}, extensions: {oauth2client: {client_id: id, client_secret: s, \
                token_url: 'https://tokens'}}, service: {extensions: [oauth2client], pipelines: {traces/x: \
                {receivers: [otlp], exporters: [otlp_grpc/x]}}}}";
    let mut document = load(text, &sources()).unwrap().document;
    for exporter in document.exporters.values_mut() {
        let model::ExporterConfig::OtlpGrpc(exporter) = exporter else { continue };
        exporter.headers = vec![("x-header".into(), header.clone())];
    }
    for extension in document.extensions.values_mut() {
        let model::ExtensionConfig::OAuth2Client(client) = extension else { continue };
        client.client_secret = SecretString::referenced("leaked", TextReference::File("/secret".into()));
        client.scopes = vec![scope.into()];
        client.endpoint_params = vec![("audience".into(), scope.into()), ("audience".into(), "other".into())];
    }
    for receiver in document.receivers.values_mut() {
        let model::ReceiverConfig::Otlp(receiver) = receiver else { continue };
        let address = TextReference::Env { name: "POD_IP", rest: ":4317".into() };
        let endpoint = ConfigText::referenced("127.0.0.1:4317", address);
        receiver.grpc = Some(model::GrpcServer { endpoint, ..model::GrpcServer::default() });
    }
    for pipeline in document.service.pipelines.values_mut() {
        pipeline.uid = Some(scope.into()).filter(|scope: &String| !scope.is_empty());
    }
    document
}

/// Texts that a parser could misread.
fn awkward() -> impl Strategy<Value = String> {
    let odd = [
        "",
        "null",
        "~",
        "true",
        "no",
        "0123",
        "1_000",
        "1e3",
        ".inf",
        "- a",
        "a: b",
        "a #b",
        "#",
        "{}",
        "[]",
        "[a, b]",
        "${env:SECRET}",
        "$${env:SECRET}",
        "$$",
        "$",
        "${file:/secret}",
        "a\"b\\c",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a`",
        "'",
        " a ",
        "a\tb",
        "ä\u{2028}\u{feff}\u{1f600}",
        "?",
        "---",
        "...",
        "<<",
        "=",
    ];
    prop_oneof![
        proptest::sample::select(odd.to_vec()).prop_map(str::to_owned),
        "[ -~äß€\u{1f600}]{0,24}",
        "[$a{}:env]{0,12}"
    ]
}

proptest! {
    #[test]
    fn every_text_comes_back_as_it_was(header in awkward(), scope in awkward()) {
        let reference = TextReference::File("/secrets/key".into());
        let written = document(SecretString::referenced(header.clone(), reference), &scope);
        let text = written.to_yaml().unwrap();
        prop_assert_eq!(&text, &written.to_yaml().unwrap());
        prop_assert!(!text.contains("leaked"));
        let read = load(&text, &sources().with_file("/secrets/key", escape(&header)));
        prop_assert_eq!(read.unwrap().document, written);
    }

    #[test]
    fn every_duration_comes_back_as_it_was(nanos in 0..i64::MAX.unsigned_abs()) {
        let YamlValue::Text(text) = YamlValue::from(Duration::from_nanos(nanos)) else {
            return Err(TestCaseError::fail("text"));
        };
        prop_assert_eq!(crate::parse_duration(&text), Ok(Duration::from_nanos(nanos)));
    }
}

#[test]
fn secret_without_a_reference_is_refused_with_its_path_and_not_shown() {
    let error = document(SecretString::new("p4ssword"), "scope").to_yaml().unwrap_err();
    let expected =
        "failed to write exporters::otlp_grpc/x::headers::0::value: the value is a secret without a reference";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn metrics_endpoint_keeps_the_reference_of_its_host() {
    let mut written = document(SecretString::referenced("h", TextReference::File("/secret".into())), "s");
    let host = TextReference::Env { name: "POD_IP", rest: ":8888".into() };
    written.service.telemetry.metrics.endpoint = Some(ConfigText::referenced("127.0.0.1:8888", host));
    let text = written.to_yaml().unwrap();
    assert!(text.contains("host: \"${env:POD_IP}\""), "{text}");
}
