use super::*;

const JSON: &str = r#"{"a": "1", "m": {"x": "y", "n": {"z": "deep"}}, "l": ["p", "q"], "b.c": "dot"}"#;

/// The operators behind a parser of JSON, and the attributes that a record has then.
#[track_caller]
fn after_json(operators: &str, expected: &str) {
    attributes(&format!("[{{type: json_parser}}, {operators}]"), JSON, expected);
}

#[test]
fn fields_are_moved_copied_and_removed() {
    let rest = "m: {n: {z: 'deep'}, x: 'y'}";
    after_json(
        "{type: move, from: attributes.a, to: attributes.new}",
        &format!("{{b.c: 'dot', l: ['p', 'q'], {rest}, new: '1'}}"),
    );
    after_json(
        "{type: move, from: 'attributes[\"b.c\"]', to: 'attributes[\"c.d\"]'}",
        &format!("{{a: '1', c.d: 'dot', l: ['p', 'q'], {rest}}}"),
    );
    after_json("{type: move, from: attributes.a, to: attributes.m}", "{b.c: 'dot', l: ['p', 'q'], m: '1'}");
    after_json(
        "{type: move, from: attributes.m.n.z, to: attributes.up.there}",
        "{a: '1', b.c: 'dot', l: ['p', 'q'], m: {n: {}, x: 'y'}, up: {there: 'deep'}}",
    );
    after_json("{type: remove, field: attributes.m.x}", "{a: '1', b.c: 'dot', l: ['p', 'q'], m: {n: {z: 'deep'}}}");
    after_json("{type: remove, field: attributes}", "{}");
    attributes("[{type: copy, from: body, to: attributes.b}]", "text", "{b: 'text'}");
}

#[test]
fn map_that_becomes_the_body_replaces_a_text() {
    let entry = one("[{type: json_parser}, {type: move, from: attributes.m, to: body}]", JSON);
    assert_eq!(shown(&entry.body), "{n: {z: 'deep'}, x: 'y'}");
    assert_eq!(one("[{type: remove, field: body}]", "text").body, LogValue::Null);
}

#[test]
fn missing_field_leaves_the_record_as_it_is() {
    for operator in
        ["move, from: attributes.x, to: body", "copy, from: attributes.x, to: body", "remove, field: attributes.x"]
    {
        let mut chain = chain(&format!("[{{type: {operator}}}]"));
        let mut out = Vec::new();
        chain.process(line("text", 0), &mut out);
        assert_eq!(bodies(&out), ["text"]);
        let failures = chain.take_failures();
        assert!(failures[0].error.to_string().contains("attributes.x") && failures[0].failures == 1, "{failures:?}");
        assert_eq!(chain.take_failures(), []);
    }
}

#[test]
fn values_of_any_type_are_added() {
    attributes(
        "[{type: add, field: attributes.n, value: 5}, {type: add, field: attributes.deep.er, value: [1, {a: b}]}, \
         {type: add, field: attributes.e, value: 'EXPR(body + \"!\")'}]",
        "text",
        "{deep: {er: [1, {a: 'b'}]}, e: 'text!', n: 5}",
    );
    let entry = one("[{type: add, field: resource.r, value: x}, {type: add, field: body, value: new}]", "text");
    assert_eq!((map_text(&entry.resource), shown(&entry.body)), ("{r: 'x'}".into(), "new".into()));
}

#[test]
fn retained_fields_leave_other_parts_of_the_record_whole() {
    after_json("{type: retain, fields: [attributes.a, attributes.m.x, attributes.none]}", "{a: '1', m: {x: 'y'}}");
    let entry = one(
        "[{type: json_parser, parse_to: body}, {type: add, field: attributes.k, value: v}, {type: retain, fields: [body.a]}]",
        JSON,
    );
    assert_eq!((shown(&entry.body), map_text(&entry.attributes)), ("{a: '1'}".into(), "{k: 'v'}".into()));
}

#[test]
fn flattened_map_gives_its_keys_to_its_parent() {
    after_json("{type: flatten, field: attributes.m}", "{a: '1', b.c: 'dot', l: ['p', 'q'], n: {z: 'deep'}, x: 'y'}");
    after_json(
        "{type: flatten, field: attributes.a}",
        "{a: '1', b.c: 'dot', l: ['p', 'q'], m: {n: {z: 'deep'}, x: 'y'}}",
    );
}

