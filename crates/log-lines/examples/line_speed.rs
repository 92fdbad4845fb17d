//! How many lines a core decodes, beside a bare reader that finds line ends and copies as many bytes as the requests
//! have.
//!
//! `cargo run --release -p kubewake-log-lines --example line_speed [LINES [CASE]]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use kubewake_log_lines::{
    BodyParsing, ContainerLogDecoder, ContainerSettings, LinePosition, PlainLogDecoder, PlainSettings, RecordEnvelope,
    RecordSettings, RequestBuilder, RequestLimits,
};

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 256 * 1024;
const LIMITS: RequestLimits = RequestLimits { max_bytes: 1 << 20, max_records: 1 << 20 };
const ROUNDS: usize = 15;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let lines: usize = arguments.next().map_or(100_000, |lines| lines.parse().expect("a number of lines"));
    let only = arguments.next();
    let wanted = |case: &str| only.as_deref().is_none_or(|only| only == case);
    println!("case          bytes/line  out/line   bare ns   ns/line   ratio   lines per second");
    let text = "the order 4711 of customer 0815 was sold for 12.50 EUR and is now on its way to the warehouse with number 7, said the shop";
    let json = r#"{"level":"info","ts":"2026-11-18T03:46:53.562319Z","msg":"request done","http":{"method":"GET","path":"/a?b=c","status":200},"ms":12.5,"user":"4711","trace_id":"4bf92f3577b34da6a3ce929d0e0e4731","span_id":"00f067aa0ba902b7"}"#;
    let without_original = BodyParsing { keeps_original: false, ..BodyParsing::ALL };
    for (case, body, parsing, joins_stack_traces) in [
        ("cri", text, BodyParsing::OFF, false),
        ("cri-parsing", text, BodyParsing::ALL, false),
        ("cri-traces", text, BodyParsing::ALL, true),
        ("json", json, without_original, false),
        ("json-traces", json, without_original, true),
        ("json-original", json, BodyParsing::ALL, false),
    ] {
        if wanted(case) {
            let log = container_log(body, lines);
            report(case, &log, lines, || decode_container(&log, parsing, joins_stack_traces));
        }
    }
    if wanted("plain") {
        let log = format!("{text}\n").repeat(lines).into_bytes();
        report("plain", &log, lines, || decode_plain(&log));
    }
}

/// Lines of containerd with this content.
fn container_log(body: &str, lines: usize) -> Vec<u8> {
    let line = |index: usize| {
        let (minute, second, nanos) = (index / 600_000 % 60, index / 10_000 % 60, index * 100_001 % 1_000_000_000);
        format!("2026-11-18T03:{minute:02}:{second:02}.{nanos:09}Z stdout F {body}\n")
    };
    (0..lines).flat_map(|index| line(index).into_bytes()).collect()
}

#[inline(never)]
fn decode_container(log: &[u8], parsing: BodyParsing, joins_stack_traces: bool) -> u64 {
    let mut builder = builder(parsing);
    let mut decoder =
        ContainerLogDecoder::new(ContainerSettings { joins_stack_traces, ..ContainerSettings::default() });
    let (mut written, mut at) = (0, 0);
    while at < log.len() {
        let chunk = &log[at..(at + CHUNK_BYTES).min(log.len())];
        at += decoder.push(chunk, LinePosition { generation: 1, offset: at as u64 }, 1 + at as u64, &mut builder);
        if builder.is_full() || at == log.len() {
            written +=
                builder.finish(decoder.commit_position()).map_or(0, |request| black_box(request).body.len() as u64);
        }
    }
    written
}

#[inline(never)]
fn decode_plain(log: &[u8]) -> u64 {
    let mut builder = builder(BodyParsing::OFF);
    let mut decoder = PlainLogDecoder::new(PlainSettings::default());
    let (mut written, mut at) = (0, 0);
    while at < log.len() {
        let chunk = &log[at..(at + CHUNK_BYTES).min(log.len())];
        at += decoder.push(chunk, LinePosition { generation: 1, offset: at as u64 }, 1 + at as u64, &mut builder);
        if builder.is_full() || at == log.len() {
            written +=
                builder.finish(decoder.commit_position()).map_or(0, |request| black_box(request).body.len() as u64);
        }
    }
    written
}

fn builder(parsing: BodyParsing) -> RequestBuilder {
    let envelope = RecordEnvelope::from_resource_attributes([
        ("k8s.namespace.name", "default"),
        ("k8s.pod.name", "shop-5bb64f6c98-tlbsq"),
        ("k8s.pod.uid", "481c5800-41c4-4c61-897e-130e5750ccc9"),
        ("k8s.container.name", "shop"),
    ]);
    RequestBuilder::new(Arc::new(envelope), RecordSettings { parsing, ..RecordSettings::default() }, LIMITS)
}

/// Finds the line ends, and copies as many bytes for each line into requests of the same size.
#[inline(never)]
fn read_bare(log: &[u8], bytes_per_line: usize) -> u64 {
    let filler = vec![b'x'; bytes_per_line];
    let mut out = Vec::with_capacity(LIMITS.max_bytes + bytes_per_line);
    let mut written = 0;
    for chunk in log.chunks(CHUNK_BYTES) {
        for end in memchr::memchr_iter(b'\n', chunk) {
            black_box(end);
            out.extend_from_slice(&filler);
            if out.len() >= LIMITS.max_bytes {
                written += black_box(&out).len() as u64;
                out = Vec::with_capacity(LIMITS.max_bytes + bytes_per_line);
            }
        }
    }
    written + out.len() as u64
}

fn report(case: &str, log: &[u8], lines: usize, run: impl Fn() -> u64) {
    let written = run() as usize;
    let bytes_per_line = written / lines;
    let bare = fastest(lines, || read_bare(log, bytes_per_line));
    let own = fastest(lines, &run);
    println!(
        "{case:13} {:10} {bytes_per_line:9} {bare:9.1} {own:9.1} {:7.2} {:12.0}",
        log.len() / lines,
        own / bare,
        1e9 / own
    );
}

/// Nanoseconds for each line, in the fastest of some rounds: the one that the least of other programs disturbed.
fn fastest(lines: usize, run: impl Fn() -> u64) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed().as_nanos()
    });
    rounds.min().unwrap() as f64 / lines as f64
}
