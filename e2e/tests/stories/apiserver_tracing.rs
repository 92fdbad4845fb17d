//! KEP-647's own test plan: a collector prints the spans that it gets as JSON, the API server is told to send
//! its spans there, a request is made, and the printed lines are looked at.

use std::{fs, net::SocketAddr, path::Path};

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, curl,
    process::{ChildProcess, kubewake},
    wait_for, wait_until,
};
use serde_json::Value;
use tempfile::TempDir;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
const SERVER: &str = "POST /api/v1/namespaces/{:namespace}/configmaps";

/// An API server as a process, with a token for somebody who is trusted and one for somebody who is not.
struct ApiServer {
    process: ChildProcess,
    address: SocketAddr,
    folder: TempDir,
}

impl ApiServer {
    fn start(flag: &str, document: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("tracing.yaml"), document).unwrap();
        let tokens = "admin,admin,admin-uid,\"system:masters\"\nother,other,other-uid,\"others\"\n";
        fs::write(at("tokens.csv"), tokens).unwrap();
        let mut command = kubewake();
        command.args(["apiserver", "--listen", "127.0.0.1:0"]).args(more);
        command.arg("--token-auth-file").arg(at("tokens.csv")).arg(flag).arg(at("tracing.yaml"));
        let mut process = ChildProcess::start(&mut command);
        let address = process.wait_until_ready().rsplit(' ').next().unwrap().parse().unwrap();
        Self { process, address, folder }
    }

    /// Creates a ConfigMap as part of a trace; gives the status of the answer.
    fn create(&self, token: &str, name: &str) -> u16 {
        let url = format!("https://{}/api/v1/namespaces/default/configmaps", self.address);
        let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
        let parent = format!("traceparent: 00-{TRACE}-{SPAN}-01");
        let token = format!("Authorization: Bearer {token}");
        let json = "Content-Type: application/json";
        let args = ["--insecure", "-H", &parent, "-H", &token, "-H", json, "--data-binary", "@-", &url];
        curl(args, body.as_bytes()).unwrap().status
    }

    fn stop(&mut self) -> bool {
        self.process.signal("TERM");
        self.process.wait_for_exit().success()
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn collector() -> CollectorProcess {
    CollectorProcess::with_config(ConfigBuilder::exporting_to("debug", "{verbosity: json}")).start()
}

fn tracing_configuration(endpoint: impl std::fmt::Display, ratio: u32) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: TracingConfiguration\nendpoint: {endpoint}\n\
         samplingRatePerMillion: {ratio}\n"
    )
}

