//! A viewer over its sockets, as senders, browsers, Jaeger UI and Grafana use it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod client;

use std::{future::Future, time::Duration};

use client::{Client, sample};
use kubewake_viewer::{Viewer, ViewerOptions};
use serde_json::{Value, json};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn options() -> ViewerOptions {
    let any = "127.0.0.1:0".parse().unwrap();
    ViewerOptions { listen: any, otlp_grpc: Some(any), otlp_http: Some(any), ..ViewerOptions::default() }
}

async fn with_viewer<F: Future<Output = ()>>(test: impl FnOnce(Client) -> F) {
    let viewer = Viewer::start(options()).await.unwrap();
    let client = Client::new(viewer.addresses());
    client.send(&sample()).await;
    test(client).await;
    tokio::time::timeout(Duration::from_secs(10), viewer.stop()).await.expect("it stops");
}

#[tokio::test]
async fn what_is_sent_is_found_and_shown() {
    with_viewer(|client| async move {
        let services = client.get("/api/v1/services").await;
        assert_eq!(services["services"][0]["name"], "apiserver");
        let found = client.get("/api/v1/search?service=operator&kind=head&namespace=default&name=sample").await;
        let line = &found["traces"][0];
        assert_eq!(
            (&line["traceId"], &line["rootName"], &line["spans"]),
            (&json!(TRACE), &json!("POST /heads"), &json!(4))
        );
        assert_eq!((&line["errors"], &line["complete"], &line["orphans"]), (&json!(1), &json!(true), &json!(0)));
        assert_eq!(line["objects"][0], json!({ "kind": "Head", "namespace": "default", "name": "sample" }));
        let trace = client.get(&format!("/api/v1/traces/{TRACE}")).await;
        let names: Vec<_> = trace["spans"].as_array().unwrap().iter().map(|span| span["name"].clone()).collect();
        assert_eq!(names, ["POST /heads", "reconcile Head", "apply ChildA", "<script>alert(1)</script>"]);
        assert_eq!(trace["spans"][1]["parent"], trace["spans"][0]["id"]);
        assert_eq!(client.get("/api/v1/search?q=0af76").await["matched"], 1);
    })
    .await;
}

