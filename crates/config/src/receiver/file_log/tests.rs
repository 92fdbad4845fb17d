use std::time::Duration;

use super::*;
use crate::{
    FixedSources,
    decode::{Cursor, DecodeReport},
    yaml,
};

/// The settings of a text, and the messages about it: errors and warnings.
fn decoded(text: &str) -> (FileLogReceiver, Vec<String>, Vec<String>) {
    let sources = FixedSources::new();
    let report = DecodeReport::with_sources(&sources);
    let tree = yaml::parse(text, &mut Vec::new()).unwrap();
    let receiver = FileLogReceiver::decode(&Cursor::root(&tree), &report).unwrap();
    let findings = report.into_findings();
    let show = |found: Vec<crate::problem::DocumentFinding>| {
        found.into_iter().map(|found| format!("{}: {}", found.path, found.message)).collect()
    };
    (receiver, show(findings.errors), show(findings.warnings))
}

#[track_caller]
fn valid(text: &str) -> FileLogReceiver {
    let (receiver, errors, warnings) = decoded(text);
    assert_eq!((errors, warnings), (Vec::new(), Vec::new()), "{text}");
    receiver
}

/// Expects exactly one error, with these words in it.
#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let (_, errors, _) = decoded(text);
    assert_eq!(errors.len(), 1, "{errors:?}");
    for word in words {
        assert!(errors.iter().all(|error| error.contains(word)), "{errors:?} do not contain {word}");
    }
}

#[test]
fn settings_that_are_absent_have_the_defaults_of_the_collector() {
    let receiver = valid("include: [/var/log/*.log]");
    assert_eq!(receiver, FileLogReceiver { include: vec!["/var/log/*.log".into()], ..FileLogReceiver::default() });
    assert_eq!(receiver.max_log_size, 1 << 20);
    assert_eq!(receiver.force_flush_period, Some(Duration::from_millis(500)));
    assert!(receiver.file_attributes.name && !receiver.file_attributes.path);
}

