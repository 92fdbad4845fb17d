//! Fuzz targets of the viewer: import, arrival, storage, and queries.

use std::fs;

use kubewake_viewer::{
    fuzzing::{accepts_jaeger_search, parse_import, parse_search},
    query,
    store::{GroupedSpans, SegmentStore, StoreLimits, TraceStore},
};
use tempfile::TempDir;

use crate::{Target, choice, memory::bounded};

pub const TARGETS: [Target; 4] = [
    Target { name: "viewer-import", body: import },
    Target { name: "viewer-arrival", body: arrival },
    Target { name: "viewer-segments", body: segments },
    Target { name: "viewer-search", body: parameters },
];

const NOW: u64 = 1_700_000_000_000_000_000;

/// An import yields requests of at most four times its length, each with a span.
fn import(data: &[u8]) {
    let Ok(requests) = bounded("an import", data.len(), 64, 64 << 10, || parse_import(data)) else { return };
    assert!(requests.iter().map(Vec::len).sum::<usize>() <= 4 * data.len());
    for request in requests {
        let summary = kubewake_otlp::scan(kubewake_otlp::Signal::Traces, &request).expect("it was scanned");
        assert!(summary.items > 0);
    }
}

/// The store stays within its limit, every trace can be laid out and searched, and has each span once.
fn arrival(data: &[u8]) {
    let (choice, request) = choice(data);
    let limits =
        StoreLimits { bytes: [4 << 10, 64 << 10, 4 << 20][choice % 3], trace_spans: [2, 100, 100_000][choice / 3 % 3] };
    let store = TraceStore::new(limits);
    for now in 0..2 {
        let arrival = GroupedSpans::parse(request);
        let spans = arrival.spans();
        let added = store.add(arrival, NOW + now);
        assert!(added.spans <= spans);
        assert!(store.figures().bytes <= limits.bytes, "{:?}", store.figures());
    }
    let snapshot = store.snapshot();
    for trace in &snapshot.traces {
        let arranged = query::arrange(trace, NOW);
        assert_eq!(arranged.spans.len(), trace.spans().count());
        let _ = query::summarize(trace);
    }
    let (filter, _) = parse_search(vec![("service".to_owned(), "shop".to_owned())], NOW);
    let found = query::search(&snapshot, &filter, 10);
    assert!(found.traces.len() <= 10);
    let _ = (query::list_services(&snapshot), query::count_dependencies(&snapshot, &(0..=u64::MAX)));
}

/// A damaged segment yields a prefix of the written requests, and the same when it is read again.
fn segments(data: &[u8]) {
    let (choice, edits) = choice(data);
    let folder = TempDir::new_in(if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
    let written: Vec<Vec<u8>> = (0..=choice % 5).map(|number| vec![number as u8; 3 + number * 7]).collect();
    {
        let mut disk = SegmentStore::open(folder.path(), 1 << 20, |_, _| {}).expect("a folder can be used");
        (1..).zip(&written).for_each(|(at, request)| disk.append(request, at));
        disk.sync();
    }
    for entry in fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.to_string_lossy().contains("segment-") {
            let mut content = fs::read(&entry).unwrap();
            for edit in edits.chunks_exact(3) {
                let at = usize::from(edit[1]) % (content.len() + 1);
                match edit[0] % 3 {
                    0 => content.truncate(at),
                    1 => content.iter_mut().skip(at).take(1).for_each(|byte| *byte = edit[2]),
                    _ => content.extend(std::iter::repeat_n(edit[2], at)),
                }
            }
            fs::write(&entry, &content).unwrap();
        }
    }
    let read = || {
        let mut all = Vec::new();
        drop(SegmentStore::open(folder.path(), 1 << 20, |request, _| all.push(request.to_vec())));
        all
    };
    let found = read();
    assert!(written.starts_with(&found), "{found:?} is no beginning of {written:?}");
    assert_eq!(read(), found);
}

/// Any parameters are accepted or reported as problems, within a multiple of their length in memory.
fn parameters(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    bounded("a search", data.len(), 256, 64 << 10, || parse_search(pairs.clone(), NOW));
    bounded("a search of Jaeger", data.len(), 256, 64 << 10, || accepts_jaeger_search(pairs));
}
