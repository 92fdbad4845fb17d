use super::*;
use crate::FixedSources;

fn sources() -> FixedSources {
    let chain = (0..2000).fold(FixedSources::new(), |sources, n| {
        sources.with_env(format!("CHAIN{n}"), format!("${{env:CHAIN{}}}", n + 1))
    });
    chain
        .with_env("HOST", "backend")
        .with_env("PORT", "4317")
        .with_env("ZERO", "0123")
        .with_env("YES", "true")
        .with_env("MAP", "{a: 1, b: [x, '${env:HOST}']}")
        .with_env("EMPTY", "")
        .with_env("NAME", "HOST")
        .with_env("SELF", "${env:SELF}")
        .with_env("GROW", "x${env:GROW}")
        .with_env("DOLLARS", "a$$b")
        .with_env("QUOTED", "'quoted'")
        .with_env("BROKEN", "{a: ")
        .with_env("JOINED", "${env:PORT}0")
        .with_file("dir/token", "abc\n")
        .with_file("/etc/part.yaml", "endpoint: ${env:HOST}:1\nsize: 5\n")
}

/// Expands a value. Returns it, its original text, errors and warnings.
fn expanded(text: &str) -> (NodeValue, Option<String>, Vec<String>, Vec<String>) {
    let report = DecodeReport::default();
    let mut root = YamlNode::new(NodeValue::String(text.to_owned()), TextSpan::start());
    expand(&mut root, &sources(), &report);
    let crate::decode::DocumentFindings { errors, warnings, .. } = report.into_findings();
    let told = |findings: Vec<DocumentFinding>| findings.into_iter().map(|finding| finding.message).collect();
    let original = root.origin.and_then(|origin| origin.text.clone());
    (root.value, original, told(errors), told(warnings))
}

#[test]
fn references_inside_a_text_become_text() {
    let cases = [
        ("${env:HOST}:${env:PORT}", "backend:4317"),
        ("${HOST}:1", "backend:1"),
        ("x${env:NOBODY:-y}z", "xyz"),
        ("x${env:EMPTY:-y}z", "xz"),
        ("x${env:NOBODY:-}z", "xz"),
        ("x${env:NOBODY:-a:-b}z", "xa:-bz"),
        ("${env:${env:NAME}}:1", "backend:1"),
        ("$HOST", "$HOST"),
        ("$$HOST", "$HOST"),
        ("$${env:HOST}", "${env:HOST}"),
        ("$$${env:HOST}", "$backend"),
        ("$${env:HOST} ${env:HOST}", "${env:HOST} backend"),
        ("x${env:DOLLARS}", "xa$b"),
        ("${env:HOST", "${env:HOST"),
        ("} ${env:HOST}", "} backend"),
        ("a}b", "a}b"),
        ("x${env:ZERO}", "x0123"),
        ("${file:dir/token}x", "abc\nx"),
        ("${env:JOINED}", "43170"),
    ];
    for (text, expected) in cases {
        let (value, _, errors, _) = expanded(text);
        assert_eq!((value, errors), (NodeValue::String(expected.into()), vec![]), "{text}");
    }
}

#[test]
fn a_whole_reference_is_yaml_and_keeps_its_text() {
    let cases = [
        ("${env:PORT}", NodeValue::Int(4317), "4317"),
        ("${env:ZERO}", NodeValue::Int(83), "0123"),
        ("${env:YES}", NodeValue::Bool(true), "true"),
        ("${env:EMPTY}", NodeValue::Null, ""),
        ("${env:NOBODY:-1.5}", NodeValue::Float(1.5), "1.5"),
        ("${env:QUOTED}", NodeValue::String("'quoted'".into()), "'quoted'"),
        ("${env:BROKEN}", NodeValue::String("{a: ".into()), "{a: "),
        ("${file:dir/token}", NodeValue::String("abc\n".into()), "abc\n"),
        ("${env:DOLLARS}", NodeValue::String("a$b".into()), "a$b"),
    ];
    for (text, expected, original) in cases {
        let (value, found, errors, _) = expanded(text);
        assert_eq!((value, found.as_deref(), errors), (expected, Some(original), vec![]), "{text}");
    }
}