#[test]
fn all_settings_are_read() {
    let receiver = valid(
        "
include: [/a/*]
exclude: [/a/b*]
exclude_older_than: 1h
start_at: beginning
poll_interval: 50ms
fingerprint_size: 1kb
initial_buffer_size: 16KiB
max_log_size: 2MiB
max_log_size_behavior: truncate
max_concurrent_files: 2
max_batches: 1
encoding: UTF-16LE
multiline: {line_end_pattern: END, omit_pattern: true}
force_flush_period: 0s
preserve_trailing_whitespaces: true
include_file_path: true
include_file_record_number: true
compression: auto
retry_on_failure: {enabled: true, initial_interval: 1s, max_interval: 2s, max_elapsed_time: 0}
delete_after_read: true
on_truncate: read_new
polls_to_archive: 3
storage: file_storage/logs
attributes: {a: b, c: 'EXPR(body)'}
resource: {r: x}",
    );
    assert_eq!(receiver.fingerprint_size, 1000);
    assert_eq!(receiver.max_log_size, 2 << 20);
    assert_eq!(receiver.max_log_size_behavior, LongLineBehavior::Truncate);
    assert_eq!(receiver.encoding, TextEncoding::Utf16Le);
    assert!(matches!(receiver.multiline, Some(MultilinePattern::LineEnd { omit: true, .. })));
    assert_eq!(receiver.force_flush_period, None);
    assert_eq!(receiver.compression, FileCompression::Auto);
    assert_eq!(receiver.on_truncate, TruncateBehavior::ReadNew);
    assert_eq!(receiver.storage.as_ref().map(ComponentId::as_str), Some("file_storage/logs"));
    assert_eq!(receiver.attributes.get("a").and_then(TextTemplate::as_text), Some("b"));
    assert_eq!(receiver.attributes.get("c").and_then(TextTemplate::as_text), None);
}

#[test]
fn settings_that_cannot_work_are_refused_by_name() {
    refused("start_at: end", &["include"]);
    refused("include: []", &["include"]);
    refused("include: ['/x/[.log']", &["include::0", "/x/[.log", "column 4"]);
    for (setting, word) in [
        ("start_at: middle", "middle"),
        ("fingerprint_size: 8", "at least 16 bytes"),
        ("max_log_size: 0", "`max_log_size` must be positive"),
        ("max_log_size_behavior: fold", "max_log_size_behavior"),
        ("max_concurrent_files: 0", "`max_concurrent_files` must be positive"),
        ("encoding: klingon", "klingon"),
        ("multiline: {line_start_pattern: a, line_end_pattern: b}", "line_start_pattern"),
        ("multiline: {line_start_pattern: '('}", "regular expression"),
        ("attributes: {n: 5}", "attributes::n"),
        ("attributes: {n: 'EXPR(1 +)'}", "column 9"),
        ("header: {pattern: '^#', metadata_operators: [{type: noop}]}", "`start_at: end`"),
        ("delete_after_read: true", "`start_at: end`"),
        ("on_truncate: forget", "on_truncate"),
        ("colour: red", "colour"),
        ("poll_interval: 0s", "poll_interval"),
    ] {
        refused(&format!("include: [/x]\n{setting}"), &[word]);
    }
}

#[test]
fn settings_without_effect_are_warned_about() {
    let (_, errors, warnings) = decoded("include: [/x]\nacquire_fs_lock: true\ncompression: zip");
    assert!(errors.is_empty(), "{errors:?}");
    let [compression, lock] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(lock.contains("acquire_fs_lock") && compression.contains("zip"), "{warnings:?}");
}

#[test]
fn header_has_a_pattern_and_operators() {
    let text =
        "{include: [/x], start_at: beginning, header: {pattern: '^#', metadata_operators: [{type: json_parser}]}}";
    let header = valid(text).header.unwrap();
    assert_eq!((header.pattern.as_str(), header.metadata_operators.operators.len()), ("^#", 1));
    refused("{include: [/x], start_at: beginning, header: {pattern: '^#'}}", &["metadata_operators"]);
}

#[test]
fn ordering_needs_a_group_of_its_expression() {
    let receiver = valid(
        "
include: [/x]
ordering_criteria:
  regex: 'f-(?P<n>\\d+)-(?P<d>\\d{8})'
  top_n: 0
  sort_by:
  - {sort_type: numeric, regex_key: n}
  - {sort_type: timestamp, regex_key: d, layout: '%Y%m%d', location: Europe/Berlin, ascending: true}
  - {sort_type: mtime}",
    );
    let ordering = receiver.ordering.unwrap();
    assert_eq!((ordering.top_n, ordering.sort_by.len()), (None, 3));
    let default = valid("{include: [/x], ordering_criteria: {sort_by: [{sort_type: mtime}]}}").ordering.unwrap();
    assert_eq!(default.top_n, Some(1));
    for (criteria, word) in [
        ("{sort_by: [{sort_type: numeric, regex_key: n}]}", "`regex`"),
        ("{regex: '(?P<n>x)', sort_by: [{sort_type: numeric, regex_key: m}]}", "no group named"),
        ("{regex: '(?P<n>x)', sort_by: [{sort_type: size, regex_key: n}]}", "sort_type"),
    ] {
        refused(&format!("include: [/x]\nordering_criteria: {criteria}"), &[word]);
    }
}

#[test]
fn settings_are_written_as_they_are_read() {
    for text in [
        "include: [/a]",
        "{include: ['/a/*'], exclude: ['/a/b*'], exclude_older_than: 1h, ordering_criteria: {regex: '(?P<n>[0-9]+)', \
         top_n: 2, sort_by: [{sort_type: numeric, regex_key: n, ascending: true}]}, start_at: beginning, \
         poll_interval: 50ms, fingerprint_size: 1kb, max_log_size: 2MiB, max_log_size_behavior: truncate, \
         max_concurrent_files: 5, encoding: utf-16be, multiline: {line_start_pattern: '^a', omit_pattern: true}, \
         force_flush_period: 0s, preserve_leading_whitespaces: true, preserve_trailing_whitespaces: true, \
         include_file_name: false, include_file_path: true, include_file_name_resolved: true, \
         include_file_path_resolved: true, include_file_owner_name: true, include_file_owner_group_name: true, \
         include_file_permissions: true, include_file_record_number: true, include_file_record_offset: true, storage: \
         file_storage/x, compression: auto, delete_after_read: true, on_truncate: read_new, header: {pattern: '^#', \
         metadata_operators: [{type: noop}]}, attributes: {a: 'b-EXPR(body)'}, resource: {c: $d}, operators: [{type: \
         container, id: c}, {type: router, routes: [{expr: 'body == nil', output: last}], default: last}, {type: add, \
         field: attributes.x, value: [1, 2.5, 'three', true], id: last}]}",
    ] {
        let receiver = valid(text);
        let written = receiver.encode().to_yaml().replace("$$", "$");
        assert_eq!(valid(&written), receiver, "{written}");
    }
}

#[test]
fn settings_for_logs_of_containers_are_read_and_written() {
    let receiver = valid(
        "
include: [/var/log/pods/*/*/*.log]
operators: [{type: container}]
body_parsing: {json: true, severity: true}
join_stack_traces: true
link_directories: [/var/lib/docker/containers]
",
    );
    let parsing = BodyParsing { json: true, severity: true, ..BodyParsing::default() };
    let expected = FileLogReceiver {
        include: vec!["/var/log/pods/*/*/*.log".into()],
        operators: OperatorGraph::for_containers(),
        body_parsing: parsing,
        joins_stack_traces: true,
        link_directories: Some(vec!["/var/lib/docker/containers".into()]),
        ..FileLogReceiver::default()
    };
    assert_eq!(receiver, expected);
    assert_eq!(valid("{include: [/a], link_directories: []}").link_directories, Some(Vec::new()));
    refused("{include: [/a], link_directories: [b]}", &["link_directories", "is not an absolute path"]);
    refused("{include: [/a], body_parsing: {message: true}}", &["body_parsing::message: `message` needs `json`"]);
    refused("{include: [/a], body_parsing: {yaml: true}}", &["yaml"]);
}

#[test]
fn directory_of_a_pattern_is_located_where_the_process_has_it() {
    struct BelowRoot;
    impl crate::ConfigSources for BelowRoot {
        fn env(&self, _: &str) -> Option<String> {
            None
        }

        fn read(&self, _: &Path) -> std::io::Result<String> {
            Err(std::io::ErrorKind::NotFound.into())
        }

        fn locate(&self, path: &Path) -> PathBuf {
            Path::new("/root[1]").join(path.strip_prefix("/").unwrap_or(path))
        }
    }
    let include = |pattern: &str| {
        let text = format!("include: ['{pattern}']");
        let report = DecodeReport::with_sources(&BelowRoot);
        let tree = yaml::parse(&text, &mut Vec::new()).unwrap();
        FileLogReceiver::decode(&Cursor::root(&tree), &report).unwrap().include.concat()
    };
    assert_eq!(include("/var/log/pods/*_*/*/*.log"), r"/root\[1\]/var/log/pods/*_*/*/*.log");
    assert_eq!(include("/var/log/a?.log"), r"/root\[1\]/var/log/a?.log");
    assert_eq!(include("*.log"), "*.log");
    assert_eq!(include("/*.log"), "/*.log", "the root has no name");
}
