//! The viewer with a hundred thousand spans: duration of queries, and memory when its store is full.

use std::{process::Command, time::Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::{
    BenchPlan, http,
    load::LoadCommand,
    process::BenchProcess,
    program,
    section::{BenchSection, format_mib, median},
};

/// Promised limit in milliseconds.
const MAX_QUERY_MILLIS: f64 = 50.0;
const QUERY_REPETITIONS: usize = 21;
/// Number of requests with 100 spans each.
const REQUEST_COUNT: &str = "1000";
/// Number of spans in the large trace.
const LARGE_TRACE_SPANS: u64 = 10_000;
const LARGE_TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
/// Memory of the store that is overfilled; several times that is sent to it.
const SMALL_STORE_BYTES: u64 = 64 << 20;
const OVERFILL_REQUEST_COUNT: &str = "5000";
/// Memory for requests in flight, buffers of connections, and pages that the allocator keeps.
const MAX_OVERHEAD_BYTES: u64 = 128 << 20;

pub(crate) fn run(_: &BenchPlan) -> anyhow::Result<BenchSection> {
    let how = format!(
        "`kubewake viewer` has 100 000 spans of 10 000 traces, and one trace of {LARGE_TRACE_SPANS} more whose spans \
         name 100 objects. Each query is sent {QUERY_REPETITIONS} times, over a separate connection each. The time is \
         the median until the end of the answer. Then a viewer with a limit of {} receives 500 000 spans.",
        format_mib(SMALL_STORE_BYTES)
    );
    let mut section = BenchSection::new("Viewer", how);
    section.header(&["question", "time", "answer"]);
    let viewer = start("viewer", "256MiB")?;
    let page = fill(&viewer, REQUEST_COUNT)?;
    let imported = http::post_json(&page, "/api/v1/import", encode_large_trace().to_string().as_bytes())?;
    let spans = imported.get("spans").and_then(Value::as_u64);
    ensure!(spans == Some(LARGE_TRACE_SPANS), "failed to import the large trace: {imported}");
    for (question, path) in query_paths(&page)? {
        let (time, bytes) = measure_query(&page, &path)?;
        section.row([question.to_owned(), format!("{time:.1} ms"), format!("{} KiB", bytes / 1024)]);
        section.check(
            format!("{question}: at most {MAX_QUERY_MILLIS} ms"),
            format!("{time:.1} ms"),
            time <= MAX_QUERY_MILLIS,
        );
    }
    let store = http::get(&page, "/api/v1/info")?;
    let memory = viewer.memory()?;
    let bytes = store.pointer("/store/bytes").and_then(Value::as_u64).unwrap_or_default();
    section.row(["(memory)".to_owned(), format_mib(memory.own), format!("{} by its own account", format_mib(bytes))]);
    viewer.stop()?;
    overfill(&mut section)?;
    Ok(section)
}

fn start(name: &str, memory: &str) -> anyhow::Result<BenchProcess> {
    let any = "127.0.0.1:0";
    let mut command = Command::new(program("kubewake"));
    BenchProcess::start(
        name,
        command.args(["viewer", "--listen", any, "--otlp", any, "--otlp-http", any, "--memory", memory]),
    )
}

/// Sends this number of requests, and returns the address of the page.
fn fill(viewer: &BenchProcess, requests: &str) -> anyhow::Result<String> {
    let page = viewer.address()?.trim_start_matches("http://").to_owned();
    let info = http::get(&page, "/api/v1/info")?;
    let otlp = info.pointer("/otlp/grpc").and_then(Value::as_str).context("the viewer reports no address for OTLP")?;
    let sent = LoadCommand::new("viewer", otlp).args(&["--requests", requests]).run()?;
    ensure!(sent.acknowledged() > 0, "the viewer accepted no spans: {}", sent.codes());
    Ok(page)
}

/// Typical queries, with attributes and names that exist.
fn query_paths(page: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
    let found = http::get(page, "/api/v1/search?limit=20")?;
    let traces = found.get("traces").and_then(Value::as_array).context("there are no traces")?;
    let small = traces.iter().find(|trace| trace["traceId"] != LARGE_TRACE_ID).context("there is no small trace")?;
    let id = small["traceId"].as_str().unwrap_or_default();
    let service = percent_encode(small["rootService"].as_str().unwrap_or_default());
    let operation = percent_encode(small["rootName"].as_str().unwrap_or_default());
    let trace = http::get(page, &format!("/api/v1/traces/{id}"))?;
    let attribute = trace.pointer("/spans/0/attributes/0").context("there are no attributes")?;
    let attribute =
        percent_encode(&format!("{}={}", attribute["key"].as_str().unwrap_or_default(), plain(&attribute["value"])));
    Ok(vec![
        ("services", "/api/v1/services".to_owned()),
        ("search: the newest", "/api/v1/search?limit=20".to_owned()),
        ("search: service and operation", format!("/api/v1/search?service={service}&operation={operation}")),
        ("search: an attribute", format!("/api/v1/search?attr={attribute}")),
        (
            "search: an attribute of all, and errors",
            format!("/api/v1/search?attr=service.name%3D{service}&errors=true"),
        ),
        ("search: an attribute that nothing has", "/api/v1/search?attr=no%3Dnothing".to_owned()),
        ("search: an object", "/api/v1/search?kind=Head&namespace=default&name=head-7".to_owned()),
        ("search: duration, the last hour", "/api/v1/search?minDuration=1us&lookback=1h&limit=1500".to_owned()),
        ("all objects", "/api/v1/objects".to_owned()),
        ("one object", "/api/v1/objects/Head/default/head-7".to_owned()),
        ("a trace of 10 000 spans", format!("/api/v1/traces/{LARGE_TRACE_ID}")),
        ("the same for Jaeger", format!("/api/traces/{LARGE_TRACE_ID}")),
    ])
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn percent_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The median duration in milliseconds, and the length of the response.
fn measure_query(page: &str, path: &str) -> anyhow::Result<(f64, usize)> {
    let mut times = Vec::new();
    let mut length = 0;
    for _ in 0..QUERY_REPETITIONS {
        let begin = Instant::now();
        length = http::text(page, path)?.len();
        times.push(begin.elapsed().as_secs_f64() * 1000.0);
    }
    Ok((median(times), length))
}

/// A trace with many spans, each about one of a hundred objects.
fn encode_large_trace() -> Value {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let span = |number: u64| {
        let start = 1_763_297_000_000_000_000 + number * 1_000_000;
        let object = format!("head-{}", number % 100);
        let attributes = [
            text("k8s.object.kind", "Head"),
            text("k8s.object.name", &object),
            text("k8s.namespace.name", "default"),
            text("k8s.object.uid", &object),
            text("http.request.method", "PATCH"),
            text("url.path", "/apis/demo.kubewake.io/v1alpha1/namespaces/default/heads"),
        ];
        json!({ "traceId": LARGE_TRACE_ID, "spanId": format!("{number:016x}"), "name": "reconcile Head", "kind": 5,
            "parentSpanId": if number == 1 { String::new() } else { format!("{:016x}", number / 2) },
            "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + 900_000).to_string(), "attributes": attributes })
    };
    let spans: Vec<Value> = (1..=LARGE_TRACE_SPANS).map(span).collect();
    json!({ "resourceSpans": [{ "resource": { "attributes": [text("service.name", "operator")] }, "scopeSpans": [{ "spans": spans }] }] })
}

/// Sends several times the memory of the store.
fn overfill(section: &mut BenchSection) -> anyhow::Result<()> {
    let viewer = start("viewer-full", "64MiB")?;
    let page = fill(&viewer, OVERFILL_REQUEST_COUNT)?;
    let info = http::get(&page, "/api/v1/info")?;
    let figure = |pointer: &str| info.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let bytes = figure("/store/bytes");
    let dropped = figure("/store/dropped/traces");
    let memory = viewer.memory()?;
    section.row([
        "(memory, full)".to_owned(),
        format_mib(memory.peak),
        format!("{} by its own account, {dropped} traces went", format_mib(bytes)),
    ]);
    section.check(
        format!("a full store takes at most {}", format_mib(SMALL_STORE_BYTES)),
        format_mib(bytes),
        bytes <= SMALL_STORE_BYTES && dropped > 0,
    );
    let most = SMALL_STORE_BYTES + MAX_OVERHEAD_BYTES;
    section.check(
        format!("and its process at most {}", format_mib(most)),
        format_mib(memory.peak),
        memory.peak <= most,
    );
    viewer.stop()
}
