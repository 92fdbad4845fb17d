//! The viewer with a hundred thousand spans: what questions take, and what memory it needs when it is full.

use std::{process::Command, time::Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::{
    Plan,
    check::{Section, median, mib},
    http,
    load::Load,
    process::Process,
    program,
};

/// Promised, in milliseconds.
const MAX_TIME: f64 = 50.0;
/// How often each question is asked.
const ASKED: usize = 21;
/// Requests of 100 spans each.
const REQUESTS: &str = "1000";
/// Spans of the large trace.
const LARGE: u64 = 10_000;
const LARGE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
/// What the store that is filled may take, and what is sent to it: several times that.
const SMALL: u64 = 64 << 20;
const MANY_REQUESTS: &str = "5000";
/// Requests under way, buffers of connections, and what the allocator does not give back.
const BESIDE: u64 = 128 << 20;

pub(crate) fn run(_: &Plan) -> anyhow::Result<Section> {
    let how = format!(
        "`kubewake viewer` with 100 000 spans of 10 000 traces, and one trace of {LARGE} more whose spans name 100 objects. Each question is asked {ASKED} times over a connection of \
         its own; times are those of the whole answer, the one in the middle. Then a viewer that may keep {} is sent 500 000 spans.",
        mib(SMALL)
    );
    let mut section = Section::new("Viewer", how);
    section.header(&["question", "time", "answer"]);
    let viewer = start("viewer", "256MiB")?;
    let page = fill(&viewer, REQUESTS)?;
    let imported = http::post_json(&page, "/api/v1/import", large().to_string().as_bytes())?;
    let spans = imported.get("spans").and_then(Value::as_u64);
    ensure!(spans == Some(LARGE), "the large trace did not come: {imported}");
    for (question, path) in questions(&page)? {
        let (time, bytes) = ask(&page, &path)?;
        section.row([question.to_owned(), format!("{time:.1} ms"), format!("{} KiB", bytes / 1024)]);
        section.check(format!("{question}: at most {MAX_TIME} ms"), format!("{time:.1} ms"), time <= MAX_TIME);
    }
    let (store, memory) = (http::get(&page, "/api/v1/info")?, viewer.memory()?);
    let bytes = store.pointer("/store/bytes").and_then(Value::as_u64).unwrap_or_default();
    section.row(["(memory)".to_owned(), mib(memory.own), format!("{} by its own account", mib(bytes))]);
    viewer.stop()?;
    overfill(&mut section)?;
    Ok(section)
}

fn start(name: &str, memory: &str) -> anyhow::Result<Process> {
    let any = "127.0.0.1:0";
    let mut command = Command::new(program("kubewake"));
    Process::start(
        name,
        command.args(["viewer", "--listen", any, "--otlp", any, "--otlp-http", any, "--memory", memory]),
    )
}

/// Sends so many requests; gives the address of the page.
fn fill(viewer: &Process, requests: &str) -> anyhow::Result<String> {
    let page = viewer.address()?.trim_start_matches("http://").to_owned();
    let info = http::get(&page, "/api/v1/info")?;
    let otlp = info.pointer("/otlp/grpc").and_then(Value::as_str).context("there is no address for OTLP")?;
    let sent = Load::new("viewer", otlp).args(&["--requests", requests]).run()?;
    ensure!(sent.acknowledged() > 0, "nothing was taken: {}", sent.codes());
    Ok(page)
}

/// What people ask, with attributes and names that there are.
fn questions(page: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
    let found = http::get(page, "/api/v1/search?limit=20")?;
    let traces = found.get("traces").and_then(Value::as_array).context("there are no traces")?;
    let small = traces.iter().find(|trace| trace["traceId"] != LARGE_ID).context("there is no small trace")?;
    let id = small["traceId"].as_str().unwrap_or_default();
    let service = encoded(small["rootService"].as_str().unwrap_or_default());
    let operation = encoded(small["rootName"].as_str().unwrap_or_default());
    let trace = http::get(page, &format!("/api/v1/traces/{id}"))?;
    let attribute = trace.pointer("/spans/0/attributes/0").context("there are no attributes")?;
    let attribute =
        encoded(&format!("{}={}", attribute["key"].as_str().unwrap_or_default(), plain(&attribute["value"])));
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
        ("a trace of 10 000 spans", format!("/api/v1/traces/{LARGE_ID}")),
        ("the same for Jaeger", format!("/api/traces/{LARGE_ID}")),
    ])
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The time of the one in the middle in milliseconds, and the length of the answer.
fn ask(page: &str, path: &str) -> anyhow::Result<(f64, usize)> {
    let (mut times, mut length) = (Vec::new(), 0);
    for _ in 0..ASKED {
        let begin = Instant::now();
        length = http::text(page, path)?.len();
        times.push(begin.elapsed().as_secs_f64() * 1000.0);
    }
    Ok((median(times), length))
}

/// One trace with many spans, each about one of a hundred objects.
fn large() -> Value {
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
        json!({ "traceId": LARGE_ID, "spanId": format!("{number:016x}"), "name": "reconcile Head", "kind": 5,
            "parentSpanId": if number == 1 { String::new() } else { format!("{:016x}", number / 2) },
            "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + 900_000).to_string(), "attributes": attributes })
    };
    let spans: Vec<Value> = (1..=LARGE).map(span).collect();
    json!({ "resourceSpans": [{ "resource": { "attributes": [text("service.name", "operator")] }, "scopeSpans": [{ "spans": spans }] }] })
}

/// Sends several times what may be kept.
fn overfill(section: &mut Section) -> anyhow::Result<()> {
    let viewer = start("viewer-full", "64MiB")?;
    let page = fill(&viewer, MANY_REQUESTS)?;
    let info = http::get(&page, "/api/v1/info")?;
    let figure = |pointer: &str| info.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let (bytes, dropped, memory) = (figure("/store/bytes"), figure("/store/dropped/traces"), viewer.memory()?);
    section.row([
        "(memory, full)".to_owned(),
        mib(memory.peak),
        format!("{} by its own account, {dropped} traces went", mib(bytes)),
    ]);
    section.check(format!("a full store takes at most {}", mib(SMALL)), mib(bytes), bytes <= SMALL && dropped > 0);
    let most = SMALL + BESIDE;
    section.check(format!("and its process at most {}", mib(most)), mib(memory.peak), memory.peak <= most);
    viewer.stop()
}
