//! A sample is applied to a running `up`, and its trace is whole when its link is printed.

use std::fs;

use kubewake_e2e::{
    traces::{CallerVisibility, TraceTree},
    up_process::{HomeDir, link_in, trace_in},
    wait_until,
};
use serde_json::Value;

use super::new_head;

#[test]
fn samples_come_when_they_are_wanted() {
    let home = HomeDir::default();
    let up = home.start(&["--no-demo"]);
    assert!(!up.screen().contains("/trace/"), "{}", up.screen());
    let told = up.run_command(&home, &["demo", "head"]);
    assert!(told.starts_with("Head default/sample is new\n  ready after "), "{told}");
    up.wait_until_matches(link_in(&told), &new_head());

    // The same again is a change, with a trace of its own that is linked to the one before.
    let again = up.run_command(&home, &["demo", "head", "--kubeconfig", up.kubeconfig()]);
    assert!(again.contains("is changed: child right has 3 pods"), "{again}");
    let spans = up.spans(link_in(&again));
    let stamp = spans.with_name("stamp Head").next().expect("it is stamped");
    assert_eq!(stamp.links[0].trace, trace_in(link_in(&told)));
    assert_eq!(spans.with_name("converge Head").count(), 1);

    // Who looks right after a change sees that one, or is told that it has not come.
    let patch = r#"[{"op":"replace","path":"/spec/children/0/template/replicas","value":2}]"#;
    if up.kubectl(&["patch", "head", "sample", "--type=json", "-p", patch]).is_some() {
        let output = home.command(&["trace", "head/sample", "-o", "name"]).output().unwrap();
        let context = r"jsonpath={.metadata.annotations.tracing\.k8s\.io/traceparent}";
        let context = up.kubectl(&["get", "head", "sample", "-o", context]).unwrap();
        let [shown, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        let is_it = output.status.success() && context.contains(shown.trim());
        assert!(is_it || said.contains("no spans of generation"), "{context}: {shown}{said}");
    }

    let shown: Value = serde_json::from_str(&up.run_command(&home, &["demo", "head", "-o", "json"])).unwrap();
    assert_eq!(shown["object"], "Head default/sample");
    assert_eq!(shown["traceId"], trace_in(shown["link"].as_str().unwrap()), "{shown}");

    for (what, has) in [("is new", false), ("disk=ssd are preferred", true)] {
        let told = up.run_command(&home, &["demo", "scheduler"]);
        assert!(told.starts_with("Scheduler scheduler-system/demo is") && told.contains(what), "{told}");
        let spans = up.spans(link_in(&told));
        let tree = TraceTree::from_trace(&spans, trace_in(link_in(&told)), CallerVisibility::Trusted).to_string();
        for name in [
            "stamp Scheduler",
            "takeConfiguration",
            "SchedulePod",
            "converge Scheduler",
            "POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding",
        ] {
            assert!(tree.contains(&format!(" {name} [")), "{name} is not in\n{tree}");
        }
        assert!(!tree.contains("ORPHAN"), "{tree}");
        assert_eq!(tree.contains("plugin: NodeLabel"), has, "{tree}");
    }
    up.stop_with("TERM");
}

#[test]
fn what_somebody_deleted_is_brought_back_or_told_of() {
    let home = HomeDir::default();
    let mut up = home.start(&[]);
    // What a check only tries is no object.
    up.run_command(&home, &["check"]);
    let objects = up.get("/api/v1/objects").to_string();
    assert!(objects.contains("sample") && !objects.contains("kubewake-check"), "{objects}");

    let Some(_) = up.kubectl(&["delete", "crd", "heads.demo.kubewake.io"]) else { return up.stop_with("TERM") };
    let told = up.run_command(&home, &["demo", "head"]);
    assert!(told.starts_with("Head default/sample is new\n  ready after "), "{told}");

    up.kubectl(&["delete", "tracepipeline", "default"]);
    wait_until("up reports the deletion", || up.process().stderr().contains("TracePipeline default was deleted: "));
    let output = home.command(&["demo", "head"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("there is no TracePipeline"), "{said}");
    // The line that it proposes makes it again, whichever cluster kubectl means otherwise.
    let proposed = said.lines().last().expect("a command");
    let typed = home.shell(proposed).output().unwrap();
    assert!(typed.status.success(), "{proposed}\n{}", String::from_utf8_lossy(&typed.stderr));
    up.kubectl(&["wait", "--for=jsonpath={.status.state}=Ready", "tracepipeline/default", "--timeout=60s"]);
    // Whoever could not send in between may have lost spans just now, and of that trace there is only a part.
    let whole = (0..5).any(|_| home.command(&["demo", "head"]).output().unwrap().status.success());
    assert!(whole, "{}", up.run_command(&home, &["demo", "head"]));
    up.stop_with("TERM");
}

#[test]
fn arguments_that_cannot_be_meant_start_nothing() {
    let home = HomeDir::default();
    let twice = ["up", "--image", "web=/bin/sh", "--image", "web=/bin/cat"];
    let again = ["cluster", "--image", "web=/bin/sh", "--image", "web=/bin/cat"];
    for (args, why) in [
        (&["up", "--listen", "192.0.2.1:16686"][..], "failed to listen on the address"),
        (&["up", "--otlp", "4317"], "such as 127.0.0.1:16686"),
        (&["up", "--image", "web"], "is not NAME=PATH"),
        (&["cluster", "--image", "web"], "is not NAME=PATH"),
        (&twice, "image \"docker.io/library/web:latest\" is defined twice"),
        (&again, "image \"docker.io/library/web:latest\" is defined twice"),
    ] {
        let output = home.command(args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && !said.contains("stopping"), "{said}");
    }
}

#[test]
fn without_an_up_it_says_what_to_do() {
    let home = HomeDir::default();
    let output = home.command(&["demo", "head"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no running `kubewake up` found: start one"), "{said}");

    // One that ended without a word has left its note.
    fs::create_dir_all(home.path().join(".local/state/kubewake/running")).unwrap();
    let gone =
        r#"{"version":1,"pid":1,"page":"http://127.0.0.1:1","kubeconfig":"/nowhere","otlp":{"grpc":"","http":""}}"#;
    fs::write(home.path().join(".local/state/kubewake/running/1.json"), gone).unwrap();
    assert_eq!(home.command(&["demo", "head"]).output().unwrap().status.code(), Some(1));
}
