use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{FixedSources, load, model};

/// Loads a document with this header and scope, and returns what the parser read.
fn read_back(header: &TextSource, scope: &str, sources: &FixedSources) -> (String, String) {
    let client = ClientSection {
        headers: vec![("x-header".into(), header.clone())],
        authenticator: Some("oauth2client".into()),
        ..ClientSection::default()
    };
    let exporter = ExporterSection::Grpc(OtlpGrpcSection { endpoint: TextSource::literal("backend:4317"), client });
    let extension = ExtensionSection::OAuth2Client {
        client_id: TextSource::literal("id"),
        client_secret: TextSource::literal("secret"),
        token_url: TextSource::literal("https://tokens"),
        scopes: vec![scope.into()],
        endpoint_params: BTreeMap::from([("audience".into(), scope.into())]),
        tls: None,
    };
    let receiver = ReceiverSection::Otlp(OtlpReceiverSection {
        grpc: Some(TextSource::Env("POD_IP", ":4317".into())),
        http: None,
    });
    let pipeline = PipelineSection {
        receivers: vec!["otlp".into()],
        processors: Vec::new(),
        exporters: vec!["otlp_grpc/x".into()],
        uid: Some(scope.into()),
        carries: Vec::new(),
    };
    let written = DocumentBuilder {
        receivers: BTreeMap::from([("otlp".into(), receiver)]),
        exporters: BTreeMap::from([("otlp_grpc/x".into(), exporter)]),
        extensions: BTreeMap::from([("oauth2client".into(), extension)]),
        service: ServiceSection {
            pipelines: BTreeMap::from([("traces/x".into(), pipeline)]),
            ..ServiceSection::default()
        },
        ..DocumentBuilder::default()
    };
    let text = written.to_yaml();
    assert_eq!(text, written.to_yaml());
    let document = load(&text, sources).unwrap_or_else(|error| panic!("{error}\n{text}")).document;
    let Some(model::ExporterConfig::OtlpGrpc(exporter)) = document.exporters.values().next() else { panic!("{text}") };
    let Some(model::ExtensionConfig::OAuth2Client(client)) = document.extensions.values().next() else {
        panic!("{text}")
    };
    assert_eq!(client.endpoint_params, [("audience".to_owned(), scope.to_owned())]);
    let uid = document.service.pipelines.values().next().and_then(|pipeline| pipeline.uid.as_deref());
    assert_eq!(uid.unwrap_or_default(), scope);
    let header = exporter.headers.first().map(|(_, value)| value.reveal().to_owned());
    (header.unwrap_or_default(), client.scopes.concat())
}

fn sources() -> FixedSources {
    FixedSources::new().with_env("POD_IP", "127.0.0.1").with_env("SECRET", "leaked").with_file("/secret", "leaked")
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
    fn every_text_comes_back_as_it_was(text in awkward(), scope in awkward()) {
        let expected = (text.clone(), scope.clone());
        prop_assert_eq!(read_back(&TextSource::literal(&text), &scope, &sources()), expected);
    }

    #[test]
    fn what_is_in_a_file_comes_back_as_it_was(text in awkward()) {
        let sources = sources().with_file("/secrets/key", escape(&text));
        let (header, _) = read_back(&TextSource::File("/secrets/key".into()), "s", &sources);
        prop_assert_eq!(header, text);
    }

    #[test]
    fn every_duration_comes_back_as_it_was(nanos in 0..i64::MAX.unsigned_abs()) {
        let YamlValue::Text(text) = YamlValue::from(Duration::from_nanos(nanos)) else { return Err(TestCaseError::fail("text")) };
        prop_assert_eq!(crate::parse_duration(&text), Ok(Duration::from_nanos(nanos)));
    }
}
