use super::*;
use crate::{
    FixedSources,
    decode::{Cursor, DecodeReport},
    receiver::file_log::time_layout::{EpochUnit, TimeForm},
    yaml,
};

/// The operators of a list, and the messages about it: errors and warnings.
fn decoded(text: &str) -> (Option<OperatorGraph>, Vec<String>, Vec<String>) {
    let sources = FixedSources::new();
    let report = DecodeReport::with_sources(&sources);
    let tree = yaml::parse(text, &mut Vec::new()).unwrap();
    let graph = graph(&Cursor::root(&tree), &report);
    let findings = report.into_findings();
    let show = |found: Vec<crate::problem::DocumentFinding>| {
        found.into_iter().map(|found| format!("{}: {}", found.path, found.message)).collect()
    };
    (graph, show(findings.errors), show(findings.warnings))
}

#[track_caller]
fn valid(text: &str) -> Vec<OperatorConfig> {
    let (graph, errors, warnings) = decoded(text);
    assert_eq!((errors, warnings), (Vec::new(), Vec::new()), "{text}");
    graph.unwrap().operators
}

/// Expects exactly one error, with this text in it.
#[track_caller]
fn refused(text: &str, word: &str) {
    let (_, errors, _) = decoded(text);
    assert_eq!(errors.len(), 1, "{text}: {errors:?}");
    assert!(errors.iter().all(|error| error.contains(word)), "{errors:?} do not contain {word}");
}

fn parser(text: &str) -> ParserConfig {
    match valid(&format!("[{text}]")).remove(0).kind {
        OperatorKind::Parser(parser) => *parser,
        other => panic!("{other:?}"),
    }
}

#[test]
fn operator_passes_records_to_the_next_one_or_to_its_output() {
    let operators = valid(
        "
- {type: add, field: attributes.one, value: x, output: last}
- {type: add, field: attributes.two, value: x}
- {type: add, id: last, field: attributes.last, value: x}",
    );
    let outputs: Vec<&[usize]> = operators.iter().map(|operator| operator.outputs.as_slice()).collect();
    assert_eq!(outputs, [&[2][..], &[2], &[]]);
    let ids: Vec<&str> = operators.iter().map(|operator| operator.id.as_str()).collect();
    assert_eq!(ids, ["add", "add1", "last"]);
}

#[test]
fn routes_of_a_router_have_outputs_and_the_default_comes_last() {
    let operators = valid(
        "
- type: router
  routes:
  - {expr: 'body startsWith \"a\"', output: [x, y], attributes: {r: j}}
  default: y
- {type: noop, id: x}
- {type: noop, id: y}",
    );
    let OperatorKind::Router { routes } = &operators[0].kind else { panic!() };
    let outputs: Vec<&[usize]> = routes.iter().map(|route| route.outputs.as_slice()).collect();
    assert_eq!(outputs, [&[1, 2][..], &[2]]);
    assert!(routes[1].condition.is_none());
}

#[test]
fn outputs_that_do_not_exist_or_form_a_circle_are_refused() {
    refused("[{type: noop, output: none}]", "\"none\" does not exist");
    refused("[{type: router, routes: [{expr: 'true', output: none}]}]", "\"none\" does not exist");
    refused("[{type: noop, id: a}, {type: noop, output: a}]", "circle");
    refused("[{type: noop, id: a, output: a}]", "circle");
    refused("[{type: noop, id: a}, {type: noop, id: a}]", "two operators");
}

#[test]
fn output_that_goes_back_without_a_circle_is_accepted() {
    let text = "[{type: noop, output: c}, {type: noop, id: b, output: d}, {type: noop, id: c, output: b}, {type: noop, id: d}]";
    assert_eq!(valid(text)[2].outputs, [1]);
}

#[test]
fn record_with_very_many_ways_is_refused() {
    let mut text = String::new();
    for at in 0..8 {
        let next = at + 1;
        text.push_str(&format!(
            "- {{type: noop, id: s{at}, output: [a{at}, b{at}]}}\n- {{type: noop, id: a{at}, output: s{next}}}\n\
             - {{type: noop, id: b{at}, output: s{next}}}\n"
        ));
    }
    text.push_str("- {type: noop, id: s8}\n");
    refused(&text, "ways through the operators");
}