#[test]
fn texts_are_replaced_and_made_valid() {
    let replaced =
        one(r"[{type: regex_replace, field: body, regex: 'id=(\d+)', replace_with: 'id=<$1>'}]", "id=1234 id=5");
    assert_eq!(shown(&replaced.body), "id=<1234> id=<5>");
    let plain =
        one("[{type: regex_replace, field: body, regex_name: ansi_control_sequences}]", "\u{1b}[31mred\u{1b}[0m");
    assert_eq!(shown(&plain.body), "red");
    let mut out = Vec::new();
    chain("[{type: sanitize_utf8}]").process(LogEntry::new(LogValue::Text(b"bad \xff".to_vec())), &mut out);
    assert_eq!(bodies(&out), ["bad \u{fffd}"]);
}

#[test]
fn quoted_text_loses_its_quotes_and_escapes() {
    for (quoted, expected) in [
        (r#""a\"b\n\u00e9\x41\101""#, "a\"b\né\x41\x41"),
        ("`a\\n`", "a\\n"),
        ("'x'", "x"),
        ("plain", "plain"),
        ("'xy'", "'xy'"),
        ("\"open", "\"open"),
        (r#""\q""#, r#""\q""#),
    ] {
        assert_eq!(shown(&one("[{type: unquote, field: body}]", quoted).body), expected);
    }
}

#[test]
fn list_becomes_a_map_with_as_many_keys() {
    let operators = "[{type: json_array_parser, parse_to: body}, {type: assign_keys, field: body, keys: [a, b]}]";
    assert_eq!(shown(&one(operators, "[1, \"x\"]").body), "{a: 1, b: 'x'}");
    assert_eq!(shown(&one(operators, "[1]").body), "[1]");
    assert_eq!(shown(&one(operators, "text").body), "text");
}

#[test]
fn condition_chooses_records_and_one_that_fails_skips_the_operator() {
    let operators = r#"[{type: add, field: attributes.hit, value: x, if: 'body startsWith "a" and body != "ab"'}]"#;
    let hits: Vec<bool> = run(operators, &["a", "ab", "b"]).iter().map(|entry| !entry.attributes.is_empty()).collect();
    assert_eq!(hits, [true, false, false]);
    let failing = "[{type: add, field: attributes.k, value: v, if: 'attributes.none.deep == 1'}, {type: add, field: attributes.after, value: v}]";
    attributes(failing, "text", "{after: 'v'}");
    assert_eq!(run("[{type: noop, if: body, on_error: drop}]", &["text"]), []);
}

#[test]
fn filter_drops_what_fits_and_keeps_what_cannot_be_decided() {
    let operators = r#"[{type: filter, expr: 'body contains "drop"'}]"#;
    assert_eq!(bodies(&run(operators, &["keep", "drop", "dropped", "kept"])), ["keep", "kept"]);
    assert_eq!(bodies(&run("[{type: filter, expr: 'attributes.none.deep == 1'}]", &["text"])), ["text"]);
    assert_eq!(run("[{type: filter, expr: 'true', drop_ratio: 0.0}]", &["text"]).len(), 1);
    let lines = vec!["text"; 4000];
    let kept = run("[{type: filter, expr: 'true', drop_ratio: 0.25}]", &lines).len();
    assert!((2700..3300).contains(&kept), "{kept}");
}

#[test]
fn router_keeps_the_order_and_drops_what_no_route_takes() {
    let operators = r#"
- type: router
  routes:
  - {expr: 'body startsWith "j"', output: jj, attributes: {route: 'EXPR(body)'}}
  - {expr: 'attributes.none.deep == 1', output: kk}
  - {expr: 'body startsWith "k"', output: kk}
  default: end
- {type: add, id: jj, field: attributes.r, value: j, output: end}
- {type: add, id: kk, field: attributes.r, value: k}
- {type: noop, id: end}"#;
    let out = run(operators, &["j one", "k two", "other", "j three"]);
    assert_eq!(bodies(&out), ["j one", "k two", "other", "j three"]);
    let found: Vec<String> = out.iter().map(|entry| map_text(&entry.attributes)).collect();
    assert_eq!(found, ["{r: 'j', route: 'j one'}", "{r: 'k'}", "{}", "{r: 'j', route: 'j three'}"]);
    let without_default = r#"[{type: router, routes: [{expr: 'body == "a"', output: n}]}, {type: noop, id: n}]"#;
    assert_eq!(bodies(&run(without_default, &["a", "b"])), ["a"]);
}

#[test]
fn record_with_two_outputs_is_copied() {
    let operators = "
- {type: noop, output: [x, y]}
- {type: add, id: x, field: attributes.to, value: x, output: end}
- {type: add, id: y, field: attributes.to, value: y}
- {type: noop, id: end}";
    let out = run(operators, &["a", "b"]);
    let found: Vec<String> = out.iter().map(|entry| shown(&entry.body) + &map_text(&entry.attributes)).collect();
    assert_eq!(found, ["a{to: 'x'}", "a{to: 'y'}", "b{to: 'x'}", "b{to: 'y'}"]);
}
