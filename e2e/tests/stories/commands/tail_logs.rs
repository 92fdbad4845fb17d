//! Log records as they arrive.

use kubewake_e2e::{Http1Connection, ViewerProcess, wait_for};
use serde_json::{Value, json};

use super::{run, start};

/// Sends a record of a pod with this body.
fn send(viewer: &ViewerProcess, namespace: &str, pod: &str, severity: u32, body: &str) {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let attributes = [
        attribute("k8s.namespace.name", namespace),
        attribute("k8s.pod.name", pod),
        attribute("k8s.container.name", "main"),
    ];
    let record =
        json!({"timeUnixNano": "1700000000123000000", "severityNumber": severity, "body": {"stringValue": body}});
    let logs = json!({"resource": {"attributes": attributes}, "scopeLogs": [{"logRecords": [record]}]});
    let request = json!({"resourceLogs": [logs]}).to_string();
    let headers = [("Content-Type", "application/json")];
    let sent = Http1Connection::connect(viewer.http()).request("POST", "/v1/logs", &headers, request.as_bytes());
    assert_eq!(sent.status, 200, "{}", sent.text());
}

#[test]
fn records_are_shown_with_their_pods_and_filtered() {
    let viewer = ViewerProcess::start();
    let home = tempfile::tempdir().unwrap();
    let at = format!("--viewer {}", viewer.url(""));
    let mut all = start(home.path(), &format!("tail --logs {at}"));
    let filtered = "--namespace shop --pod web --severity warn --limit 1 -o json";
    let mut warnings = start(home.path(), &format!("tail --logs {at} {filtered}"));
    // Whoever has just begun to listen may have missed the first ones.
    wait_for("the first is seen", || {
        send(&viewer, "shop", "web", 9, "an order\n  of two lines");
        all.stdout().contains("an order").then_some(())
    });
    send(&viewer, "shop", "db", 17, "the disk is full\u{1b}[31m");
    wait_for("the warning is seen", || {
        send(&viewer, "shop", "web", 13, "slow");
        (!warnings.is_running()).then_some(())
    });
    let output = warnings.output();
    let line: Value = serde_json::from_slice(&output.stdout).expect("one object in one line");
    assert_eq!((&line["pod"], &line["severity"], &line["body"]), (&"web".into(), &"warn".into(), &"slow".into()));
    wait_for("the rest is seen", || all.stdout().contains("slow").then_some(()));
    let shown = all.stdout();
    let line = |severity: &str, pod: &str, body: &str| {
        format!("22:13:20.123  {severity:<5}  {:<36}  {body}\n", format!("shop/{pod} main"))
    };
    assert!(shown.starts_with(&(line("INFO", "web", "an order") + "                of two lines\n")), "{shown}");
    assert!(shown.contains(&line("ERROR", "db", "the disk is full\\u{1b}[31m")), "{shown}");
    all.signal("INT");
    assert!(all.wait_for_exit().success(), "Ctrl-C is no failure: {}", all.stderr());
    let spans = run(home.path(), &format!("tail {at} --severity warn"));
    assert!(spans.code == 2 && spans.stderr.contains("--logs"), "{spans:?}");
}
