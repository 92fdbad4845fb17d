use super::*;

fn joined(settings: &str, lines: &[&str]) -> Vec<String> {
    bodies(&run(&format!("[{{type: recombine, combine_field: body, {settings}}}]"), lines))
}

const BY_FIRST: &str = "is_first_entry: 'body startsWith \"START\"'";
const BY_LAST: &str = "is_last_entry: 'body endsWith \"END\"'";

#[test]
fn records_are_joined_from_a_first_or_up_to_a_last_one() {
    assert_eq!(joined(BY_FIRST, &["START a", "b", "c", "START d"]), ["START a\nb\nc", "START d"]);
    assert_eq!(joined(&format!("{BY_LAST}, combine_with: ' | '"), &["a", "b END", "c"]), ["a | b END", "c"]);
}

#[test]
fn size_and_number_of_joined_records_are_bounded() {
    assert_eq!(
        joined(&format!("{BY_FIRST}, max_batch_size: 2"), &["START a", "b", "c", "d", "START e"]),
        ["START a\nb", "c\nd", "START e"]
    );
    assert_eq!(
        joined(&format!("{BY_LAST}, max_log_size: 10"), &["12345", "67890", "abc END", "x END"]),
        ["12345\n67890", "abc END", "x END"]
    );
    assert_eq!(
        joined(&format!("{BY_FIRST}, max_unmatched_batch_size: 1"), &["a", "b", "START c", "d"]),
        ["a", "b", "START c\nd"]
    );
}

#[test]
fn other_fields_are_those_of_the_oldest_or_the_newest_record() {
    for (overwrite, expected) in [("oldest", "1"), ("newest", "2")] {
        let operators = format!(
            r"[{{type: regex_parser, regex: '^(?P<n>\d)'}}, {{type: recombine, combine_field: body, {BY_LAST}, overwrite_with: {overwrite}}}]"
        );
        let out = run(&operators, &["1 a", "2 b END"]);
        assert_eq!(bodies(&out), ["1 a\n2 b END"]);
        assert_eq!(shown(&out[0].attributes["n"]), expected);
        assert_eq!(out[0].start.offset, 0);
    }
}

#[test]
fn record_without_the_text_is_not_lost() {
    let operators =
        "[{type: json_parser}, {type: recombine, combine_field: attributes.m, is_last_entry: attributes.end == true}]";
    let out = run(operators, &[r#"{"m": "a"}"#, r#"{"x": 1}"#, r#"{"m": "b", "end": true}"#]);
    let found: Vec<String> = out.iter().map(|entry| map_text(&entry.attributes)).collect();
    assert_eq!(found, ["{x: 1.0}", "{m: 'a\nb'}"]);
}

#[test]
fn sources_are_joined_apart_and_bounded() {
    let operators = |most: usize| {
        format!(
            r#"[{{type: regex_parser, regex: '^(?P<s>.)'}}, {{type: recombine, combine_field: body, {BY_LAST}, source_identifier: attributes.s, max_sources: {most}}}]"#
        )
    };
    let lines = ["a1", "b1", "a2 END", "b2 END"];
    assert_eq!(bodies(&run(&operators(2), &lines)), ["a1\na2 END", "b1\nb2 END"]);
    assert_eq!(bodies(&run(&operators(1), &lines)), ["a1", "b1", "a2 END", "b2 END"]);
}

#[test]
fn held_records_are_due_after_the_period_and_known_by_their_position() {
    let mut chain =
        chain(&format!("[{{type: recombine, combine_field: body, {BY_FIRST}, force_flush_period: 300ms}}]"));
    let mut out = Vec::new();
    chain.process(line("START a", 5), &mut out);
    chain.process(line("b", 9), &mut out);
    let due = 1_700_000_000 * SECOND + 5 + 300_000_000;
    assert_eq!((chain.next_deadline(), chain.held_since().map(|position| position.offset)), (Some(due), Some(5)));
    assert!(chain.held_bytes() > 8);
    chain.flush_due(due - 1, &mut out);
    assert_eq!(out, []);
    chain.flush_due(due, &mut out);
    assert_eq!(bodies(&out), ["START a\nb"]);
    assert_eq!((chain.next_deadline(), chain.held_since(), chain.held_bytes()), (None, None, 0));
}

#[test]
fn held_memory_is_bounded() {
    let mut chain = chain(
        r"[{type: regex_parser, regex: '^(?P<s>\d+)'}, {type: recombine, combine_field: body, is_last_entry: 'false', source_identifier: attributes.s}]",
    );
    let long = "x".repeat(8 << 20);
    let mut out = Vec::new();
    for place in 0..20 {
        chain.process(line(&format!("{place} {long}"), place), &mut out);
        assert!(chain.held_bytes() <= 64 << 20);
        if out.len() > 5 {
            return;
        }
    }
    panic!("nothing was passed on");
}

#[test]
fn joined_record_passes_the_operators_behind() {
    let operators =
        format!("[{{type: recombine, combine_field: body, {BY_LAST}}}, {{type: add, field: attributes.k, value: v}}]");
    let out = run(&operators, &["a", "b END", "c"]);
    assert!(out.iter().all(|entry| map_text(&entry.attributes) == "{k: 'v'}"), "{out:?}");
}
