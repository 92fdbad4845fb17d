use kubewake_config::file_log::OperatorGraph;

use super::*;
use crate::{ContainerOnly, parse_container_path};

const PATH: &str = "/var/log/pods/default_shop-1_4b9a-00aa/app/0.log";

fn run_in(operators: &str, lines: &[&str]) -> Vec<LogEntry> {
    let mut chain = chain(operators);
    let mut out = Vec::new();
    for (place, text) in lines.iter().enumerate() {
        let mut entry = line(text, place as u64);
        entry.attributes.insert("log.file.path".into(), PATH.into());
        chain.process(entry, &mut out);
    }
    chain.flush_all(&mut out);
    for entry in &mut out {
        entry.attributes.remove("log.file.path");
    }
    out
}

fn shown_records(entries: &[LogEntry]) -> Vec<String> {
    let time = |entry: &LogEntry| entry.timestamp % (1000 * SECOND) / 1_000_000;
    let show = |entry: &LogEntry| format!("{} {} {}", time(entry), shown(&entry.body), map_text(&entry.attributes));
    entries.iter().map(show).collect()
}

#[test]
fn lines_of_all_runtimes_are_read() {
    let lines = [
        "2023-11-14T22:13:20.123456789Z stdout F hello",
        "2023-11-15T00:13:20.5+02:00 stderr F world",
        r#"{"log":"docker\n","stream":"stdout","attrs":{"tag":"t"},"time":"2023-11-14T22:13:21Z"}"#,
        "2023-11-14T22:13:20Z stdout F",
    ];
    let out = run_in("[{type: container}]", &lines);
    assert_eq!(
        shown_records(&out),
        [
            "123 hello {log.iostream: 'stdout', logtag: 'F'}",
            "500 world {log.iostream: 'stderr', logtag: 'F'}",
            "1000 docker\n {attrs: {tag: 't'}, log.iostream: 'stdout'}",
            "0  {log.iostream: 'stdout', logtag: 'F'}",
        ]
    );
    assert_eq!(
        map_text(&out[0].resource),
        "{k8s.container.name: 'app', k8s.container.restart_count: '0', k8s.namespace.name: 'default', \
         k8s.pod.name: 'shop-1', k8s.pod.uid: '4b9a-00aa'}"
    );
}

#[test]
fn parts_are_joined_for_each_stream() {
    let lines = [
        "2023-11-14T22:13:20Z stdout P o1-",
        "2023-11-14T22:13:21Z stderr P e1-",
        "2023-11-14T22:13:22Z stdout F o2",
        "2023-11-14T22:13:23Z stderr F e2",
        "2023-11-14T22:13:24Z stdout P open",
    ];
    let out = run_in("[{type: container}]", &lines);
    assert_eq!(
        shown_records(&out),
        [
            "0 o1-o2 {log.iostream: 'stdout', logtag: 'P'}",
            "1000 e1-e2 {log.iostream: 'stderr', logtag: 'P'}",
            "4000 open {log.iostream: 'stdout', logtag: 'P'}",
        ]
    );
    assert_eq!(out[1].start.offset, 1);
}

#[test]
fn joined_line_is_bounded() {
    let part = |tag: &str, text: &str| format!("2023-11-14T22:13:20Z stdout {tag} {text}");
    let lines = [part("P", "aaaaaaaa"), part("P", "bbbbbbbb"), part("F", "cccccccc"), part("F", "next")];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let out = run_in("[{type: container, max_log_size: 10}]", &lines);
    assert_eq!(bodies(&out), ["aaaaaaaabbbbbbbb", "cccccccc", "next"]);
}

#[test]
fn format_that_is_set_refuses_the_times_of_the_other() {
    let (zulu, offset) = ("2023-11-14T22:13:20Z stdout F x", "2023-11-15T00:13:20+02:00 stdout F x");
    assert_eq!(bodies(&run_in("[{type: container, format: containerd}]", &[zulu, offset])), ["x", offset]);
    assert_eq!(bodies(&run_in("[{type: container, format: crio}]", &[zulu, offset])), [zulu, "x"]);
}

#[test]
fn line_of_another_kind_is_sent_or_dropped() {
    let lines = ["plain text", "2023-99-99T22:13:20Z stdout F hello"];
    let out = run_in("[{type: container}]", &lines);
    assert_eq!(bodies(&out), lines);
    assert_eq!(
        map_text(&out[1].attributes),
        "{log: 'hello', logtag: 'F', stream: 'stdout', time: '2023-99-99T22:13:20Z'}"
    );
    assert_eq!(run_in("[{type: container, on_error: drop}]", &lines), []);
}

#[test]
fn path_is_that_of_a_pod_or_says_nothing() {
    let found = parse_container_path("/x/kube-system_node.local_00-1f/coredns/3.log").unwrap();
    let values: Vec<&str> = found.iter().map(|(_, value)| *value).collect();
    assert_eq!(values, ["kube-system", "node.local", "00-1f", "coredns", "3"]);
    for path in [
        "/x/ns_pod_0a/c.d/1.log",
        "/x/ns_pod_zz/c/1.log",
        "/x/ns_pod_0a/c/1.log.20231114-221320.gz",
        "/x/ns_pod/c/1.log",
        "/x/ns_pod_0a_b/c/1.log",
        "/x/ns_pod_0a/c/x.log",
        "ns_pod_0a/c/1.log",
        "",
    ] {
        assert_eq!(parse_container_path(path), None, "{path}");
    }
}

#[test]
fn parts_are_joined_even_if_the_path_says_nothing() {
    let lines = ["2023-11-14T22:13:20Z stdout P a", "2023-11-14T22:13:20Z stdout F b"];
    assert_eq!(bodies(&run("[{type: container}]", &lines)), ["ab"]);
}

fn container_only(operators: &str) -> Option<ContainerOnly> {
    ContainerOnly::from_graph(&OperatorGraph::from_yaml(operators).unwrap())
}

#[test]
fn chain_that_only_reads_containers_is_recognised() {
    let found = container_only(
        "
- {type: container}
- {type: remove, field: attributes.logtag, if: attributes.logtag != nil}
- {type: add, field: attributes.team, value: shop}
- {type: add, field: resource.cluster, value: a}
- {type: noop}",
    )
    .unwrap();
    assert!(found.keeps_stream && !found.keeps_tags && found.format.adds_metadata);
    assert_eq!(found.attributes, [("team".to_owned(), "shop".to_owned())]);
    assert_eq!(found.resource, [("cluster".to_owned(), "a".to_owned())]);
}

#[test]
fn chain_that_does_more_is_not_taken_for_one() {
    for operators in [
        "[]",
        "[{type: json_parser}]",
        "[{type: container, if: 'true'}]",
        "[{type: container, on_error: drop}]",
        "[{type: container, parse_to: body}]",
        "[{type: container, format: containerd}]",
        "[{type: container}, {type: json_parser}]",
        "[{type: container}, {type: remove, field: attributes.x}]",
        "[{type: container}, {type: remove, field: attributes.logtag, if: attributes.other != nil}]",
        "[{type: container}, {type: add, field: attributes.n, value: 5}]",
        "[{type: container}, {type: add, field: attributes.log.iostream, value: x}]",
        "[{type: container}, {type: add, field: 'resource[\"k8s.pod.name\"]', value: x}]",
        "[{type: container, output: b}, {type: noop, id: a}, {type: noop, id: b}]",
    ] {
        assert_eq!(container_only(operators), None, "{operators}");
    }
}
