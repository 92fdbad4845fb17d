//! What happened to an object, drawn in the terminal; and spans as they arrive.

use std::net::SocketAddr;

use kubewake_e2e::{free_address, http, process::Process, process::kubewake, until};
use serde_json::{Value, json};

use super::{run, start};

/// A viewer, and where it is.
pub(super) struct Viewer {
    _process: Process,
    pub(super) page: SocketAddr,
    pub(super) grpc: SocketAddr,
    /// Over HTTP.
    pub(super) otlp: SocketAddr,
}

impl Viewer {
    pub(super) fn start() -> Self {
        let (grpc, otlp) = (free_address(), free_address());
        let mut command = kubewake();
        command.args([
            "viewer",
            "--listen",
            "127.0.0.1:0",
            "--otlp",
            &grpc.to_string(),
            "--otlp-http",
            &otlp.to_string(),
        ]);
        let mut process = Process::start(&mut command);
        let page = process.ready().rsplit('/').next().unwrap().parse().expect("it says where it is");
        Self { _process: process, page, grpc, otlp }
    }

    /// Sends a span of its own trace.
    pub(super) fn send_one(&self) {
        self.send(&"b".repeat(32), &[("shop", "b000000000000001", "", "buy", 0, 1, json!({}))]);
    }

    /// Sends spans of one trace: service, id, parent, name, start and end in milliseconds, and what else there is to say of it.
    fn send(&self, trace: &str, spans: &[(&str, &str, &str, &str, u64, u64, Value)]) {
        let resources = spans.iter().map(|(service, id, parent, name, start, end, more)| {
            let time = |at: &u64| (1_700_000_000_000_000_000 + at * 1_000_000).to_string();
            let mut span = json!({
                "traceId": trace, "spanId": id, "parentSpanId": parent, "name": name, "kind": 1,
                "startTimeUnixNano": time(start), "endTimeUnixNano": time(end),
            });
            span.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"resource": {"attributes": [text("service.name", service)]}, "scopeSpans": [{"spans": [span]}]})
        });
        let body = json!({"resourceSpans": resources.collect::<Vec<_>>()}).to_string();
        let answer = http::post(self.otlp, "/v1/traces", "application/json", body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// The attributes of a reconcile of an object.
fn of(kind: &str, namespace: &str, name: &str) -> Value {
    json!({"attributes": [
        text("k8s.object.kind", kind), text("k8s.object.name", name), text("k8s.namespace.name", namespace),
    ]})
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[test]
fn an_object_has_its_latest_trace_drawn() {
    let (viewer, home) = (Viewer::start(), tempfile::tempdir().unwrap());
    let ask = |command: &str| run(home.path(), &format!("{command} --viewer http://{}", viewer.page));
    let nothing = ask("trace head/demo");
    assert!(nothing.code == 1 && nothing.stderr.contains("no trace of head/demo"), "{nothing:?}");

    let refused = json!({"status": {"code": 2, "message": "no\u{1b}[2J rights"}});
    let spans = [
        ("kube-apiserver", "1000000000000001", "", "PATCH /heads/demo", 0, 12, json!({})),
        (
            "head-operator",
            "1000000000000002",
            "1000000000000001",
            "reconcile Head",
            20,
            400,
            of("Head", "shop", "demo"),
        ),
        ("head-operator", "1000000000000003", "1000000000000002", "apply ChildA", 30, 90, refused),
        (
            "head-operator",
            "1000000000000004",
            "1000000000000001",
            "converge Head",
            1500,
            2000,
            of("Head", "shop", "demo"),
        ),
    ];
    viewer.send(TRACE, &spans);
    let drawn = until("the trace is there", || Some(ask("trace head/demo")).filter(|said| said.code == 0)).stdout;
    for words in [
        "4 spans of 2 services in 2 s, 1 error",
        "head-operator · reconcile Head",
        "✗ apply ChildA",
        "no\\u{1b}[2J rights",
        "⋯ 1.1 s",
        "█",
    ] {
        assert!(drawn.contains(words), "{words} is not in\n{drawn}");
    }
    assert!(!drawn.contains('\u{1b}'), "{drawn}");
    assert_eq!(ask("trace heads demo -n shop -o name").stdout, format!("{TRACE}\n"));
    assert_eq!(ask(&format!("trace --id {TRACE} -o json")).json()["traceId"], TRACE);
    let elsewhere = ask("trace head/demo -n other");
    assert!(elsewhere.code == 1 && elsewhere.stderr.contains("there is Head/demo -n shop"), "{elsewhere:?}");

    // The same name in another namespace: somebody has to say which.
    viewer.send(&"a".repeat(32), &[("x", "2000000000000001", "", "reconcile Head", 0, 1, of("Head", "till", "demo"))]);
    let several = until("both are there", || Some(ask("trace head/demo")).filter(|said| said.code == 1));
    assert!(several.stderr.contains("-n shop") && several.stderr.contains("-n till"), "{several:?}");
    assert_eq!(ask("trace head/demo -n till -o name").stdout, format!("{}\n", "a".repeat(32)));
}

#[test]
fn without_a_viewer_it_says_where_it_looked() {
    let (home, nowhere) = (tempfile::tempdir().unwrap(), free_address());
    for command in ["trace head/demo", "tail", "trace --id 1"] {
        let said = run(home.path(), &format!("{command} --viewer http://{nowhere}"));
        assert!(said.code == 1 && said.stderr.contains(&nowhere.to_string()), "{said:?}");
    }
    assert_eq!(run(home.path(), "trace demo").code, 1);
    assert_eq!(run(home.path(), "trace").code, 2);
}

#[test]
fn spans_are_shown_as_they_arrive() {
    let (viewer, home) = (Viewer::start(), tempfile::tempdir().unwrap());
    let at = format!("--viewer http://{}", viewer.page);
    let mut all = start(home.path(), &format!("tail {at}"));
    let errors = start(home.path(), &format!("tail {at} --errors --service shop --limit 1 -o json"));
    let mut sent = 0_u64;
    let mut send = |service: &str, name: &str, more: Value| {
        sent += 1;
        viewer.send(TRACE, &[(service, &format!("{sent:016x}"), "", name, 0, 3, more)]);
    };
    // Whoever has just begun to listen may have missed the first ones.
    until("the first is seen", || {
        send("shop", "buy", json!({}));
        all.stdout().contains("buy").then_some(())
    });
    let failed = || json!({"status": {"code": 2, "message": "sold out"}});
    send("till", "pay", failed());
    let mut errors = errors;
    until("the error is seen", || {
        send("shop", "refund", failed());
        (!errors.runs()).then_some(())
    });
    let output = errors.output();
    let line: Value = serde_json::from_slice(&output.stdout).expect("one object in one line");
    assert_eq!((&line["service"], &line["name"], &line["status"]), (&"shop".into(), &"refund".into(), &"error".into()));
    until("the rest is seen", || all.stdout().contains("✗ pay").then_some(()));
    assert!(all.stdout().contains("sold out") && !all.stdout().contains('\u{1b}'), "{}", all.stdout());
    all.signal("INT");
    assert!(all.wait().success(), "Ctrl-C is no failure: {}", all.stderr());
}