#[tokio::test]
async fn questions_that_make_no_sense_are_answered_with_all_that_is_wrong() {
    with_viewer(|client| async move {
        let (status, answer) = client.ask("/api/v1/search?minDuration=soon&limit=0&attr=x&start=-1&q=xyz").await;
        let wrong: Vec<_> =
            answer["problems"].as_array().unwrap().iter().map(|problem| problem["parameter"].clone()).collect();
        assert_eq!(status, 400);
        assert_eq!(wrong, ["minDuration", "start", "attr", "q", "limit"]);
        for path in ["search", "live", "tail"] {
            let (status, answer) = client.ask(&format!("/api/v1/{path}?unknown=1&lookback=1h&start=5")).await;
            let problems = answer["problems"].as_array().unwrap();
            assert_eq!((status, problems.len()), (400, 2), "{path}: {answer}");
            assert_eq!((&problems[0]["parameter"], &problems[1]["parameter"]), (&json!("unknown"), &json!("lookback")));
        }
        for path in ["/api/services/%ff/operations", "/api/traces/%ff"] {
            let (status, answer) = client.ask(path).await;
            assert_eq!((status, &answer["errors"][0]["code"]), (400, &json!(400)), "{path}");
        }
        for path in ["traces/%ff", "traces/%ff/spans/1", "objects/Head/default/%ff"] {
            let (status, answer) = client.ask(&format!("/api/v1/{path}")).await;
            let words = "the path contains bytes that are not UTF-8";
            assert_eq!((status, &answer["error"]), (400, &json!(words)), "{path}");
        }
        assert_eq!(client.ask("/api/v3/traces/%ff").await.1["error"]["httpCode"], 400);
        for (path, expected) in [
            ("/api/v1/traces/nothex", 400),
            ("/api/v1/traces/00000000000000000000000000000001", 404),
            ("/api/v1/nothing", 404),
            ("/api/v1/objects/Head/default/other", 404),
            ("/nothing.js", 404),
            ("/../../etc/passwd", 404),
        ] {
            assert_eq!(client.ask(path).await.0, expected, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn all_paths_of_the_page_are_the_page_and_it_may_do_little() {
    with_viewer(|client| async move {
        for path in ["/", "/search?service=a", &format!("/trace/{TRACE}"), "/objects/Head/default/sample", "/pipelines"]
        {
            let answer = client.raw("GET", path, &[], "").await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("<!doctype html>"), "{path}: {answer}");
            let answer = answer.to_ascii_lowercase();
            assert!(answer.contains("content-security-policy: default-src 'self'") && answer.contains("nosniff"));
        }
        let rebound = client.raw("GET", "/api/v1/services", &[("Host", "evil.example")], "").await;
        assert!(rebound.starts_with("HTTP/1.1 403"), "{rebound}");
        assert!(!rebound.to_ascii_lowercase().contains("access-control"));
        // An image on another site whose URL is a query; links to the page pass.
        let from = |site| [("Sec-Fetch-Site", site)];
        for (path, site, status) in [
            ("/api/v1/objects?namespace=default", "cross-site", 403),
            ("/api/services", "cross-site", 403),
            ("/api/v1/objects", "same-origin", 200),
            ("/api/v1/objects", "none", 200),
            ("/objects", "cross-site", 200),
        ] {
            let answer = client.raw("GET", path, &from(site), "").await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path} {site}: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_import_names_the_traces_that_are_there() {
    let viewer = Viewer::start(ViewerOptions { memory: 1 << 20, ..options() }).await.unwrap();
    let client = Client::new(viewer.addresses());
    let span = |trace: u8, value: &str| {
        let attribute = json!({ "key": "k", "value": { "stringValue": value } });
        json!({ "traceId": format!("{trace:032x}"), "spanId": "b7ad6b7169203331", "attributes": [attribute] })
    };
    let spans = [span(1, &"x".repeat(300_000)), span(2, "small")];
    let export = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] }).to_string();
    let (_, answer) = client.post("/api/v1/import", &[("Content-Type", "application/json")], &export).await;
    assert_eq!((&answer["traces"], &answer["spans"]), (&json!([format!("{:032x}", 2)]), &json!(1)), "{answer}");
    assert_eq!(answer["rejected"]["spans"], 1);
    viewer.stop().await;
}

#[tokio::test]
async fn what_is_exported_can_be_imported_elsewhere() {
    let other = Viewer::start(options()).await.unwrap();
    let elsewhere = Client::new(other.addresses());
    with_viewer(|client| async move {
        let export = client.get(&format!("/api/v1/traces/{TRACE}?format=otlp")).await.to_string();
        let json = [("Content-Type", "application/json")];
        let answer = elsewhere.post("/api/v1/import", &json, &export).await;
        assert_eq!(answer, (200, json!({ "traces": [TRACE], "spans": 4 })));
        assert_eq!(elsewhere.post("/api/v1/import", &json, &export).await.1["spans"], 0, "once more is no more");
        let lines = format!("{export}\n{export}");
        assert_eq!(client.post("/api/v1/import", &json, &lines).await.1, json!({ "traces": [TRACE], "spans": 0 }));
        let form = [("Content-Type", "text/plain")];
        assert_eq!(elsewhere.post("/api/v1/import", &form, &export).await.0, 415);
        assert_eq!(elsewhere.post("/api/v1/import", &json, "{}").await.0, 400);
    })
    .await;
    other.stop().await;
}

#[tokio::test]
async fn spans_that_are_not_taken_are_told_to_who_sends_them() {
    with_viewer(|client| async move {
        let span = |trace: &str, id: &str| json!({ "traceId": trace, "spanId": id, "name": "a" });
        let spans =
            json!([span(TRACE, "00f067aa0ba902b7"), span(TRACE, ""), span(&"0".repeat(32), "00f067aa0ba902b7")]);
        let request = json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] }).to_string();
        let words = "2 spans without a valid trace id or span id";
        let answer = client.otlp(&request).await;
        assert_eq!(answer, (200, json!({ "partialSuccess": { "rejectedSpans": "2", "errorMessage": words } })));
        assert_eq!(client.otlp(&sample()).await, (200, json!({ "partialSuccess": {} })), "what is here was taken");
        let json = [("Content-Type", "application/json")];
        let answer = client.post("/api/v1/import", &json, &request).await.1;
        assert_eq!(answer["rejected"], json!({ "spans": 2, "message": words }));
    })
    .await;
}

#[tokio::test]
async fn objects_have_generations_and_children() {
    with_viewer(|client| async move {
        let list = client.get("/api/v1/objects?kind=head").await;
        assert_eq!(list["objects"][0]["state"], "failed");
        assert_eq!(list["objects"][0]["generations"], 1);
        assert_eq!(list["objects"][0]["change"]["message"], "no room");
        let all = client.get("/api/v1/objects").await;
        let line = |at: usize| (all["objects"][at]["kind"].clone(), all["objects"][at]["depth"].clone());
        assert_eq!((line(0), line(1)), ((json!("Head"), json!(0)), (json!("ChildA"), json!(1))));
        assert_eq!(
            (&all["total"], client.get("/api/v1/objects?limit=1").await["objects"][1].clone()),
            (&json!(2), Value::Null)
        );
        let head = client.get("/api/v1/objects/Head/default/sample").await;
        assert_eq!(head["tree"]["generations"][0]["message"], "no room");
        assert_eq!(head["tree"]["generations"][0]["traceId"], TRACE);
        assert_eq!(head["tree"]["children"][0]["kind"], "ChildA");
        let child = client.get("/api/v1/objects/childas/default/a").await;
        assert_eq!(child["parents"], json!([{ "kind": "Head", "namespace": "default", "name": "sample" }]));
    })
    .await;
}

#[tokio::test]
async fn what_comes_is_told_as_it_comes() {
    with_viewer(|client| async move {
        let mut live = client.events("/api/v1/live?service=operator").await;
        let mut tail = client.events("/api/v1/tail?service=operator&errors=true").await;
        assert_eq!(live.next().await.0, "store");
        assert_eq!(tail.next().await.0, "store");
        client.send(&sample().replace(TRACE, "1af7651916cd43dd8448eb211c80319c")).await;
        let (name, trace) = live.find("trace").await;
        assert_eq!((name.as_str(), &trace["traceId"]), ("trace", &json!("1af7651916cd43dd8448eb211c80319c")));
        let (_, span) = tail.find("span").await;
        assert_eq!(
            (&span["service"], &span["name"], &span["status"]),
            (&json!("operator"), &json!("reconcile Head"), &json!("error"))
        );
        assert_eq!(client.ask("/api/v1/live?minDuration=x").await.0, 400);
        // `with_viewer` waits until the viewer has stopped, although both connections are still open.
    })
    .await;
}

#[tokio::test]
async fn log_records_are_passed_to_readers_who_follow_them() {
    with_viewer(|client| async move {
        let mut all = client.events("/api/v1/tail/logs").await;
        let mut warnings = client.events("/api/v1/tail/logs?namespace=shop&pod=web&severity=warn").await;
        assert_eq!((all.next().await.0, warnings.next().await.0), ("ready".to_owned(), "ready".to_owned()));
        let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let of_pod = |pod: &str, severity: u32, body: &str| {
            let attributes = [attribute("k8s.namespace.name", "shop"), attribute("k8s.pod.name", pod)];
            let record = json!({"timeUnixNano": "7", "severityNumber": severity, "body": {"stringValue": body}});
            json!({"resource": {"attributes": attributes}, "scopeLogs": [{"logRecords": [record]}]})
        };
        let resources = [of_pod("web", 9, "fine"), of_pod("db", 17, "full"), of_pod("web", 13, "slow")];
        let sent = client.otlp_logs(&json!({"resourceLogs": resources}).to_string()).await;
        assert_eq!(sent.0, 200, "{}", sent.1);
        for body in ["fine", "full", "slow"] {
            assert_eq!(all.find("log").await.1["body"], body);
        }
        let (_, warning) = warnings.find("log").await;
        assert_eq!(
            (&warning["body"], &warning["severity"], &warning["time"]),
            (&json!("slow"), &json!("warn"), &json!("7"))
        );
        let (status, refused) = client.ask("/api/v1/tail/logs?severity=loud&color=red").await;
        let wrong: Vec<&Value> = refused["problems"].as_array().unwrap().iter().map(|one| &one["parameter"]).collect();
        assert_eq!((status, wrong), (400, vec![&json!("color"), &json!("severity")]));
    })
    .await;
}

#[tokio::test]
async fn hostile_spans_break_nothing() {
    with_viewer(|client| async move {
        let huge = "h".repeat(1 << 20);
        let hostile = json!({"resourceSpans": [{"scopeSpans": [{"spans": [
            {"traceId": "2af7651916cd43dd8448eb211c80319c", "spanId": "0000000000000001", "parentSpanId": "0000000000000002",
             "name": "\u{0}\u{1b}[31m\u{202e}", "startTimeUnixNano": "18446744073709551615", "endTimeUnixNano": "1",
             "attributes": [{"key": "huge", "value": {"stringValue": huge}}, {"key": "", "value": {}},
                            {"key": "<img src=x onerror=alert(1)>", "value": {"stringValue": "</script>"}}]},
            {"traceId": "2af7651916cd43dd8448eb211c80319c", "spanId": "0000000000000002", "parentSpanId": "0000000000000001"},
        ]}]}]});
        client.send(&hostile.to_string()).await;
        let trace = client.get("/api/v1/traces/2af7651916cd43dd8448eb211c80319c").await;
        let kinds: Vec<_> = trace["warnings"].as_array().unwrap().iter().map(|warning| warning["kind"].clone()).collect();
        assert!(kinds.contains(&json!("cycle")) && kinds.contains(&json!("future")) && kinds.contains(&json!("no_time")), "{kinds:?}");
        let span = trace["spans"].as_array().unwrap().iter().find(|span| span["id"] == "0000000000000001").unwrap();
        let huge = &span["attributes"][0];
        assert_eq!((&huge["cut"], huge["value"].as_str().unwrap().len()), (&json!(true), 16 << 10));
        let whole = client.get("/api/v1/traces/2af7651916cd43dd8448eb211c80319c/spans/0000000000000001").await;
        assert_eq!(whole["attributes"][0]["value"].as_str().unwrap().len(), 1 << 20);
        assert_eq!(client.get("/api/v1/search?attr=huge%3Dno").await["matched"], 0);
        assert_eq!(client.get("/api/v1/search").await["matched"], 2);
        assert_eq!(client.get("/api/traces/2af7651916cd43dd8448eb211c80319c").await["data"][0]["spans"].as_array().unwrap().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn an_address_in_use_is_said_so() {
    let viewer = Viewer::start(options()).await.unwrap();
    let taken = viewer.addresses();
    let error = Viewer::start(ViewerOptions { listen: taken.page, ..options() }).await.unwrap_err();
    assert!(error.to_string().contains(&taken.page.to_string()), "{error}");
    let error = Viewer::start(ViewerOptions { otlp_grpc: taken.otlp_grpc, ..options() }).await.unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    viewer.stop().await;
}

/// An error with its causes, as a program prints it.
fn told(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[tokio::test]
async fn why_it_does_not_start_is_said_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let told =
        told(&Viewer::start(ViewerOptions { data_dir: Some(file.path().join("x")), ..options() }).await.unwrap_err());
    let reason = std::io::Error::from(std::io::ErrorKind::NotADirectory).to_string();
    assert_eq!(told.to_lowercase().matches(&reason).count(), 1, "{told}");
    assert_eq!(told.matches(&*file.path().to_string_lossy()).count(), 1, "{told}");
}

#[tokio::test]
async fn traces_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let kept = || ViewerOptions { data_dir: Some(folder.path().join("traces")), ..options() };
    let viewer = Viewer::start(kept()).await.unwrap();
    Client::new(viewer.addresses()).send(&sample()).await;
    let told = told(&Viewer::start(kept()).await.unwrap_err());
    assert!(
        told.starts_with("failed to open the store on disk: /") && told.ends_with("traces is in use by another viewer"),
        "{told}"
    );
    viewer.stop().await;
    let viewer = Viewer::start(kept()).await.unwrap();
    let client = Client::new(viewer.addresses());
    assert_eq!(client.get(&format!("/api/v1/traces/{TRACE}")).await["spans"].as_array().unwrap().len(), 4);
    client.send(&sample()).await;
    assert_eq!(viewer.store().figures().spans, 4, "it is known also after a restart");
    assert!(client.raw("GET", "/metrics", &[], "").await.contains("\nkubewake_viewer_spans 4\n"));
    viewer.stop().await;
}

/// Requests of Jaeger UI and Grafana's data source, with their own parameters.
#[tokio::test]
async fn jaeger_ui_and_grafana_are_answered() {
    with_viewer(|client| async move {
        let data = |answer: Value| {
            assert_eq!(answer["errors"], Value::Null);
            answer["data"].clone()
        };
        assert_eq!(data(client.get("/api/services").await), json!(["apiserver", "operator"]));
        assert_eq!(data(client.get("/api/services/operator/operations").await), json!(["<script>alert(1)</script>", "apply ChildA", "reconcile Head"]));
        let operations = data(client.get("/api/operations?service=operator&spanKind=producer").await);
        assert_eq!(operations, json!([{ "name": "apply ChildA", "spanKind": "producer" }]));
        let search = "/api/traces?end=1763300600000000&limit=20&lookback=1h&maxDuration&minDuration&service=operator&start=1763297000000000";
        assert_eq!(data(client.get(search).await)[0]["traceID"], TRACE);
        let tags = format!("{search}&operation=reconcile%20Head&tags=%7B%22error%22%3A%22true%22%2C%22k8s.object.kind%22%3A%22Head%22%7D");
        assert_eq!(data(client.get(&tags).await).as_array().unwrap().len(), 1);
        let none = format!("{search}&tags=%7B%22error%22%3A%22true%22%2C%22k8s.object.kind%22%3A%22ChildA%22%7D");
        assert_eq!(data(client.get(&none).await), json!([]));
        let slow = "/api/traces?end=1763300600000000&limit=20&lookback=1h&maxDuration=1.1s&minDuration=900ms&operation=all&service=operator&start=1763297000000000";
        assert_eq!(data(client.get(slow).await).as_array().unwrap().len(), 1);
        let two = format!("/api/traces?traceID={TRACE}&traceID=00000000000000000000000000000001");
        assert_eq!(data(client.get(&two).await).as_array().unwrap().len(), 1);
        let grafana = "/api/traces?service=operator&operation=&tags=&minDuration=&maxDuration=&limit=20&start=1763297000000000&end=1763300600000000&lookback=custom";
        assert_eq!(data(client.get(grafana).await).as_array().unwrap().len(), 1);
        let calls = data(client.get("/api/dependencies?endTs=1763300600000&lookback=604800000").await);
        assert_eq!(calls, json!([{ "parent": "apiserver", "child": "operator", "callCount": 1 }]));
        for (path, status) in [
            ("/api/traces?limit=20", 400),
            ("/api/traces?service=a&tags=%7B", 400),
            ("/api/traces?service=a&minDuration=x", 400),
            ("/api/traces/00000000000000000000000000000001", 404),
            ("/api/operations", 400),
            ("/api/dependencies", 400),
        ] {
            let (found, answer) = client.ask(path).await;
            assert_eq!(found, status, "{path}");
            assert!(answer["errors"][0]["msg"].is_string() && answer["errors"][0]["code"] == status, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn newer_versions_of_jaegers_ui_are_answered() {
    with_viewer(|client| async move {
        assert_eq!(client.get("/api/v3/services").await, json!({ "services": ["apiserver", "operator"] }));
        let operations = client.get("/api/v3/operations?service=apiserver").await;
        assert_eq!(operations, json!({ "operations": [{ "name": "POST /heads", "spanKind": "server" }] }));
        let query = "query.service_name=operator&query.span_name=reconcile+Head&query.start_time_min=2025-11-16T12%3A43%3A20.000Z\
                     &query.start_time_max=2025-11-16T13%3A43%3A20.000Z&query.num_traces=20&query.attributes=%7B%22error%22%3A%22true%22%7D";
        let found = client.get(&format!("/api/v3/trace-summaries?{query}")).await;
        let summary = &found["summaries"][0];
        assert_eq!((&summary["traceId"], &summary["rootServiceName"]), (&json!(TRACE), &json!("apiserver")));
        assert_eq!((&summary["spanCount"], &summary["errorSpanCount"], &summary["orphanSpanCount"]), (&json!(4), &json!(1), &json!(0)));
        assert_eq!(summary["minStartTimeUnixNano"], "1763297000000000000");
        let trace = client.get(&format!("/api/v3/traces/{TRACE}")).await;
        assert_eq!(trace["result"]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"], TRACE);
        assert!(client.get(&format!("/api/v3/traces?{query}")).await["result"]["resourceSpans"].is_array());
        for path in ["trace-summaries", "trace-summaries?query.service_name=a&query.start_time_min=now", "operations", "traces/x"] {
            assert_eq!(client.ask(&format!("/api/v3/{path}")).await.0, 400, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_trace_has_jaegers_form() {
    with_viewer(|client| async move {
        let answer = client.get(&format!("/api/traces/{TRACE}?raw=true&prettyPrint=true")).await;
        let trace = &answer["data"][0];
        assert_eq!(trace["processes"]["p1"]["serviceName"], "apiserver");
        let spans = trace["spans"].as_array().unwrap();
        let run = spans.iter().find(|span| span["operationName"] == "reconcile Head").unwrap();
        assert_eq!(run["processID"], "p2");
        assert_eq!((&run["startTime"], &run["duration"]), (&json!(1_763_297_000_200_000_u64), &json!(1_000_000)));
        assert_eq!(
            run["references"][0],
            json!({ "refType": "CHILD_OF", "traceID": TRACE, "spanID": "0000000000000001" })
        );
        assert_eq!(run["references"][1]["refType"], "FOLLOWS_FROM");
        let tag = |key: &str| {
            run["tags"].as_array().unwrap().iter().find(|tag| tag["key"] == key).cloned().unwrap_or_default()
        };
        assert_eq!(tag("span.kind"), json!({ "key": "span.kind", "type": "string", "value": "consumer" }));
        assert_eq!(tag("error"), json!({ "key": "error", "type": "bool", "value": true }));
        assert_eq!(tag("otel.status_code")["value"], "ERROR");
        assert_eq!(tag("otel.status_description")["value"], "no room");
        assert_eq!(
            tag("k8s.object.generation"),
            json!({ "key": "k8s.object.generation", "type": "int64", "value": 3 })
        );
        assert_eq!(run["logs"][0]["fields"][0], json!({ "key": "event", "type": "string", "value": "retry" }));
    })
    .await;
}
