use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{FixedSources, load, model};

/// A document with a header and a scope, and what the reader makes of them.
fn read_back(header: &Text, scope: &str, sources: &FixedSources) -> (String, String) {
    let client = Client {
        headers: vec![("x-header".into(), header.clone())],
        authenticator: Some("oauth2client".into()),
        ..Client::default()
    };
    let exporter = Exporter::Grpc(Grpc { endpoint: Text::literal("backend:4317"), client });
    let extension = Extension::OAuth2Client {
        client_id: Text::literal("id"),
        client_secret: Text::literal("secret"),
        token_url: Text::literal("https://tokens"),
        scopes: vec![scope.into()],
        endpoint_params: BTreeMap::from([("audience".into(), scope.into())]),
        tls: None,
    };
    let receiver = Receiver::Otlp(OtlpReceiver { grpc: Some(Text::Env("POD_IP", ":4317".into())), http: None });
    let pipeline = Pipeline {
        receivers: vec!["otlp".into()],
        processors: Vec::new(),
        exporters: vec!["otlp_grpc/x".into()],
        uid: Some(scope.into()),
        carries: Vec::new(),
    };
    let written = Written {
        receivers: BTreeMap::from([("otlp".into(), receiver)]),
        exporters: BTreeMap::from([("otlp_grpc/x".into(), exporter)]),
        extensions: BTreeMap::from([("oauth2client".into(), extension)]),
        service: Service { pipelines: BTreeMap::from([("traces/x".into(), pipeline)]), ..Service::default() },
        ..Written::default()
    };
    let text = written.to_yaml();
    assert_eq!(text, written.to_yaml());
    let document = load(&text, sources).unwrap_or_else(|error| panic!("{error}\n{text}")).document;
    let Some(model::Exporter::OtlpGrpc(exporter)) = document.exporters.values().next() else { panic!("{text}") };
    let Some(model::Extension::OAuth2Client(client)) = document.extensions.values().next() else { panic!("{text}") };
    assert_eq!(client.endpoint_params, [("audience".to_owned(), scope.to_owned())]);
    let uid = document.service.pipelines.values().next().and_then(|pipeline| pipeline.uid.as_deref());
    assert_eq!(uid.unwrap_or_default(), scope);
    let header = exporter.headers.first().map(|(_, value)| value.reveal().to_owned());
    (header.unwrap_or_default(), client.scopes.concat())
}

fn sources() -> FixedSources {
    FixedSources::new().with_env("POD_IP", "127.0.0.1").with_env("SECRET", "leaked").with_file("/secret", "leaked")
}

/// Texts that a reader could take for something else.
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
        prop_assert_eq!(read_back(&Text::literal(&text), &scope, &sources()), expected);
    }

    #[test]
    fn what_is_in_a_file_comes_back_as_it_was(text in awkward()) {
        let sources = sources().with_file("/secrets/key", escape(&text));
        let (header, _) = read_back(&Text::File("/secrets/key".into()), "s", &sources);
        prop_assert_eq!(header, text);
    }

    #[test]
    fn every_duration_comes_back_as_it_was(nanos in 0..i64::MAX.unsigned_abs()) {
        let Value::Text(text) = Value::from(Duration::from_nanos(nanos)) else { return Err(TestCaseError::fail("text")) };
        prop_assert_eq!(crate::parse_duration(&text), Ok(Duration::from_nanos(nanos)));
    }
}
