//! The viewer: what is imported, received, kept on disk, and asked for.

use std::fs;

use kubewake_viewer::{
    fuzzing::{imported, jaeger_search, search},
    query,
    store::{Arrival, Disk, Limits, Store},
};
use tempfile::TempDir;

use crate::{Target, choice, memory::bounded};

/// The targets.
pub const TARGETS: [Target; 4] = [
    Target { name: "viewer-import", body: import },
    Target { name: "viewer-arrival", body: arrival },
    Target { name: "viewer-segments", body: segments },
    Target { name: "viewer-search", body: parameters },
];

const NOW: u64 = 1_700_000_000_000_000_000;

/// What is imported is requests of at most four times its length, each with a span.
fn import(data: &[u8]) {
    let Ok(requests) = bounded("an import", data.len(), 64, 64 << 10, || imported(data)) else { return };
    assert!(requests.iter().map(Vec::len).sum::<usize>() <= 4 * data.len());
    for request in requests {
        let summary = kubewake_otlp::scan(kubewake_otlp::Signal::Traces, &request).expect("it was scanned");
        assert!(summary.items > 0);
    }
}

/// The store stays within its limit, every trace can be arranged and searched, and each span stands once in its trace.
fn arrival(data: &[u8]) {
    let (choice, request) = choice(data);
    let limits =
        Limits { bytes: [4 << 10, 64 << 10, 4 << 20][choice % 3], trace_spans: [2, 100, 100_000][choice / 3 % 3] };
    let store = Store::new(limits);
    for now in 0..2 {
        let arrival = Arrival::read(request);
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
    let (filter, _) = search(vec![("service".to_owned(), "shop".to_owned())], NOW);
    let found = query::search(&snapshot, &filter, 10);
    assert!(found.traces.len() <= 10);
    let _ = (query::services(&snapshot), query::dependencies(&snapshot, &(0..=u64::MAX)));
}

/// A damaged segment gives requests that were written, from the first on, and the same when it is read again.
fn segments(data: &[u8]) {
    let (choice, edits) = choice(data);
    let folder = TempDir::new_in(if std::path::Path::new("/dev/shm").is_dir() { "/dev/shm" } else { "/tmp" }).unwrap();
    let written: Vec<Vec<u8>> = (0..=choice % 5).map(|number| vec![number as u8; 3 + number * 7]).collect();
    {
        let mut disk = Disk::open(folder.path(), 1 << 20, |_, _| {}).expect("a folder can be used");
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
        drop(Disk::open(folder.path(), 1 << 20, |request, _| all.push(request.to_vec())));
        all
    };
    let found = read();
    assert!(written.starts_with(&found), "{found:?} is no beginning of {written:?}");
    assert_eq!(read(), found);
}

/// Parameters are understood or are problems, and never more of them than are told.
fn parameters(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    bounded("a search", data.len(), 256, 64 << 10, || search(pairs.clone(), NOW));
    bounded("a search of Jaeger", data.len(), 256, 64 << 10, || jaeger_search(pairs));
}