#[test]
fn a_reference_can_bring_a_map_with_references_in_it() {
    let (value, text, errors, _) = expanded("${env:MAP}");
    let NodeValue::Map(entries) = value else { panic!("not a map: {value:?}") };
    let NodeValue::Seq(items) = &entries[1].value.value else { panic!() };
    assert_eq!(entries[0].value.value, NodeValue::Int(1));
    assert_eq!(items[1].value, NodeValue::String("backend".into()));
    assert_eq!(text.as_deref(), Some("{a: 1, b: [x, 'backend']}"));
    assert_eq!(errors, [""; 0]);
    let NodeValue::Map(entries) = expanded("${file:/etc/part.yaml}").0 else { panic!() };
    assert_eq!(entries[0].value.value, NodeValue::String("backend:1".into()));
}

#[test]
fn what_has_no_value_is_an_error() {
    let cases = [
        ("${vault:x}", "the scheme `vault` is not supported"),
        ("${https://example.com}", "the scheme `https` is not supported"),
        ("${a:b}", "the reference is not valid"),
        ("${}", "the name of the environment variable is not valid"),
        ("${env:A B}", "the name of the environment variable is not valid"),
        ("${env:1A}", "the name of the environment variable is not valid"),
        ("${env:A$B}", "contains a `$`"),
        ("${file:/nowhere}", "failed to read the file /nowhere"),
        ("${env:SELF}", "refers to itself"),
        ("${env:GROW}", "refers to itself"),
        ("x${env:SELF}", "refers to itself"),
        ("${env:CHAIN0}", "refers to itself"),
    ];
    for (text, expected) in cases {
        let (value, _, errors, _) = expanded(text);
        assert_eq!(value, NodeValue::Bad, "{text}");
        assert!(errors.len() == 1 && errors[0].contains(expected), "{text}: {errors:?}");
    }
}

#[test]
fn a_variable_that_is_not_set_is_empty_and_warned_about() {
    let (value, _, errors, warnings) = expanded("${env:NOBODY}");
    assert_eq!((value, errors), (NodeValue::Null, vec![]));
    assert_eq!(warnings, ["the environment variable `NOBODY` is not set; its value is empty"]);
    assert_eq!(expanded("${env:EMPTY}").3, [""; 0]);
    assert_eq!(expanded("${env:NOBODY:-}").3, [""; 0]);
}

#[test]
fn references_cannot_be_used_to_fill_memory() {
    let doubling = (0..40).fold(FixedSources::new(), |sources, n| {
        let next = format!("${{env:D{}}}", n + 1);
        sources.with_env(format!("D{n}"), format!("{next}{next}"))
    });
    let wide = doubling.with_env("BIG", "x".repeat(1 << 20)).with_env("NEST", "[ ${env:NEST}, ${env:NEST} ]");
    for text in [
        "x${env:D0}",
        "${env:D0}",
        "${env:BIG}${env:BIG}${env:BIG}${env:BIG}${env:BIG}${env:BIG}${env:BIG}${env:BIG}${env:BIG}",
        "${env:NEST}",
    ] {
        let report = DecodeReport::default();
        let mut root = YamlNode::new(NodeValue::String(text.to_owned()), TextSpan::start());
        expand(&mut root, &wide, &report);
        assert!(report.errors() > 0, "{text}");
        assert!(root.count() <= MAX_NODES);
    }
}

#[test]
fn files_that_were_read_are_known() {
    let report = DecodeReport::default();
    let mut root = YamlNode::new(NodeValue::String("${file:dir/token}${file:/nowhere}".into()), TextSpan::start());
    let files = expand(&mut root, &sources(), &report);
    assert_eq!(files.into_iter().collect::<Vec<_>>(), [PathBuf::from("/nowhere"), PathBuf::from("dir/token")]);
}
