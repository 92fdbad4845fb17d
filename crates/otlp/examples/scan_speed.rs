//! Measures the speed of `scan` and of the operations:
//! `cargo run --release -p kubewake-otlp --example scan_speed`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kubewake_otlp::probability::{Randomness, Threshold};
use kubewake_otlp::wire::{put_bytes, put_fixed32, put_fixed64, put_uint};
use kubewake_otlp::{MessageEdit, Signal, SplitLimit, group_by_trace, retain, scan, select, split};

fn attribute(key: &str, value: &str) -> Vec<u8> {
    let mut any = Vec::new();
    let mut pair = Vec::new();
    put_bytes(&mut any, 1, value.as_bytes());
    put_bytes(&mut pair, 1, key.as_bytes());
    put_bytes(&mut pair, 2, &any);
    pair
}

/// A span as an SDK sends it: `attributes` of them, of 30 to 40 bytes each.
fn span(index: u64, attributes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    put_bytes(&mut out, 1, &(u128::from(mixed / 8) << 3 | 1).to_be_bytes());
    put_bytes(&mut out, 2, &(mixed | 1).to_be_bytes());
    put_bytes(&mut out, 4, &(mixed | 2).to_be_bytes());
    put_bytes(&mut out, 5, b"GET /api/v1/items/{id}");
    put_uint(&mut out, 6, 2);
    put_fixed64(&mut out, 7, 1_700_000_000_000_000_000 + index);
    put_fixed64(&mut out, 8, 1_700_000_000_001_000_000 + index);
    for number in 0..attributes {
        put_bytes(&mut out, 9, &attribute("http.request.header", &format!("value-{number}-{index}")));
    }
    put_bytes(&mut out, 15, &[]);
    put_fixed32(&mut out, 16, 0x101);
    out
}

fn request(spans: u64, attributes: usize) -> Bytes {
    let mut resource = Vec::new();
    let mut scope = Vec::new();
    let mut entry = Vec::new();
    let mut out = Vec::new();
    put_bytes(&mut resource, 1, &attribute("service.name", "shop"));
    put_bytes(&mut scope, 1, b"\x0a\x04http");
    (0..spans).for_each(|index| put_bytes(&mut scope, 2, &span(index, attributes)));
    put_bytes(&mut entry, 1, &resource);
    put_bytes(&mut entry, 2, &scope);
    put_bytes(&mut out, 1, &entry);
    Bytes::from(out)
}

fn measure(name: &str, request: &Bytes, spans: u64, mut work: impl FnMut()) {
    let mut best = Duration::MAX;
    let mut elapsed = Duration::ZERO;
    while elapsed < Duration::from_millis(600) {
        let start = Instant::now();
        work();
        let took = start.elapsed();
        best = best.min(took);
        elapsed += took;
    }
    let rate = request.len() as f64 / best.as_secs_f64() / 1e9;
    println!("  {name:<22} {rate:>7.2} GB/s {:>7.1} ns/span", best.as_nanos() as f64 / spans as f64);
}

fn main() {
    let limit = SplitLimit::Items(NonZeroUsize::new(512).unwrap());
    for (spans, attributes) in [(8192, 2), (8192, 8), (8192, 24), (100, 8)] {
        let request = request(spans, attributes);
        println!("{spans} spans of {} bytes", request.len() as u64 / spans);
        measure("scan", &request, spans, || {
            black_box(scan(Signal::Traces, black_box(&request)).unwrap());
        });
        measure("split by 512 items", &request, spans, || {
            black_box(split(Signal::Traces, &request, limit).map(|piece| piece.bytes.len()).sum::<usize>());
        });
        measure("retain half by trace", &request, spans, || {
            let keep = |id: &[u8]| id.get(13).is_some_and(|byte| byte % 2 == 0);
            black_box(retain(Signal::Traces, &request, |record| keep(record.trace_id())));
        });
        measure("select a tenth", &request, spans, || {
            let tenth = Threshold::from_probability(0.1, 4).unwrap();
            black_box(select(Signal::Traces, &request, |record, edits| {
                let kept = Randomness::from_trace_id(record.trace_id()).is_some_and(|random| tenth.keeps(random));
                if kept {
                    edits.push(MessageEdit::trace_state(&b"ot=th:e666"[..]));
                }
                kept
            }));
        });
        measure("group by trace", &request, spans, || {
            black_box(group_by_trace(&request).map(|group| group.bytes.len()).sum::<usize>());
        });
    }
}