#[test]
fn operator_without_type_or_of_an_unknown_type_is_refused_by_name() {
    refused("[{field: body}]", "`type`");
    refused("[{type: chop}]", "\"chop\" does not exist");
    refused("[{type: stdin}]", "\"stdin\" is not supported");
    refused("[{type: noop, on_error: cry}]", "on_error");
    refused("[{type: remove, field: colour}]", "`field`");
    refused("[{type: move, from: attributes, to: body}]", "cannot be all of `attributes`");
}

#[test]
fn unknown_field_of_an_operator_is_a_warning() {
    let (graph, errors, warnings) = decoded("[{type: container, add_metadata_from_file_path: true}]");
    assert!(graph.is_some() && errors.is_empty(), "{errors:?}");
    assert!(warnings.iter().all(|warning| warning.contains("add_metadata_from_file_path")) && warnings.len() == 1);
    let (_, _, warnings) = decoded("[{type: noop, if: 'severity_number > 1'}]");
    assert!(warnings.iter().any(|warning| warning.contains("severity_number")), "{warnings:?}");
}

#[test]
fn conditions_are_checked_with_their_column() {
    refused("[{type: noop, if: 'body =='}]", "expected a value and found the end at column 8");
    refused("[{type: filter, expr: '1 + 1'}]", "condition");
    refused("[{type: add, field: body, value: 'EXPR(1 +)'}]", "column 9");
    refused("[{type: filter, expr: 'true', drop_ratio: 2.0}]", "drop_ratio");
}

#[test]
fn parser_has_parsers_of_time_severity_and_trace_in_it() {
    let parser = parser(
        "{type: json_parser, parse_to: attributes.x, timestamp: {parse_from: attributes.ts, layout_type: epoch, layout: ms}, \
         severity: {parse_from: attributes.l, mapping: {error: [oops, {min: 500, max: 599}], warn: 4xx}}, trace: {}}",
    );
    assert_eq!(parser.to, RecordField::parse("attributes.x").unwrap());
    assert_eq!(parser.timestamp.unwrap().layout.form, TimeForm::Epoch(EpochUnit::Milliseconds));
    let mapping = parser.severity.unwrap().mapping;
    let found: Vec<u8> =
        ["OOPS", "503", "404", "warning", "24", "x", "err3"].iter().map(|text| mapping.find(text)).collect();
    assert_eq!(found, [17, 17, 13, 13, 24, 0, 19]);
    assert_eq!(parser.trace.unwrap().trace_id, RecordField::parse("body.trace_id").unwrap());
}

#[test]
fn parsers_without_what_they_need_are_refused() {
    for (text, word) in [
        ("{type: regex_parser, regex: '(x)'}", "no named group"),
        ("{type: regex_parser, regex: '('}", "regular expression"),
        ("{type: regex_parser}", "`regex_parser` needs"),
        ("{type: time_parser, parse_from: body, layout: '%Y', location: Mars/Base}", "Mars/Base"),
        ("{type: time_parser, parse_from: body}", "`layout` is missing"),
        ("{type: time_parser, layout: '%Y'}", "`parse_from` is missing"),
        ("{type: severity_parser}", "`parse_from` is missing"),
        ("{type: key_value_parser, delimiter: ' '}", "must differ"),
        ("{type: csv_parser}", "`header`"),
        ("{type: csv_parser, header: a}", "columns"),
        ("{type: syslog_parser}", "`protocol`"),
        ("{type: syslog_parser, protocol: rfc3164, non_transparent_framing_trailer: LF}", "rfc5424"),
        ("{type: container, format: podman}", "`format`"),
        ("{type: json_parser, parse_to: body, body: attributes.m}", "parse_to: body"),
    ] {
        refused(&format!("[{text}]"), word);
    }
}

#[test]
fn recombine_needs_one_boundary_and_a_field() {
    let OperatorKind::Recombine(config) =
        valid("[{type: recombine, combine_field: body, is_last_entry: 'true', max_batch_size: 0}]").remove(0).kind
    else {
        panic!()
    };
    assert_eq!((config.max_batch_size, config.max_unmatched_batch_size), (None, Some(100)));
    assert!(!config.boundary_is_first);
    refused("[{type: recombine, combine_field: body, is_first_entry: 'true', is_last_entry: 'true'}]", "only one of");
    refused("[{type: recombine, is_last_entry: 'true'}]", "`combine_field` is missing");
    refused("[{type: recombine, combine_field: body}]", "`is_first_entry` or `is_last_entry`");
}
