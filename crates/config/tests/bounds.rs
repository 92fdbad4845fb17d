//! Bounds of time and memory for hostile documents.

#![allow(clippy::unwrap_used, clippy::panic)]

use kubewake_config::{FixedSources, load};

/// Documents of some hundred kilobytes that are slow for any quadratic algorithm.
fn documents() -> Vec<(&'static str, String)> {
    let many = |count: usize, write: &dyn Fn(usize) -> String| (0..count).map(write).collect::<String>();
    vec![
        ("unknown fields", format!("exporters:\n  otlp:\n{}", many(10_000, &|n| format!("    field{n}: {n}\n")))),
        ("unknown fields in a line", format!("exporters: {{otlp: {{{}}}}}", many(10_000, &|n| format!("f{n}: {n}, ")))),
        ("unknown components", format!("exporters:\n{}", many(10_000, &|n| format!("  otlp{n}: \n")))),
        ("broken components", format!("exporters:\n{}", many(8_000, &|n| format!("  otlp/{n}: {{timeout: x}}\n")))),
        (
            "dangling references",
            format!(
                "exporters:\n{}service:\n  pipelines:\n    traces:\n      exporters: [{}]\n",
                many(5_000, &|n| format!("  nop/{n}: \n")),
                many(5_000, &|n| format!("none/{n}, "))
            ),
        ),
        ("twice", many(10_000, &|n| format!("key{}: \n", n % 2))),
        ("references", format!("a: \"{}\"", "${env:A}".repeat(900))),
        ("variables that are not set", many(8_000, &|n| format!("k{n}: ${{env:V{n}}}\n"))),
        ("dollars", format!("a: \"{}\"", "$".repeat(1_000_000))),
        ("opened and never closed", format!("a: \"{}}}\"", "${".repeat(400_000))),
        ("escaped", format!("a: \"{}\"", "$${x}".repeat(200_000))),
        ("one long word", format!("{}: 1", "a".repeat(1000))),
        ("list of lists", "- [".repeat(300_000)),
        ("long text", format!("receivers: \"{}\"", "x".repeat(1_000_000))),
    ]
}

#[test]
fn every_document_settles_soon() {
    let sources = FixedSources::new().with_env("A", "x");
    for (name, text) in documents() {
        // A quadratic algorithm would take minutes here.
        let length = load(&text, &sources).unwrap_err().to_string().len();
        assert!(length < 8 << 20, "{name} shows {length} bytes");
    }
}

#[test]
fn there_is_an_end_to_what_is_shown() {
    let text: String = (0..5000).map(|n| format!("key{n}: \n")).collect();
    let errors = load(&text, &FixedSources::new()).unwrap_err();
    assert_eq!(errors.problems().len(), 1000);
    assert!(errors.to_string().ends_with("5002 errors, of which 1000 are shown"), "{errors}");
}
