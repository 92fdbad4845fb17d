use super::*;

fn tree(text: &str) -> YamlNode {
    let mut faults = Vec::new();
    let node = parse(text, &mut faults);
    assert_eq!(faults, [], "{text}");
    node.unwrap()
}

fn faults(text: &str) -> Vec<YamlFault> {
    let mut faults = Vec::new();
    parse(text, &mut faults);
    faults
}

fn value(text: &str) -> NodeValue {
    let NodeValue::Map(mut entries) = tree(&format!("key: {text}")).value else { panic!("not a map") };
    entries.remove(0).value.value
}

/// Formats a tree without positions.
fn shape(node: &YamlNode) -> String {
    match &node.value {
        NodeValue::Seq(items) => format!("[{}]", items.iter().map(shape).collect::<Vec<_>>().join(" ")),
        NodeValue::Map(entries) => {
            let entries: Vec<_> = entries.iter().map(|e| format!("{}:{}", e.key.text, shape(&e.value))).collect();
            format!("{{{}}}", entries.join(" "))
        }
        NodeValue::String(text) => text.clone(),
        NodeValue::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn scalars_mean_what_they_mean_to_the_collector() {
    let text = |text: &str| NodeValue::String(text.to_owned());
    let cases = [
        ("", NodeValue::Null),
        ("~", NodeValue::Null),
        ("null", NodeValue::Null),
        ("true", NodeValue::Bool(true)),
        ("FALSE", NodeValue::Bool(false)),
        ("yes", text("yes")),
        ("off", text("off")),
        ("'true'", text("true")),
        ("5", NodeValue::Int(5)),
        ("-5", NodeValue::Int(-5)),
        ("+5", NodeValue::Int(5)),
        ("1_000", NodeValue::Int(1000)),
        ("0x1F", NodeValue::Int(31)),
        ("0o17", NodeValue::Int(15)),
        ("0b101", NodeValue::Int(5)),
        ("0123", NodeValue::Int(83)),
        ("0", NodeValue::Int(0)),
        ("9223372036854775807", NodeValue::Int(i64::MAX)),
        ("9223372036854775808", NodeValue::Float(9_223_372_036_854_775_808.0)),
        ("1.5", NodeValue::Float(1.5)),
        ("1e3", NodeValue::Float(1000.0)),
        (".inf", NodeValue::Float(f64::INFINITY)),
        ("inf", text("inf")),
        ("--5", text("--5")),
        ("1.2.3", text("1.2.3")),
        ("127.0.0.1:4317", text("127.0.0.1:4317")),
        ("1m30s", text("1m30s")),
        ("089", NodeValue::Float(89.0)),
        ("\"5\"", text("5")),
        ("!!str 5", text("5")),
        ("!!float 5", NodeValue::Float(5.0)),
        ("!own 5", NodeValue::Int(5)),
    ];
    for (written, expected) in cases {
        assert_eq!(value(written), expected, "{written:?}");
    }
}

#[test]
fn every_node_knows_its_place() {
    let root = tree("a:\n  b: [one, 'two']\n");
    let NodeValue::Map(entries) = &root.value else { panic!() };
    let NodeValue::Map(inner) = &entries[0].value.value else { panic!() };
    let NodeValue::Seq(items) = &inner[0].value.value else { panic!() };
    let place = |span: TextSpan| (span.line, span.column, span.width);
    assert_eq!(place(entries[0].key.span), (1, 1, 1));
    assert_eq!(place(inner[0].key.span), (2, 3, 1));
    assert_eq!(place(items[0].span), (2, 7, 3));
    assert_eq!(place(items[1].span), (2, 12, 5));
}

#[test]
fn a_key_that_is_there_twice_is_named_with_both_lines() {
    let found = faults("a: 1\nb: 2\na: 3\nb: 4\n");
    let told: Vec<_> = found.iter().map(|fault| (fault.span.line, fault.message.as_str())).collect();
    assert_eq!(
        told,
        [(3, "the key `a` is already defined at line 1"), (4, "the key `b` is already defined at line 2")]
    );
}

#[test]
fn aliases_and_merges_are_written_out() {
    let cases = [
        ("a: &x [1, 2]\nb: *x", "{a:[1 2] b:[1 2]}"),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", "{a:{p:1 q:2} b:{p:1 q:3}}"),
        ("a: &x {p: 1, q: 2}\nb: {q: 3, <<: *x}", "{a:{p:1 q:2} b:{q:3 p:1}}"),
        ("a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc: {<<: [*x, *y]}", "{a:{p:1} b:{p:2 q:2} c:{p:1 q:2}}"),
        ("a: {'<<': 1}", "{a:{<<:1}}"),
    ];
    for (text, expected) in cases {
        assert_eq!(shape(&tree(text)), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    let cases = [
        ("a: [", "not valid YAML"),
        ("a: &x {b: *x}", "contains the alias"),
        ("a: *nobody", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "second YAML document"),
        ("? [a]\n: b\n", "key must be text"),
        ("a: {<<: 5}", "`<<` takes a map"),
        ("a: !!int five", "`!!int`"),
        ("a:\n\tb: 1", "not valid YAML"),
        ("a: @b", "not valid YAML"),
    ];
    for (text, expected) in cases {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text:?}: {found:?}");
        assert!(found[0].message.contains(expected), "{text:?}: {found:?}");
    }
}

#[test]
fn aliases_cannot_be_used_to_fill_memory() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = level - 1;
        let items = vec![format!("*a{before}"); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert!(faults(&bomb)[0].message.contains("more than 200000 values"));
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = |levels: usize| format!("{}{}", "- ".repeat(levels), "x");
    assert_eq!(faults(&deep(MAX_DEPTH)), []);
    assert!(faults(&deep(MAX_DEPTH + 1))[0].message.contains("nested deeper"));
    assert_eq!(faults(&"{a: ".repeat(10_000)).len(), 1);
    assert!(faults(&"#".repeat(MAX_DOCUMENT_BYTES + 1))[0].message.contains("longer than"));

    let mut chain = String::from("a0: &a0 [x]\n");
    for level in 1..=MAX_DEPTH {
        chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(faults(&chain)[0].message.contains("nested deeper"), "aliases count");
}

#[test]
fn nothing_is_null() {
    for text in ["", "# only a comment\n", "---\n", "\n\n"] {
        assert_eq!(tree(text).value, NodeValue::Null, "{text:?}");
    }
}