/// The spans that the collector printed.
fn printed(collector: &CollectorProcess) -> Vec<Value> {
    let printed = collector.stdout();
    let lines = printed.lines().filter(|line| line.starts_with('{'));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn named(collector: &CollectorProcess, name: &str) -> Value {
    wait_for(name, || printed(collector).into_iter().find(|span| span["name"] == name))
}

fn attribute(of: &Value, key: &str) -> Value {
    let pairs = of["attributes"].as_array().cloned().unwrap_or_default();
    pairs.into_iter().find(|pair| pair["key"] == key).map(|pair| pair["value"].clone()).unwrap_or_default()
}

#[test]
fn the_spans_of_a_create_are_printed_by_the_collector() {
    let collector = collector();
    let mut server = ApiServer::start("--tracing-config-file", &tracing_configuration(collector.grpc(), 0), &[]);
    assert_eq!(server.create("admin", "a"), 201);
    assert!(server.stop(), "what it had to say is said before it ends");

    let span = named(&collector, SERVER);
    assert_eq!((span["traceId"].as_str(), span["parentSpanId"].as_str()), (Some(TRACE), Some(SPAN)));
    assert_eq!(attribute(&span, "http.request.method")["stringValue"], "POST");
    assert_eq!(attribute(&span, "http.response.status_code")["intValue"], "201");
    assert_eq!(attribute(&span["resource"], "service.name")["stringValue"], "apiserver");
    let chain = [
        "audit",
        "impersonation",
        "priorityandfairness",
        "authorization",
        "Create",
        "Create etcd3",
        "etcdserverpb.KV/Txn",
    ];
    chain.iter().fold(span["spanId"].clone(), |parent, name| {
        let span = named(&collector, name);
        assert_eq!((&span["parentSpanId"], span["traceId"].as_str()), (&parent, Some(TRACE)), "{name}");
        span["spanId"].clone()
    });
}

#[test]
fn the_keps_own_document_is_read_too_and_strangers_get_a_trace_of_their_own() {
    let collector = collector();
    let document = format!(
        "apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: OpenTelemetryClientConfiguration\nurl: http://{}\n\
         samplingRatePerMillion: 1000000\n",
        collector.grpc()
    );
    let mut server = ApiServer::start("--opentelemetry-config-file", &document, &[]);
    assert_eq!(server.create("other", "a"), 403);
    assert!(server.stop());
    let span = named(&collector, SERVER);
    assert_ne!(span["traceId"], TRACE);
    let link = &span["links"][0];
    assert_eq!((link["traceId"].as_str(), link["spanId"].as_str()), (Some(TRACE), Some(SPAN)));
}

#[test]
fn spans_may_go_over_http_and_change_their_way_while_the_server_runs() {
    let first = collector();
    let second = collector();
    let over_http = |to: &CollectorProcess| tracing_configuration(to.http(), 0) + "protocol: http/protobuf\n";
    let mut server = ApiServer::start("--tracing-config-file", &over_http(&first), &[]);
    assert_eq!(server.create("admin", "a"), 201);
    named(&first, SERVER);
    let fresh = server.folder().join("fresh");
    fs::write(&fresh, "kind: nonsense").unwrap();
    fs::rename(&fresh, server.folder().join("tracing.yaml")).unwrap();
    wait_until("the bad one is refused", || {
        server.process.stderr().contains("failed to reload the tracing configuration")
    });
    fs::write(&fresh, tracing_configuration(second.grpc(), 0)).unwrap();
    fs::rename(&fresh, server.folder().join("tracing.yaml")).unwrap();
    wait_until("the good one is taken up", || server.process.stderr().contains("reloaded the tracing configuration"));
    assert_eq!(server.create("admin", "b"), 201);
    named(&second, SERVER);
    assert!(server.stop());
}

#[test]
fn a_dead_collector_costs_requests_nothing_and_the_gate_switches_everything_off() {
    let collector = collector();
    let document = tracing_configuration("127.0.0.1:1", 1_000_000);
    let mut server = ApiServer::start("--tracing-config-file", &document, &[]);
    (0..20).for_each(|number| assert_eq!(server.create("admin", &format!("m{number}")), 201));
    assert!(server.stop());
    let document = tracing_configuration(collector.grpc(), 1_000_000);
    let off = ["--feature-gates", "APIServerTracing=false"];
    let mut server = ApiServer::start("--tracing-config-file", &document, &off);
    assert_eq!(server.create("admin", "a"), 201);
    assert!(server.stop());
    assert!(printed(&collector).is_empty());
}

#[test]
fn a_file_that_cannot_be_used_is_told_with_everything_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = kubewake();
        command.args(["apiserver", "--listen", "127.0.0.1:0"]).args(args).current_dir(folder.path());
        let output = ChildProcess::start(&mut command).output();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    fs::write(folder.path().join("bad.yaml"), tracing_configuration("ftp://x", 1_000_001) + "colour: red\n").unwrap();
    let said = run(&["--tracing-config-file", "bad.yaml"]);
    for part in ["unsupported scheme: ftp", "less than or equal to one million", r#"unknown field "colour""#] {
        assert!(said.contains(part), "{said}");
    }
    let absent = run(&["--tracing-config-file", "absent.yaml"]);
    assert!(absent.contains("unable to read tracing configuration"), "{absent}");
    assert_eq!(absent.matches("No such file").count(), 1, "a cause is said once: {absent}");
    let both = run(&["--tracing-config-file", "bad.yaml", "--opentelemetry-config-file", "bad.yaml"]);
    assert!(both.contains("cannot be used with"), "{both}");
    assert!(run(&["--feature-gates", "Wings=true"]).contains("unrecognized feature gate: Wings"));
}
