//! Loading any text ends with a result.

#![allow(clippy::unwrap_used, clippy::panic)]

use kubewake_config::{FixedSources, load};
use proptest::prelude::*;

fn sources() -> FixedSources {
    FixedSources::new()
        .with_env("A", "5")
        .with_env("B", "{a: ${env:A}, b: [x, ${env:C}]}")
        .with_env("C", "${env:B}")
        .with_env("D", "é$${env:A}")
        .with_file("f", "receivers: {otlp: }\n")
}

/// Loads a text. The result must be printable, and its problems must be within the text.
fn settle(text: &str) {
    let lines = text.lines().count() + 1;
    match load(text, &sources()) {
        Ok(loaded) => assert!(loaded.warnings.iter().all(|warning| warning.position.line <= lines)),
        Err(errors) => {
            assert!(!errors.problems().is_empty());
            assert!(errors.problems().iter().all(|problem| problem.position.line <= lines), "{errors}");
            assert!(errors.to_string().contains("error"));
        }
    }
}

/// Words with a meaning somewhere in a document.
const WORDS: &[&str] = &[
    "receivers",
    "processors",
    "exporters",
    "extensions",
    "service",
    "pipelines",
    "telemetry",
    "metrics",
    "logs",
    "traces",
    "otlp",
    "otlp/x",
    "otlphttp",
    "debug",
    "file",
    "nop",
    "batch",
    "memory_limiter",
    "protocols",
    "grpc",
    "http",
    "endpoint",
    "tls",
    "auth",
    "authenticator",
    "headers",
    "timeout",
    "sending_queue",
    "retry_on_failure",
    "enabled",
    "batch",
    "sizer",
    "storage",
    "cert_file",
    "key_pem",
    "token",
    "basicauth",
    "bearertokenauth",
    "oauth2client",
    "health_check",
    "readers",
    "pull",
    "exporter",
    "prometheus",
    "host",
    "port",
    "resource",
    "level",
    "path",
    "rotation",
    "compression",
    "keepalive",
    "min_version",
    "max_version",
    "check_interval",
    "limit_mib",
    "queue_size",
    "verbosity",
    "cors",
    "compression_algorithms",
    "metadata_keys",
    "endpoint_params",
    "<<",
];

const VALUES: &[&str] = &[
    "",
    "~",
    "true",
    "yes",
    "5",
    "-1",
    "1.5",
    "1e400",
    "0123",
    "5s",
    "-1s",
    "soon",
    "'5'",
    "host:4317",
    "http://h",
    "${env:A}",
    "${env:B}",
    "${env:C}",
    "${env:D}",
    "${env:NONE}",
    "${file:f}",
    "${file:none}",
    "${x:y}",
    "${",
    "$$",
    "a${env:A}b",
    "otlp",
    "debug",
    "[otlp]",
    "[otlp, otlp/x, 5]",
    "{}",
    "[]",
    "{a: b}",
    "none",
    "bytes",
    "gzip",
    "1.3",
    "*a",
    "&a x",
    "ünï",
    "\"\\n\"",
];

/// Trees that look like documents.
fn tree() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(VALUES).prop_map(str::to_owned);
    leaf.prop_recursive(8, 64, 6, |inner| {
        let entry = (prop::sample::select(WORDS), inner.clone());
        prop_oneof![
            prop::collection::vec(entry, 1..6).prop_map(|entries| {
                let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                format!("{{{}}}", entries.join(", "))
            }),
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
        ]
    })
}

/// The sections of a document, each with some tree.
fn document() -> impl Strategy<Value = String> {
    let section =
        prop::sample::select(&["receivers", "processors", "exporters", "extensions", "service", "&a receivers"][..]);
    prop::collection::vec((section, tree()), 0..6)
        .prop_map(|sections| sections.iter().map(|(name, tree)| format!("{name}: {tree}\n")).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_settles(text in any::<String>()) {
        settle(&text);
    }

    #[test]
    fn any_text_of_yaml_characters_settles(text in "[-a-c0-2:{}\\[\\],&*!|>'\"%@`#?~<. \t\n$é\u{2028}\u{feff}]{0,80}") {
        settle(&text);
    }

    #[test]
    fn any_tree_settles(text in document()) {
        settle(&text);
    }

    #[test]
    fn a_valid_document_with_anything_put_in_settles(at in 0_usize..2000, put in "[-a-c0-2:{}\\[\\],&*!|>'\"# \t\n$]{0,5}") {
        let mut text = include_str!("golden/valid.yaml").to_owned();
        let at = at.min(text.len());
        text.insert_str(at, &put);
        settle(&text);
    }
}
